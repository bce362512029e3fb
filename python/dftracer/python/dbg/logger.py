"""See dftracer.python.dbg. What a logger of the standard library can do is here as well."""

from __future__ import annotations

from dftracer.python import DFTRACER_ENABLE, DFTracerAI, ai, dft_fn, dftracer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["DFTRACER_ENABLE", "DFTracerAI", "ai", "dft_fn", "dftracer"]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    return getattr(import_module("dftracer.python.logger"), name)

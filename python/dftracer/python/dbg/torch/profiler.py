"""See dftracer.python.torch.profiler."""

from __future__ import annotations

import dftracer.python.torch as _torch
from dftracer.python.torch.profiler import TraceHandler, profile, trace_handler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["TraceHandler", "profile", "trace_handler"]


def __getattr__(name: str) -> Any:
    return _torch._find(name)

"""See dftracer.python.logger."""

from __future__ import annotations

from dftracer.python.logger import dftracer

__all__ = ["dftracer"]

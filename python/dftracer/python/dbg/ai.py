"""See dftracer.python.ai."""

from __future__ import annotations

from dftracer.python.ai import AI, DFTracerAI, ai

__all__ = ["AI", "DFTracerAI", "ai"]

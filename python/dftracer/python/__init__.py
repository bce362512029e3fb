"""The Python face: start a trace, record events and metadata, end it.

Importing this has no effect. Nothing is recorded unless DFTRACER_ENABLE=1 is set.
"""

from __future__ import annotations

from dftracer.python.logger import dftracer

__all__ = ["dftracer"]

"""See dftracer.python.ai."""

from __future__ import annotations

from dftracer.python.ai import *  # noqa: F403

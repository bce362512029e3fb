"""Whether tracing is enabled in this process; decided once, at import."""

from __future__ import annotations

import os
import sys

import dftracer

__all__ = ["ON", "WANTED", "wanted"]

_OFF = ("", "0", "false", "no", "off")


def wanted() -> bool:
    """False only if nothing can be recorded. Otherwise the library decides: it reads the
    configuration file and reports invalid values."""
    value = os.environ.get("DFTRACER_ENABLE")
    if value is None:
        return bool(os.environ.get("DFTRACER_CONFIGURATION"))
    return value.strip().lower() not in _OFF


def _warn_of_mixture() -> None:
    """If DFTracer's own package has replaced dftracer/__init__.py, or its removal deleted it."""
    if not hasattr(dftracer, "_OURS"):
        from dftracer import _mixture

        _mixture.warn()


def _has_extension() -> bool:
    try:
        from dftracer import _core  # noqa: F401
    except ImportError as error:
        print(f"dftracer: nothing will be recorded: {error}", file=sys.stderr)
        return False
    return True


_warn_of_mixture()
WANTED = wanted()
# Switched off, neither the extension nor the library is loaded.
ON = WANTED and _has_extension()

"""Whether tracing is enabled in this process; decided once, at import."""

from __future__ import annotations

import os
import sys

__all__ = ["ON", "WANTED", "wanted"]

_OFF = ("", "0", "false", "no", "off")


def wanted() -> bool:
    """False only if nothing can be recorded. Otherwise the library decides: it reads the
    configuration file and reports invalid values."""
    value = os.environ.get("DFTRACER_ENABLE")
    if value is None:
        return bool(os.environ.get("DFTRACER_CONFIGURATION"))
    return value.strip().lower() not in _OFF


def _has_extension() -> bool:
    try:
        from dftracer import _core  # noqa: F401
    except ImportError as error:
        print(f"dftracer: nothing will be recorded: {error}", file=sys.stderr)
        return False
    return True


WANTED = wanted()
# Switched off, neither the extension nor the library is loaded.
ON = WANTED and _has_extension()

"""Is this process to be traced at all? Asked once, when the package is imported."""

from __future__ import annotations

import os
import sys

__all__ = ["ON", "WANTED", "wanted"]

_OFF = ("", "0", "false", "no", "off")


def wanted() -> bool:
    """False only where nothing can be recorded. Whether something is, the library decides: it
    reads the configuration file, and names a value that it does not understand."""
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

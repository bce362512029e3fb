"""Warns once, at the end of a program, that its annotated calls were not recorded."""

from __future__ import annotations

import atexit
import os
import sys

from dftracer import _core

__all__ = ["watch"]

_ON = ("1", "true", "yes", "on")
_OFF = ("", "0", "false", "no", "off")


def _is_wanted() -> bool:
    """A configuration file may have switched tracing off."""
    enable = os.environ.get("DFTRACER_ENABLE", "").strip().lower()
    summary = os.environ.get("DFTRACER_SUMMARY", "1").strip().lower()
    return enable in _ON and summary not in _OFF


def watch() -> None:
    """Called at the first event that is not recorded."""
    if _is_wanted():
        atexit.register(_tell, os.getpid())


def _tell(owner: int) -> None:
    count = _core.missed()
    if count == 0 or _core.active() or os.getpid() != owner:
        return
    calls = "1 annotated call was" if count == 1 else f"{count} annotated calls were"
    print(
        f"dftracer: {calls} not recorded, because no trace was started: call "
        'dftracer.initialize_log("traces/run.pfw") first, or start the program with '
        "dftracer run -- python ...",
        file=sys.stderr,
    )

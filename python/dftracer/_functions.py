"""Run by dftracer.pth when Python starts and DFTRACER_FUNCTIONS is set.

Records the calls of Python functions that it names (dftracer.python._functions).
"""

from __future__ import annotations

import os
import sys

__all__ = ["arm"]

_OFF = ("", "0", "false", "no", "off")


def _is_on(variable: str) -> bool:
    return os.environ.get(variable, "").strip().lower() not in _OFF


def _wanted() -> bool:
    # A configuration file may turn tracing on; the library decides.
    return bool(os.environ.get("DFTRACER_FUNCTIONS")) and (
        _is_on("DFTRACER_ENABLE")
        or ("DFTRACER_ENABLE" not in os.environ and bool(os.environ.get("DFTRACER_CONFIGURATION")))
    )


def arm() -> None:
    """Watch the functions that the environment names, if it enables tracing."""
    if not _wanted():
        return
    try:
        from dftracer.python import _functions

        _functions.watch(os.environ["DFTRACER_FUNCTIONS"])
    except Exception as error:  # the program must run with any interpreter
        reason = f"{type(error).__name__}: {error}"
        print(f"dftracer: Python functions are not recorded: {reason}", file=sys.stderr)

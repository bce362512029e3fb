"""Tracing of the I/O and the application regions of data-heavy programs."""

from __future__ import annotations

import os

# For type checkers; the value comes from __getattr__.
__version__: str

# DFTracer's own package, installed over this one, replaces this file by one without the name:
# dftracer.python and the commands look for it.
_OURS = True

# Two stat calls: is DFTracer's own package in this directory as well? See _mixture.py.
if os.path.exists(f"{__path__[0]}/_version.py") or os.path.exists(
    f"{__path__[0]}/python/_version.py"
):
    from dftracer import _mixture

    _mixture.warn()


def __getattr__(name: str) -> str:
    # Loaded on first use: importing importlib.metadata takes milliseconds, more than all the rest.
    if name == "__version__":
        from importlib.metadata import version

        return version("pydftracer")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

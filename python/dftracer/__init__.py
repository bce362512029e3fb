"""Tracing of the I/O and the application regions of data-heavy programs."""

from __future__ import annotations

# For type checkers; the value comes from __getattr__.
__version__: str


def __getattr__(name: str) -> str:
    # Loaded on first use: importing importlib.metadata takes milliseconds, more than all the rest.
    if name == "__version__":
        from importlib.metadata import version

        return version("pydftracer")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

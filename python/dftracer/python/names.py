"""The parts of event names."""

from __future__ import annotations

__all__ = [
    "BLOCK_NAME",
    "CTX_SEPARATOR",
    "INIT_NAME",
    "ITER_COUNT_NAME",
    "ITER_NAME",
    "ROOT_CAT",
    "ROOT_NAME",
    "START_METADATA_NAME",
    "STOP_METADATA_NAME",
    "get_iter_block_name",
    "get_iter_handle_name",
]

INIT_NAME = "init"
ITER_COUNT_NAME = "count"
BLOCK_NAME = "block"
ITER_NAME = "iter"
CTX_SEPARATOR = "."
ROOT_NAME = "ai_root"
ROOT_CAT = "ai_root"
START_METADATA_NAME = "start"
STOP_METADATA_NAME = "end"


def text_of(value: object) -> str:
    """A name as text. Other objects are shown by type: their __str__ may raise."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    return int.__repr__(value) if isinstance(value, int) else type(value).__name__


def _with_suffix(name: str, suffix: str) -> str:
    ending = CTX_SEPARATOR + suffix
    return name if name.endswith(ending) else name + ending


def get_iter_block_name(name: str) -> str:
    """The event name of a loop body."""
    return _with_suffix(name, BLOCK_NAME)


def get_iter_handle_name(name: str) -> str:
    """The event name of the wait for the next item of a loop."""
    return _with_suffix(name, ITER_NAME)

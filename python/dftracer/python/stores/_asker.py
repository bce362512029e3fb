"""Who asks for an object: the line of the program, and the batch that is being made.

Libraries send requests from threads and event loops of their own. There the answer is that of the
thread that gave them the work, which it leaves in a context variable: a task of asyncio inherits
the context of whatever scheduled it, on another thread as well.
"""

from __future__ import annotations

import os
import sys
from contextvars import ContextVar
from typing import Any, NamedTuple

__all__ = ["ASKING", "Asker", "asker", "is_called_from"]


class Asker(NamedTuple):
    line: str | None
    batch: int | None


ASKING: ContextVar[Asker | None] = ContextVar("dftracer_asking", default=None)

_STDLIB = os.path.join(os.path.dirname(os.__file__), "")
_OURS = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")
_PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
# By the file name of code objects, of which a program has few.
_is_program: dict[str, bool] = {}


def _belongs_to_program(path: str) -> bool:
    known = _is_program.get(path)
    if known is None:
        known = _is_program[path] = not (
            path.startswith((_STDLIB, _OURS, "<frozen")) or any(part in path for part in _PACKAGES)
        )
    return known


def _line() -> str | None:
    frame = sys._getframe(2)
    while frame is not None:
        path = frame.f_code.co_filename
        if _belongs_to_program(path):
            return f"{path}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return None


def _batch() -> int | None:
    """The batch that this thread makes, with `dftracer run --torch`."""
    lineage: Any = sys.modules.get("dftracer.python.torch._lineage")
    if lineage is None:
        return None
    here = lineage.here
    building = here.worker.lineage if here.worker is not None else here.building
    if building is None:
        return None
    batch: int = building.batch
    return batch if batch >= 0 else None


def asker() -> Asker:
    """Who asks, as far as the stack of this thread or the context says."""
    known = ASKING.get()
    return known if known is not None else Asker(_line(), _batch())


def is_called_from(package: str) -> bool:
    """Whether code of this package is on the stack."""
    inside = f"{package}."
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__")
        if isinstance(name, str) and (name == package or name.startswith(inside)):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False

"""s3transfer, by which boto3 uploads and downloads files: its threads know who asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dftracer.python.stores._asker import ASKING, asker
from dftracer.python.torch._patch import Patches

__all__ = ["instrument_executors", "instrument_tasks"]

Call = Callable[..., Any]
_ATTRIBUTE = "_dftracer"  # of tasks


def instrument_executors(module: Any, patches: Patches) -> None:
    def make(original: Call) -> Call:
        def submit(self: Any, task: Any, *args: Any, **kwargs: Any) -> Any:
            if not hasattr(task, _ATTRIBUTE):
                setattr(task, _ATTRIBUTE, asker())
            return original(self, task, *args, **kwargs)

        return submit

    patches.replace((module.BoundedExecutor,), "submit", make)


def instrument_tasks(module: Any, patches: Patches) -> None:
    def make(original: Call) -> Call:
        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
            known = self.__dict__.get(_ATTRIBUTE)
            if known is None:
                return original(self, *args, **kwargs)
            token = ASKING.set(known)
            try:
                return original(self, *args, **kwargs)
            finally:
                ASKING.reset(token)

        return __call__

    patches.replace((module.Task,), "__call__", make)

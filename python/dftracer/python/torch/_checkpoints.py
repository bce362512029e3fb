"""Checkpoints: the calls that save and load the state of a training.

The same calls also read datasets, and call each other: only the outermost one is an event, and only
while no data is being read.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from types import CodeType, ModuleType
from typing import Any, NamedTuple

import torch
import torch.utils.data
from torch.utils.data._utils import fetch as fetchers

from dftracer import _startup
from dftracer._core import Region
from dftracer.python.torch._patch import Patches
from dftracer.python.torch._progress import Progress

__all__ = ["instrument_checkpoints"]

Call = Callable[..., Any]


class _Function(NamedTuple):
    name: str
    event: str
    path: str  # the parameter with the path
    position: int  # its position; -1: keyword only


_OF_TORCH = (_Function("save", "capture", "f", 1), _Function("load", "restart", "f", 0))
_SAVER = "torch.distributed.checkpoint.state_dict_saver"
_LOADER = "torch.distributed.checkpoint.state_dict_loader"
# Of modules that few programs import.
_OF_OTHERS = {
    _SAVER: (
        _Function("save", "capture", "checkpoint_id", -1),
        _Function("async_save", "capture", "checkpoint_id", -1),
        _Function("save_state_dict", "capture", "checkpoint_id", -1),
    ),
    _LOADER: (
        _Function("load", "restart", "checkpoint_id", -1),
        _Function("load_state_dict", "restart", "checkpoint_id", -1),
    ),
    "safetensors.torch": (
        _Function("save_file", "capture", "filename", 1),
        _Function("save_model", "capture", "filename", 1),
        _Function("load_file", "restart", "filename", 0),
        _Function("load_model", "restart", "filename", 1),
    ),
}
# Packages that do nothing but write and read datasets.
_DATA_PACKAGES = ("litdata", "torchdata", "webdataset")


class _Inside(threading.local):
    checkpoint = False


_inside = _Inside()


def _path_of(function: _Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    given = kwargs.get(function.path)
    if 0 <= function.position < len(args):
        given = args[function.position]
    return os.fsdecode(given) if isinstance(given, (str, bytes, os.PathLike)) else None


def _kinds(kind: type) -> Iterator[type]:
    yield kind
    below: type
    for below in type.__subclasses__(kind):
        yield from _kinds(below)


def _is_of_a_dataset(code: CodeType) -> bool:
    """Whether it is the code of a dataset's method. Uses the classes: reading `self` from the frame
    would keep its variables alive."""
    for kind in _kinds(torch.utils.data.Dataset):
        member = vars(kind).get(code.co_name)
        while member is not None:
            if getattr(member, "__code__", None) is code:
                return True
            member = getattr(member, "__wrapped__", None)
    return False


_FETCHES = tuple(
    getattr(fetchers, kind).fetch.__code__
    for kind in ("_MapDatasetFetcher", "_IterableDatasetFetcher")
)
# Where torch.distributed.checkpoint is: its threads call torch.save and torch.load.
_DISTRIBUTED = os.path.join(os.path.dirname(torch.__file__), "distributed", "checkpoint", "")


def _is_part_of_something() -> bool:
    """Whether data is being read, or a distributed checkpoint is in progress."""
    if torch.utils.data.get_worker_info() is not None:
        return True
    frame = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if any(code is fetch for fetch in _FETCHES) or code.co_filename.startswith(_DISTRIBUTED):
            return True
        package = str(frame.f_globals.get("__name__")).partition(".")[0]
        if package in _DATA_PACKAGES or _is_of_a_dataset(code):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def instrument_checkpoints(patches: Patches, progress: Progress, start: Callable[[], None]) -> None:
    inside = _inside

    def maker(function: _Function) -> Callable[[Call], Call]:
        def make(original: Call) -> Call:
            def checkpoint(*args: Any, **kwargs: Any) -> Any:
                if inside.checkpoint or _is_part_of_something():
                    return original(*args, **kwargs)
                start()
                inside.checkpoint = True
                region = Region(getattr(progress.nodes, function.event))
                try:
                    return original(*args, **kwargs)
                finally:
                    inside.checkpoint = False
                    path = _path_of(function, args, kwargs)
                    region.end({"file": path} if path is not None else None)

            return checkpoint

        return make

    for function in _OF_TORCH:
        patches.replace((torch, torch.serialization), function.name, maker(function))

    def instrument(module: ModuleType) -> None:
        # The package may have imported them already, under the same names.
        package = sys.modules.get(module.__name__.rpartition(".")[0], module)
        for function in _OF_OTHERS[module.__name__]:
            patches.replace((module, package), function.name, maker(function))

    _startup.after_import(dict.fromkeys(_OF_OTHERS, instrument))
    patches.undo_with(_startup.forget)

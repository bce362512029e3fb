"""Which module of a library is instrumented by which adapter."""

from __future__ import annotations

import atexit
import importlib
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

from dftracer.python._switch import ON
from dftracer.python.stores import _request
from dftracer.python.torch._patch import Patches

__all__ = ["instrument", "restore"]

# Module of the library: adapter in this room, and its function, which gets the module.
_ADAPTERS = {
    "aiobotocore.client": ("_aiobotocore", "instrument"),
    "botocore.client": ("_botocore", "instrument"),
    "fsspec.asyn": ("_fsspec", "instrument_calls"),
    "fsspec.caching": ("_fsspec", "instrument_caches"),
    "fsspec.implementations.cached": ("_fsspec", "instrument_local_copies"),
    "fsspec.implementations.http": ("_aiohttp", "instrument_fsspec_http"),
    "fsspec.spec": ("_fsspec", "instrument_files"),
    "gcsfs.core": ("_aiohttp", "instrument_gcsfs"),
    "huggingface_hub.utils._http": ("_huggingface", "instrument"),
    "obstore": ("_obstore", "instrument"),
    "pyarrow.fs": ("_pyarrow", "instrument"),
    "s3torchconnector._s3client._s3client": ("_s3torchconnector", "instrument"),
    "s3transfer.futures": ("_s3transfer", "instrument_executors"),
    "s3transfer.tasks": ("_s3transfer", "instrument_tasks"),
}
_patches: dict[str, Patches] = {}
# A program may import two of them at once, on two threads.
_lock = threading.Lock()


def instrument(module: ModuleType, name: str) -> None:
    """Replaces functions of a module that has just been imported. Once for each module: a module
    that is loaded again (importlib.reload) has its own functions again, and gets ours again."""
    if not ON:
        return
    adapter, function = _ADAPTERS[name]
    make: Callable[[Any, Patches], None]
    make = getattr(importlib.import_module(f"dftracer.python.stores.{adapter}"), function)
    patches = Patches()
    make(module, patches)
    with _lock:
        if not _patches:
            atexit.register(_request.end_open)
        _patches[name] = patches


def restore() -> None:
    """The libraries as they were."""
    with _lock:
        for patches in reversed(list(_patches.values())):
            patches.undo()
        _patches.clear()
        atexit.unregister(_request.end_open)

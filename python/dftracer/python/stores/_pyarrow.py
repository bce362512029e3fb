"""pyarrow: the S3 and Google file systems, as far as Python sees them.

Their classes are made in C, whose methods cannot be replaced: `pyarrow.fs` gets subclasses with the
same names. Their operations on metadata, and opening files, are recorded; what open files, Parquet
and datasets read is read by C++ threads, and is not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dftracer.python.stores._request import begin, without_query
from dftracer.python.torch._patch import Patches

__all__ = ["instrument"]

# The methods of a file system, and the operations that they are.
_OPERATIONS = {
    "copy_file": "CopyObject",
    "create_dir": "CreateDir",
    "delete_dir": "DeleteDir",
    "delete_dir_contents": "DeleteDir",
    "delete_file": "DeleteObject",
    "get_file_info": "GetFileInfo",
    "move": "MoveObject",
    "open_append_stream": "OpenAppend",
    "open_input_file": "OpenInput",
    "open_input_stream": "OpenInput",
    "open_output_stream": "OpenOutput",
}


def _place(path: Any) -> dict[str, Any]:
    """Of a path, a selector, or a list, whose first one stands for all."""
    if isinstance(path, (list, tuple)):
        path = path[0] if path else ""
    path = getattr(path, "base_dir", path)
    bucket, _, key = without_query(str(path)).partition("/")
    return {"bucket": bucket, "key": key}


def _recorded(base: type, method: str, operation: str, store: str) -> Callable[..., Any]:
    original = getattr(base, method)

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        path = args[0] if args else next(iter(kwargs.values()), "")
        with begin(operation, store, **_place(path)):
            return original(self, *args, **kwargs)

    call.__name__ = call.__qualname__ = method
    call.__doc__ = original.__doc__
    return call


def _replacement(base: type, store: str) -> type:
    class Kind(type(base)):  # type: ignore[misc]
        """File systems that C++ makes, such as those of from_uri(), are of this class as well."""

        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, base)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, base)

    body = {
        method: _recorded(base, method, operation, store)
        for method, operation in _OPERATIONS.items()
        if hasattr(base, method)
    }
    # Where pickle finds it.
    made: type = Kind(base.__name__, (base,), {**body, "__module__": "pyarrow.fs"})
    return made


def instrument(module: Any, patches: Patches) -> None:
    for name, store in (("S3FileSystem", "s3"), ("GcsFileSystem", "gs")):
        base = getattr(module, name, None)
        if isinstance(base, type):
            patches.set((module,), name, _replacement(base, store))

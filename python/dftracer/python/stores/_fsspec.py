"""fsspec: files with a cache, local copies, and the calls that wait for its event loop.

Its requests are those of the libraries below it (s3fs: aiobotocore). What is recorded here is what
the program asked for, on the thread that asked: layer `file` and layer `call`. The difference of
the bytes is the read amplification of the cache.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from dftracer import _core
from dftracer.python.stores._asker import ASKING, asker
from dftracer.python.stores._request import begin, host_of, path_of, without_query
from dftracer.python.torch._patch import Patches

__all__ = ["instrument_caches", "instrument_calls", "instrument_files", "instrument_local_copies"]

Call = Callable[..., Any]
# Other names of a protocol.
_STORES = {"s3a": "s3", "gcs": "gs", "https": "http"}
# Whether what a call does is recorded already, by the file that makes it.
_INSIDE: ContextVar[bool] = ContextVar("dftracer_inside_fsspec", default=False)


def _store_of(fs: Any) -> str:
    protocol = fs.protocol
    name = protocol if isinstance(protocol, str) else str(protocol[0])
    return _STORES.get(name, name)


def _place(fs: Any, path: Any) -> dict[str, Any]:
    """Store, bucket or host, and key of a path of fsspec."""
    store = _store_of(fs)
    path = str(path)
    if "://" in path and store in ("http", "file"):
        return {"store": store, "host": host_of(path), "key": path_of(path)}
    bucket, _, key = without_query(path.rpartition("://")[2]).partition("/")
    return {"store": store, "bucket": bucket, "key": key}


# ---- Files with a cache --------------------------------------------------------------------------


class _Fetcher:
    """Fills a cache. A class, and not a function, because a cache may be pickled."""

    def __init__(self, fetch: Call) -> None:
        self.fetch = fetch
        self.count = 0  # fetches, of all threads

    def __call__(self, start: Any, end: Any, *args: Any, **kwargs: Any) -> Any:
        self.count += 1
        if not _core.active():
            return self.fetch(start, end, *args, **kwargs)
        try:
            file = self.fetch.__self__  # type: ignore[attr-defined]
            place = _place(file.fs, file.path)
        except Exception:  # not the method of a file
            return self.fetch(start, end, *args, **kwargs)
        size = end - start if isinstance(start, int) and isinstance(end, int) else None
        request = begin("fetch", **place, offset=start, size=size, layer="cache")
        token = _INSIDE.set(True)
        with request:
            try:
                found = self.fetch(start, end, *args, **kwargs)
            finally:
                _INSIDE.reset(token)
            with contextlib.suppress(TypeError):
                request.delivered(len(found))
            return found


def instrument_caches(module: Any, patches: Patches) -> None:
    def make(original: Call) -> Call:
        def __init__(self: Any, blocksize: Any, fetcher: Any, *args: Any, **kwargs: Any) -> None:
            wrapped = fetcher if isinstance(fetcher, _Fetcher) else _Fetcher(fetcher)
            original(self, blocksize, wrapped, *args, **kwargs)

        return __init__

    patches.replace((module.BaseCache,), "__init__", make)


def _fetches(file: Any) -> int:
    fetcher = getattr(getattr(file, "cache", None), "fetcher", None)
    return fetcher.count if isinstance(fetcher, _Fetcher) else 0


def instrument_files(module: Any, patches: Patches) -> None:
    def make(original: Call) -> Call:
        def read(self: Any, length: Any = -1, *args: Any, **kwargs: Any) -> Any:
            if not _core.active():
                return original(self, length, *args, **kwargs)
            try:
                place = _place(self.fs, self.path)
                offset = self.loc
                end = self.size if self.size is not None else None
                size = length if isinstance(length, int) and length >= 0 else None
                if size is None and end is not None:
                    size = max(end - offset, 0)
                before = _fetches(self)
            except Exception:  # a file of another kind
                return original(self, length, *args, **kwargs)
            request = begin("read", **place, offset=offset, size=size, layer="file")
            with request:
                found = original(self, length, *args, **kwargs)
                request.delivered(len(found))
                request.cached = "miss" if _fetches(self) != before else "hit"
                return found

        return read

    patches.replace((module.AbstractBufferedFile,), "read", make)


# ---- Local copies --------------------------------------------------------------------------------


def instrument_local_copies(module: Any, patches: Patches) -> None:
    def make(original: Call) -> Call:
        def _open(self: Any, path: Any, mode: Any = "rb", *args: Any, **kwargs: Any) -> Any:
            if not _core.active() or "r" not in str(mode):
                return original(self, path, mode, *args, **kwargs)
            try:
                place = _place(self.fs, self.fs._strip_protocol(path))
                cached = "hit" if self._check_file(path) else "miss"
            except Exception:  # another version of the library
                return original(self, path, mode, *args, **kwargs)
            request = begin("open", **place, layer="copy")
            request.cached = cached
            with request:
                return original(self, path, mode, *args, **kwargs)

        return _open

    for name in ("WholeFileCacheFileSystem", "SimpleCacheFileSystem"):
        kind = getattr(module, name, None)
        if kind is not None and "_open" in vars(kind):
            patches.replace((kind,), "_open", make)


# ---- Calls that wait for the event loop ----------------------------------------------------------


def instrument_calls(module: Any, patches: Patches) -> None:
    def make(original: Call) -> Call:
        def sync(loop: Any, func: Any, *args: Any, timeout: Any = None, **kwargs: Any) -> Any:
            if not _core.active():
                return original(loop, func, *args, timeout=timeout, **kwargs)
            # The loop runs on another thread, in a copy of this context.
            token = ASKING.set(asker())
            try:
                fs = getattr(func, "__self__", None)
                named = bool(args) and isinstance(args[0], (str, list, dict))
                if not named or _INSIDE.get() or not hasattr(fs, "protocol"):
                    return original(loop, func, *args, timeout=timeout, **kwargs)
                name = str(getattr(func, "__name__", "call")).lstrip("_")
                with begin(name, **_asked(fs, args), layer="call"):
                    return original(loop, func, *args, timeout=timeout, **kwargs)
            finally:
                ASKING.reset(token)

        return sync

    patches.replace((module,), "sync", make)


def _asked(fs: Any, args: tuple[Any, ...]) -> dict[str, Any]:
    """The place of a call whose first argument is a path."""
    try:
        if args and isinstance(args[0], str):
            return _place(fs, fs._strip_protocol(args[0]))
        return {"store": _store_of(fs)}
    except Exception:  # a file system of another kind
        return {"store": "unknown"}

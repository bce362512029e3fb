"""obstore: the functions of its module, which the methods of its stores call.

The library is written in Rust: one span stands for all attempts of an operation, and retries and
statuses are not seen.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from dftracer.python.stores._botocore import Either
from dftracer.python.stores._request import begin
from dftracer.python.torch._patch import Patches

__all__ = ["instrument"]

Call = Callable[..., Any]
_STORES = {"S3Store": "s3", "GCSStore": "gs", "AzureStore": "az", "HTTPStore": "http"}
_OPERATIONS = {
    "copy": "CopyObject",
    "delete": "DeleteObject",
    "get": "GetObject",
    "get_range": "GetObject",
    "get_ranges": "GetObjectRanges",
    "head": "HeadObject",
    "list_with_delimiter": "ListObjects",
    "put": "PutObject",
    "rename": "RenameObject",
}


def _size_of(data: Any) -> int | None:
    if isinstance(data, (str, int)):
        return None
    try:
        return memoryview(data).nbytes
    except TypeError:  # a file, an iterator
        return None


def _range(kwargs: dict[str, Any]) -> tuple[int | None, int | None]:
    """Offset and size of get_range."""
    start, end, length = (kwargs.get(name) for name in ("start", "end", "length"))
    if not isinstance(start, int):
        return None, None
    if isinstance(length, int):
        return start, length
    return start, end - start if isinstance(end, int) else None


def _begin(name: str, store: Any, path: Any, args: Any, kwargs: Any, detached: bool) -> Any:
    """None for a store that is none: of local files, or in memory."""
    kind = next((_STORES[k.__name__] for k in type(store).__mro__ if k.__name__ in _STORES), None)
    if kind is None:
        return None
    try:
        config = getattr(store, "config", None) or {}
        bucket = config.get("bucket") or config.get("container_name")
        key = path if isinstance(path, str) else None
        offset, size = _range(kwargs) if name == "get_range" else (None, None)
        if name == "put":
            size = _size_of(args[0] if args else kwargs.get("file"))
        prefix = getattr(store, "prefix", None)
        if prefix is not None and key is not None:
            key = f"{str(prefix).strip('/')}/{key}"
    except Exception:  # another version of the library
        return None
    return begin(
        _OPERATIONS[name], kind, bucket=bucket, key=key, offset=offset, size=size, detached=detached
    )


def _total(found: Any) -> int | None:
    if isinstance(found, (list, tuple)):
        sizes = [_size_of(part) for part in found]
        return None if None in sizes else sum(size or 0 for size in sizes)
    return _size_of(found)


class _Result:
    """A GetResult whose body reports that it is read."""

    __slots__ = ("_inner", "_request")

    def __init__(self, inner: Any, request: Either) -> None:
        self._inner = inner
        self._request = request
        first, last = inner.range
        request.size = last - first
        request.first_byte()
        request.delivered(0)
        request.detach()

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # what isinstance() asks
        return type(self._inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def _read(self, data: Any) -> Any:
        self._request.delivered(_size_of(data) or 0)
        self._request.end()
        return data

    def bytes(self) -> Any:
        return self._read(self._inner.bytes())

    async def bytes_async(self) -> Any:
        return self._read(await self._inner.bytes_async())

    def buffer(self) -> Any:
        return self._read(self._inner.buffer())

    async def buffer_async(self) -> Any:
        return self._read(await self._inner.buffer_async())

    def _chunks(self, chunks: Iterator[Any]) -> Iterator[Any]:
        for chunk in chunks:
            self._request.delivered(_size_of(chunk) or 0)
            yield chunk
        self._request.end()

    async def _chunks_async(self, chunks: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for chunk in chunks:
            self._request.delivered(_size_of(chunk) or 0)
            yield chunk
        self._request.end()

    def stream(self, *args: Any, **kwargs: Any) -> Any:
        chunks = self._inner.stream(*args, **kwargs)
        return _Stream(self._chunks(chunks), self._chunks_async(chunks))

    def __iter__(self) -> Any:
        return self._chunks(iter(self._inner))

    def __aiter__(self) -> Any:
        return self._chunks_async(self._inner.__aiter__())


class _Stream:
    """Both kinds of iterator, as the library's own is."""

    def __init__(self, plain: Iterator[Any], awaited: AsyncIterator[Any]) -> None:
        self._plain = plain
        self._awaited = awaited

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        return next(self._plain)

    def __aiter__(self) -> Any:
        return self

    async def __anext__(self) -> Any:
        return await self._awaited.__anext__()


def _finish(name: str, request: Either, found: Any) -> Any:
    try:
        if name == "get":
            return _Result(found, request)
        if name in ("get_range", "get_ranges"):
            count = _total(found)
        else:
            count = request.size if name == "put" else None
        if count is not None:
            request.delivered(count)
            if request.size is None:
                request.size = count
    except Exception:  # another version of the library
        pass
    request.end()
    return found


def instrument(module: Any, patches: Patches) -> None:
    def maker(name: str) -> Callable[[Call], Call]:
        def make(original: Call) -> Call:
            def function(store: Any, *args: Any, **kwargs: Any) -> Any:
                request = _begin(name, store, args[0] if args else kwargs.get("path"), args[1:],
                                 kwargs, False)  # fmt: skip
                if request is None:
                    return original(store, *args, **kwargs)
                try:
                    found = original(store, *args, **kwargs)
                except BaseException as error:
                    request.fail(error)
                    raise
                return _finish(name, request, found)

            return function

        return make

    def maker_async(name: str) -> Callable[[Call], Call]:
        def make(original: Call) -> Call:
            async def function(store: Any, *args: Any, **kwargs: Any) -> Any:
                request = _begin(name, store, args[0] if args else kwargs.get("path"), args[1:],
                                 kwargs, True)  # fmt: skip
                if request is None:
                    return await original(store, *args, **kwargs)
                try:
                    found = await original(store, *args, **kwargs)
                except BaseException as error:
                    request.fail(error)
                    raise
                return _finish(name, request, found)

            return function

        return make

    for name in _OPERATIONS:
        patches.replace((module,), name, maker(name))
        patches.replace((module,), f"{name}_async", maker_async(name))

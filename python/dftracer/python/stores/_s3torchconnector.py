"""s3torchconnector: the operations of its S3 client, whose streams are native.

A read is one request, from the first byte range that a reader asks for to the end of its stream.
Statuses and retries are not seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dftracer.python.stores._botocore import Either
from dftracer.python.stores._request import begin
from dftracer.python.torch._patch import Patches

__all__ = ["instrument"]

Call = Callable[..., Any]
_ATTRIBUTE = "_dftracer"  # of writers
_PLAIN = {"delete_object": "DeleteObject", "head_object": "HeadObject"}


class _Stream:
    """A stream of bytes that counts them."""

    def __init__(self, stream: Any, request: Either) -> None:
        self._stream = stream
        self._request = request
        request.delivered(0)
        request.detach()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        try:
            chunk = next(self._stream)
        except StopIteration:
            self._request.end()
            raise
        except BaseException as error:
            self._request.fail(error)
            raise
        self._request.first_byte()
        self._request.delivered(len(chunk))
        return chunk


def instrument(module: Any, patches: Patches) -> None:
    def make_get(original: Call) -> Call:
        def _get_object_stream(self: Any, bucket: Any, key: Any, *args: Any, **kwargs: Any) -> Any:
            first, last = (*args, None, None)[:2]
            first = kwargs.get("start", first)
            last = kwargs.get("end", last)
            size = last - (first or 0) if isinstance(last, int) else None
            request = begin("GetObject", "s3", bucket=bucket, key=key, offset=first, size=size)
            try:
                return _Stream(original(self, bucket, key, *args, **kwargs), request)
            except BaseException as error:
                request.fail(error)
                raise

        return _get_object_stream

    def maker(operation: str) -> Callable[[Call], Call]:
        def make(original: Call) -> Call:
            def call(self: Any, bucket: Any, key: Any, *args: Any, **kwargs: Any) -> Any:
                with begin(operation, "s3", bucket=bucket, key=key):
                    return original(self, bucket, key, *args, **kwargs)

            return call

        return make

    def make_put(original: Call) -> Call:
        def put_object(self: Any, bucket: Any, key: Any, *args: Any, **kwargs: Any) -> Any:
            request = begin("PutObject", "s3", bucket=bucket, key=key)
            try:
                writer = original(self, bucket, key, *args, **kwargs)
            except BaseException as error:
                request.fail(error)
                raise
            request.detach()
            setattr(writer, _ATTRIBUTE, request)
            return writer

        return put_object

    def make_close(original: Call) -> Call:
        def close(self: Any, *args: Any, **kwargs: Any) -> Any:
            request: Either | None = self.__dict__.pop(_ATTRIBUTE, None)
            if request is None:
                return original(self, *args, **kwargs)
            with request:
                found = original(self, *args, **kwargs)
                request.size = getattr(self, "_position", None)
                if request.size is not None:
                    request.delivered(request.size)
                return found

        return close

    client = module.S3Client
    patches.replace((client,), "_get_object_stream", make_get)
    patches.replace((client,), "put_object", make_put)
    patches.replace((module.S3Writer,), "close", make_close)
    for name, operation in _PLAIN.items():
        patches.replace((client,), name, maker(operation))

"""aiobotocore, and with it s3fs: as botocore, in coroutines."""

from __future__ import annotations

import importlib
from typing import Any

from dftracer.python.stores._botocore import (
    Call,
    begin_operation,
    chunk_read,
    finish,
    refused,
    request_of,
    sent,
)
from dftracer.python.stores._request import CURRENT
from dftracer.python.torch._patch import Patches

__all__ = ["instrument"]


def instrument(module: Any, patches: Patches) -> None:
    endpoint: Any = importlib.import_module("aiobotocore.endpoint")
    response: Any = importlib.import_module("aiobotocore.response")

    def make_call(original: Call) -> Call:
        async def _make_api_call(self: Any, operation_name: Any, *args: Any, **kwargs: Any) -> Any:
            # Other tasks run on the thread while this one waits.
            request = begin_operation(self, operation_name, args, detached=True)
            if request is None:
                return await original(self, operation_name, *args, **kwargs)
            token = CURRENT.set(request)
            try:
                found = await original(self, operation_name, *args, **kwargs)
            except BaseException as error:
                refused(request, error)
                raise
            finally:
                CURRENT.reset(token)
            finish(operation_name, request, found)
            return found

        return _make_api_call

    def make_send(original: Call) -> Call:
        async def _send(self: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
            current = CURRENT.get()
            if current is None:
                return await original(self, request, *args, **kwargs)
            sent(current, request)
            answer = await original(self, request, *args, **kwargs)
            current.answered(getattr(answer, "status_code", None))
            return answer

        return _send

    def make_read(original: Call) -> Call:
        async def read(self: Any, amt: Any = None, *args: Any, **kwargs: Any) -> Any:
            chunk = await _guarded(self, original, amt, *args, **kwargs)
            request = request_of(self)
            if request is not None:
                chunk_read(self, request, amt, len(chunk))
            return chunk

        return read

    def make_readinto(original: Call) -> Call:
        async def readinto(self: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
            count = await _guarded(self, original, b, *args, **kwargs)
            request = request_of(self)
            if request is not None:
                chunk_read(self, request, len(b), count)
            return count

        return readinto

    def make_close(original: Call) -> Call:
        def close(self: Any, *args: Any) -> Any:
            request = request_of(self)
            if request is not None:
                request.end()
            return original(self, *args)

        return close

    patches.replace((module.AioBaseClient,), "_make_api_call", make_call)
    patches.replace((endpoint.AioEndpoint,), "_send", make_send)
    for name in ("AioStreamingBody", "AioHttpxStreamingBody", "StreamingBody"):
        body = getattr(response, name, None)
        if body is None or getattr(body.read, "__wrapped__", None) is not None:
            continue
        patches.replace((body,), "read", make_read)
        patches.replace((body,), "readinto", make_readinto)
        patches.replace((body,), "close", make_close)
        patches.replace((body,), "aclose", make_close)


async def _guarded(body: Any, original: Call, *args: Any, **kwargs: Any) -> Any:
    try:
        return await original(body, *args, **kwargs)
    except BaseException as error:
        request = request_of(body)
        if request is not None:
            request.fail(error)
        raise

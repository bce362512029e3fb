"""botocore, and with it boto3 and smart_open: the operations of S3 clients, and their bodies."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, Union

from dftracer.python.stores._request import CURRENT, Nothing, Request, begin
from dftracer.python.torch._patch import Patches

__all__ = [
    "answered",
    "begin_operation",
    "chunk_read",
    "instrument",
    "parse_range",
    "refused",
    "sent",
]

Call = Callable[..., Any]
Either = Union[Request, Nothing]
_ATTRIBUTE = "_dftracer"  # of bodies


def parse_range(text: object) -> tuple[int | None, int | None]:
    """Offset and size of a header Range."""
    if not isinstance(text, str) or not text.startswith("bytes="):
        return None, None
    first, dash, last = text[6:].partition("-")
    if not dash or not first.isdecimal():
        return None, None
    offset = int(first)
    return offset, int(last) - offset + 1 if last.isdecimal() else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def begin_operation(
    client: Any, name: str, given: tuple[Any, ...], detached: bool = False
) -> Either | None:
    """None for a client of another service, which is no store."""
    try:
        if client._service_model.service_name != "s3":
            return None
        asked = given[0] if given and isinstance(given[0], Mapping) else {}
        offset, size = parse_range(asked.get("Range"))
        key = asked.get("Key", asked.get("Prefix"))
        bucket = _text(asked.get("Bucket"))
    except Exception:  # another version of the library
        return None
    return begin(
        name, "s3", bucket=bucket, key=_text(key), offset=offset, size=size, detached=detached
    )


def _note_metadata(request: Either, response: Any) -> None:
    about = response.get("ResponseMetadata", {}) if isinstance(response, Mapping) else {}
    status, retries = about.get("HTTPStatusCode"), about.get("RetryAttempts")
    if isinstance(status, int):
        request.status = status
    if isinstance(retries, int):
        request.retries = retries


def answered(request: Either, response: Any) -> Any:
    """The operation has returned. Gives the body that is still to be read, if there is one."""
    _note_metadata(request, response)
    length = response.get("ContentLength")
    body = response.get("Body")
    if hasattr(body, "read") and isinstance(length, int):
        if request.size is None:
            request.size = length
        return body
    return None


def refused(request: Either, error: BaseException) -> None:
    _note_metadata(request, getattr(error, "response", None))
    request.fail(error)


def sent(request: Either, http_request: Any) -> None:
    """An attempt begins. What an upload sends is in its headers, checksums aside."""
    request.attempt()
    try:
        if http_request.method not in ("PUT", "POST"):
            return
        headers = http_request.headers
        size = headers.get("X-Amz-Decoded-Content-Length") or headers.get("Content-Length")
        if isinstance(size, bytes):
            size = size.decode("ascii", "replace")
        if size is not None and str(size).isdecimal():
            request.size = int(size)
    except Exception:  # another version of the library
        pass


def uploaded(request: Either) -> None:
    """What an upload delivers is what it sent."""
    if request.size is not None and request.error is None:
        request.delivered(request.size)


def _is_upload(name: str) -> bool:
    return name in ("PutObject", "UploadPart")


def chunk_read(body: Any, request: Either, amount: Any, count: int) -> None:
    """The program has read a part of a body; at the last byte the request is over."""
    request.delivered(count)
    whole = amount is None or (isinstance(amount, int) and amount < 0)
    try:
        length = body._content_length
        known = length is not None and body._amount_read >= int(length)
    except (AttributeError, TypeError, ValueError):  # another version of the library
        known = False
    if whole or known or (not count and amount != 0):
        request.end()


def finish(name: str, request: Either, response: Any) -> None:
    """What follows from a response: the end, or a body that reports when it is read."""
    try:
        body = answered(request, response)
        if body is None:
            if _is_upload(name):
                uploaded(request)
            request.end()
            return
        request.delivered(0)
        request.detach()
        setattr(body, _ATTRIBUTE, request)
    except Exception:  # another version of the library
        request.end()


def request_of(body: Any) -> Either | None:
    found: Either | None = body.__dict__.get(_ATTRIBUTE)
    return found


def instrument(module: Any, patches: Patches) -> None:
    endpoint: Any = importlib.import_module("botocore.endpoint")
    response: Any = importlib.import_module("botocore.response")

    def make_call(original: Call) -> Call:
        def _make_api_call(self: Any, operation_name: Any, *args: Any, **kwargs: Any) -> Any:
            request = begin_operation(self, operation_name, args)
            if request is None:
                return original(self, operation_name, *args, **kwargs)
            token = CURRENT.set(request)
            try:
                found = original(self, operation_name, *args, **kwargs)
            except BaseException as error:
                refused(request, error)
                raise
            finally:
                CURRENT.reset(token)
            finish(operation_name, request, found)
            return found

        return _make_api_call

    def make_send(original: Call) -> Call:
        def _send(self: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
            current = CURRENT.get()
            if current is None:
                return original(self, request, *args, **kwargs)
            sent(current, request)
            answer = original(self, request, *args, **kwargs)
            current.answered(getattr(answer, "status_code", None))
            return answer

        return _send

    def make_read(original: Call) -> Call:
        def read(self: Any, amt: Any = None, *args: Any, **kwargs: Any) -> Any:
            chunk = _guarded(self, original, amt, *args, **kwargs)
            request = request_of(self)
            if request is not None:
                chunk_read(self, request, amt, len(chunk))
            return chunk

        return read

    def make_readinto(original: Call) -> Call:
        def readinto(self: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
            count = _guarded(self, original, b, *args, **kwargs)
            request = request_of(self)
            if request is not None:
                chunk_read(self, request, len(b), count)
            return count

        return readinto

    def make_close(original: Call) -> Call:
        def close(self: Any, *args: Any) -> Any:
            request = request_of(self)
            if request is not None:
                _close(self, request)
            return original(self, *args)

        return close

    bodies = response.StreamingBody
    patches.replace((module.BaseClient,), "_make_api_call", make_call)
    patches.replace((endpoint.Endpoint,), "_send", make_send)
    patches.replace((bodies,), "read", make_read)
    patches.replace((bodies,), "readinto", make_readinto)
    patches.replace((bodies,), "close", make_close)
    patches.replace((bodies,), "__exit__", make_close)


def _guarded(body: Any, original: Call, *args: Any, **kwargs: Any) -> Any:
    try:
        return original(body, *args, **kwargs)
    except BaseException as error:
        request = request_of(body)
        if request is not None:
            request.fail(error)
        raise


def _close(body: Any, request: Either) -> None:
    """`with body as raw` reads from the stream below the body, which counts by itself."""
    try:
        below = body._raw_stream.tell() - body._amount_read
    except Exception:  # no stream that counts
        below = 0
    if below > 0:
        request.delivered(below)
    request.end()

"""HTTP exchanges of fsspec's http file system and of gcsfs, which both use aiohttp.

Only sessions that these two open are recorded: a program's own use of aiohttp is not a store.
"""

from __future__ import annotations

import importlib
import weakref
from collections.abc import Callable
from typing import Any

from dftracer.python.stores._botocore import Either, parse_range
from dftracer.python.stores._request import begin, host_of, path_of
from dftracer.python.torch._patch import Patches

__all__ = ["instrument_fsspec_http", "instrument_gcsfs"]

Call = Callable[..., Any]
Describe = Callable[[str, str, bool], dict[str, Any]]
_ATTRIBUTE = "_dftracer"  # of responses
# How to describe a request of each session: by method, address, and whether it fetches contents.
_sessions: weakref.WeakKeyDictionary[Any, Describe] = weakref.WeakKeyDictionary()


def _plain(method: str, url: str, _: bool) -> dict[str, Any]:
    return {"operation": method, "store": "http", "host": host_of(url), "key": path_of(url)}


_OF_OBJECTS = {"GET": "HeadObject", "DELETE": "DeleteObject", "PUT": "PutObject"}


def _of_google(method: str, url: str, contents: bool) -> dict[str, Any]:
    """Addresses of Google Cloud Storage: .../b/BUCKET/o/KEY, /upload/... and /download/..."""
    from urllib.parse import unquote

    path = path_of(url)
    _, found, rest = f"/{path}".partition("/b/")
    bucket, _, below = rest.partition("/")
    if not found:
        return {"operation": method, "store": "gs", "host": host_of(url), "key": path}
    kind, _, key = below.partition("/")
    operation = method
    if kind == "o" and path.startswith("upload/"):
        operation = "PutObject"
    elif kind == "o" and key:
        operation = "GetObject" if contents and method == "GET" else _OF_OBJECTS.get(method, method)
    elif kind == "o" and method == "GET":
        operation = "ListObjects"
    elif not kind and method == "GET":
        operation = "HeadBucket"
    return {
        "operation": operation,
        "store": "gs",
        "bucket": unquote(bucket),
        "key": unquote(key) or None,
    }


def _begin(describe: Describe, method: str, url: Any, kwargs: dict[str, Any]) -> Either | None:
    try:
        text = str(url)
        params = kwargs.get("params") or {}
        media = "alt=media" in text or dict(params).get("alt") == "media"
        about = describe(method.upper(), text, media)
        headers = {str(k).lower(): v for k, v in dict(kwargs.get("headers") or {}).items()}
        offset, size = parse_range(headers.get("range"))
        return begin(about.pop("operation"), **about, offset=offset, size=size, detached=True)
    except Exception:  # whatever the program gave
        return None


def _instrument_aiohttp(patches: Patches) -> None:
    client: Any = importlib.import_module("aiohttp.client")
    responses: Any = importlib.import_module("aiohttp.client_reqrep")
    if hasattr(client.ClientSession._request, _ATTRIBUTE):
        return

    def make_request(original: Call) -> Call:
        async def _request(self: Any, method: Any, str_or_url: Any, **kwargs: Any) -> Any:
            describe = _sessions.get(self)
            request = _begin(describe, method, str_or_url, kwargs) if describe else None
            if request is None:
                return await original(self, method, str_or_url, **kwargs)
            request.attempt()
            try:
                response = await original(self, method, str_or_url, **kwargs)
            except BaseException as error:
                request.fail(error)
                raise
            _answered(request, response, method)
            return response

        setattr(_request, _ATTRIBUTE, True)
        return _request

    def make_end(original: Call) -> Call:
        def end(self: Any, *args: Any) -> Any:
            _finish(self)
            return original(self, *args)

        return end

    def make_read(original: Call) -> Call:
        async def read(self: Any, *args: Any, **kwargs: Any) -> Any:
            found = await original(self, *args, **kwargs)
            _finish(self)
            return found

        return read

    patches.replace((client.ClientSession,), "_request", make_request)
    patches.replace((responses.ClientResponse,), "read", make_read)
    patches.replace((responses.ClientResponse,), "close", make_end)
    patches.replace((responses.ClientResponse,), "release", make_end)


def _answered(request: Either, response: Any, method: Any) -> None:
    """The head of the answer is here; the body reports when it is read."""
    try:
        request.answered(response.status)
        length = response.headers.get("Content-Length", "")
        if request.size is None and length.isdecimal() and method.upper() == "GET":
            request.size = int(length)
        if not response.content.at_eof() or response.content.total_bytes:
            setattr(response, _ATTRIBUTE, request)
            return
    except Exception:  # another version of the library
        pass
    request.end()


def _finish(response: Any) -> None:
    request: Either | None = response.__dict__.pop(_ATTRIBUTE, None)
    if request is None:
        return
    count = getattr(response.content, "total_bytes", None)
    if isinstance(count, int):
        request.delivered(count)
    request.end()


def _mark_sessions(describe: Describe) -> Callable[[Call], Call]:
    def make(original: Call) -> Call:
        async def opened(self: Any, *args: Any, **kwargs: Any) -> Any:
            session = await original(self, *args, **kwargs)
            known = session if session is not None else getattr(self, "_session", None)
            if known is not None:
                _sessions[known] = describe
            return session

        return opened

    return make


def instrument_fsspec_http(module: Any, patches: Patches) -> None:
    _instrument_aiohttp(patches)
    patches.replace((module.HTTPFileSystem,), "set_session", _mark_sessions(_plain))


def instrument_gcsfs(module: Any, patches: Patches) -> None:
    _instrument_aiohttp(patches)
    patches.replace((module.GCSFileSystem,), "_set_session", _mark_sessions(_of_google))

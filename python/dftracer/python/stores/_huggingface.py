"""huggingface_hub: the HTTP exchanges of its client (httpx, or httpx2), redirections one by one.

Only exchanges that code of huggingface_hub makes are recorded. Files that hf-xet transfers do not
pass through Python: its chunks are not seen.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from dftracer.python.stores._asker import is_called_from
from dftracer.python.stores._botocore import Either, parse_range
from dftracer.python.stores._request import begin, host_of, path_of
from dftracer.python.torch._patch import Patches

__all__ = ["instrument"]

Call = Callable[..., Any]
_PACKAGE = "huggingface_hub"


def _begin(request: Any, detached: bool) -> Either | None:
    if not is_called_from(_PACKAGE):
        return None
    try:
        url = str(request.url)
        offset, size = parse_range(request.headers.get("Range"))
        return begin(
            str(request.method),
            "hf",
            host=host_of(url),
            key=path_of(url),
            offset=offset,
            size=size,
            detached=detached,
        )
    except Exception:  # another version of the library
        return None


def _note(request: Either, response: Any) -> None:
    try:
        request.attempt()
        request.answered(response.status_code)
        length = response.headers.get("Content-Length", "")
        if request.size is None and length.isdecimal() and response.request.method == "GET":
            request.size = int(length)
    except Exception:  # another version of the library
        pass


def instrument(module: Any, patches: Patches) -> None:
    library: Any = getattr(module, "httpx2", None) or getattr(module, "httpx", None)
    if library is None:
        raise ImportError("this version of huggingface_hub uses no httpx")

    class Counted(library.SyncByteStream):  # type: ignore[misc]
        """The body of a response; the request is over when it is closed."""

        def __init__(self, stream: Any, request: Either) -> None:
            self._stream = stream
            self._request = request

        def __getattr__(self, name: str) -> Any:
            return getattr(self._stream, name)

        def __iter__(self) -> Iterator[bytes]:
            for chunk in self._stream:
                self._request.delivered(len(chunk))
                yield chunk

        def close(self) -> None:
            self._stream.close()
            self._request.end()

    class AsyncCounted(library.AsyncByteStream):  # type: ignore[misc]
        def __init__(self, stream: Any, request: Either) -> None:
            self._stream = stream
            self._request = request

        def __getattr__(self, name: str) -> Any:
            return getattr(self._stream, name)

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for chunk in self._stream:
                self._request.delivered(len(chunk))
                yield chunk

        async def aclose(self) -> None:
            await self._stream.aclose()
            self._request.end()

    def make(original: Call) -> Call:
        def _send_single_request(self: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
            mine = _begin(request, detached=False)
            if mine is None:
                return original(self, request, *args, **kwargs)
            try:
                response = original(self, request, *args, **kwargs)
            except BaseException as error:
                mine.fail(error)
                raise
            _note(mine, response)
            mine.detach()
            response.stream = Counted(response.stream, mine)
            return response

        return _send_single_request

    def make_async(original: Call) -> Call:
        async def _send_single_request(self: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
            mine = _begin(request, detached=True)
            if mine is None:
                return await original(self, request, *args, **kwargs)
            try:
                response = await original(self, request, *args, **kwargs)
            except BaseException as error:
                mine.fail(error)
                raise
            _note(mine, response)
            response.stream = AsyncCounted(response.stream, mine)
            return response

        return _send_single_request

    patches.replace((library.Client,), "_send_single_request", make)
    patches.replace((library.AsyncClient,), "_send_single_request", make_async)

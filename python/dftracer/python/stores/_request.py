"""One request to an object store as an event of the category STORE.

What enters the trace is named here, argument by argument: bucket, host, key, numbers, the class of
an exception. Headers, query strings, bodies and the text of exceptions have no way in, and with
them no signature, token or key.
"""

from __future__ import annotations

import time
import weakref
from contextvars import ContextVar
from types import TracebackType
from typing import Any

from dftracer import _core
from dftracer._core import Node, Region
from dftracer.python.ai import ai
from dftracer.python.stores._asker import asker

__all__ = ["CURRENT", "Nothing", "Request", "begin", "host_of", "node", "path_of", "without_query"]

CATEGORY = "STORE"
THROTTLED = (429, 503)
_nodes: dict[str, Node] = {}
# Requests whose bodies the program still reads: at its end they are recorded as they are.
_open: weakref.WeakSet[Request] = weakref.WeakSet()


def node(name: str) -> Node:
    """The node of an operation. As a child of `ai` it has the epoch and the step."""
    known = _nodes.get(name)
    if known is None:
        known = _nodes[name] = Node()
        known._define(CATEGORY, name, ai)
    return known


def without_query(text: str) -> str:
    """Without what may hold a secret: user and password, query and fragment."""
    text = text.partition("?")[0].partition("#")[0]
    scheme, colon, rest = text.rpartition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}{colon}{authority.rpartition('@')[2]}{slash}{path}" if colon else text


def host_of(url: str) -> str:
    """Host and port of an address."""
    rest = without_query(url).partition("://")[2]
    return rest.partition("/")[0]


def path_of(url: str) -> str:
    """The path of an address, without its first slash."""
    rest = without_query(url).partition("://")[2]
    return rest.partition("/")[2]


class Nothing:
    """A request that is not recorded."""

    status: int | None = None
    retries: int | None = None
    size: int | None = None
    error: str | None = None
    cached: str | None = None  # hit or miss

    def attempt(self) -> None: ...

    def answered(self, status: int | None) -> None: ...

    def first_byte(self) -> None: ...

    def delivered(self, count: int) -> None: ...

    def detach(self) -> None: ...

    def fail(self, error: BaseException) -> None: ...

    def end(self) -> None: ...

    def __enter__(self) -> Nothing:
        return self

    def __exit__(self, *_: object) -> None: ...


class Request:
    """From its beginning to the last byte of its answer, or to the end of the interest in it."""

    __slots__ = (
        "__weakref__",
        "_args",
        "_attempts",
        "_begun",
        "_count",
        "_region",
        "_throttled",
        "_ttfb",
        "cached",
        "error",
        "retries",
        "size",
        "status",
    )

    def __init__(self, operation: str, args: dict[str, Any], detached: bool) -> None:
        self.status: int | None = None
        self.retries: int | None = None
        self.size: int | None = args.get("size")
        self.error: str | None = None
        self.cached: str | None = None
        self._args = args
        self._attempts = 0
        self._throttled = 0
        self._count: int | None = None
        self._ttfb: int | None = None
        who = asker()
        if who.line is not None:
            args["line"] = who.line
        if who.batch is not None:
            args["batch"] = who.batch
        self._region: Region | None = Region(node(operation))
        self._begun = time.perf_counter_ns()
        if detached:
            self.detach()

    def _passed(self) -> int:
        """Microseconds, whatever the unit of the trace: a report has to know it."""
        return (time.perf_counter_ns() - self._begun) // 1000

    def attempt(self) -> None:
        """It is sent, once more."""
        self._attempts += 1

    def answered(self, status: int | None) -> None:
        """The head of an answer is here; of several attempts, the last one counts."""
        self._ttfb = self._passed()
        self.status = status
        if status in THROTTLED:
            self._throttled += 1

    def first_byte(self) -> None:
        if self._ttfb is None:
            self._ttfb = self._passed()

    def delivered(self, count: int) -> None:
        self._count = count if self._count is None else self._count + count

    def detach(self) -> None:
        """It goes on while the thread does something else."""
        if self._region is not None:
            self._region.detach()
            _open.add(self)

    def fail(self, error: BaseException) -> None:
        self.error = type(error).__name__
        self.end()

    def end(self) -> None:
        region, self._region = self._region, None
        if region is None:
            return
        args = self._args
        retries = self.retries
        if retries is None and self._attempts:
            retries = self._attempts - 1
        for name, value in (
            ("size", self.size),
            ("bytes", self._count),
            ("status", self.status),
            ("retries", retries),
            ("throttled", self._throttled or None),
            ("ttfb", self._ttfb),
            ("cached", self.cached),
            ("error", self.error),
        ):
            if value is not None:
                args[name] = value
        region.end(args)

    def __enter__(self) -> Request:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            self.fail(error)
        self.end()

    def __del__(self) -> None:
        self.end()


# What the transport below an operation reports to.
CURRENT: ContextVar[Request | Nothing | None] = ContextVar("dftracer_request", default=None)
_NOTHING = Nothing()


def begin(
    operation: str,
    store: str,
    *,
    bucket: str | None = None,
    host: str | None = None,
    key: str | None = None,
    offset: int | None = None,
    size: int | None = None,
    layer: str | None = None,
    detached: bool = False,
) -> Request | Nothing:
    """Begins a request, if a trace is being written. Never raises."""
    if not _core.active():
        return _NOTHING
    try:
        args: dict[str, Any] = {"store": store}
        for name, value in (
            ("layer", layer),
            ("bucket", bucket),
            ("host", host),
            ("key", key),
            ("offset", offset),
            ("size", size),
        ):
            if value is not None:
                args[name] = value
        return Request(operation, args, detached)
    except Exception:  # whatever a library gives us
        return _NOTHING


def end_open() -> None:
    """At the end of the program: what it never read to the end."""
    for request in list(_open):
        request.end()

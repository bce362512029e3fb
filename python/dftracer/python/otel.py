"""The spans of OpenTelemetry in the trace, as regions of the category OTEL.

`dftracer run` adds a processor to every TracerProvider that the program makes. A program that
starts its trace itself adds one:

    provider.add_span_processor(DFTracerSpanProcessor())

It exports nothing and changes no span. docs/howto/annotated.md lists what is recorded.
"""

from __future__ import annotations

import atexit
import functools
import re
import sys
import threading
import time
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from dftracer.python._switch import ON

if ON:
    from dftracer import _core
    from dftracer._core import Node, Region

__all__ = ["DFTracerSpanProcessor", "instrument"]

CATEGORY = "OTEL"
# Of one span: the rest is left out, and counted.
MOST_ATTRIBUTES = 64
MOST_EVENTS = 128
LONGEST_TEXT = 1024
MOST_ITEMS = 64
# A span whose begin is given by the program, and not the moment at which it is made.
_GIVEN_NS = 50_000_000
# Spans that nobody ends must not fill the memory.
_MOST_OPEN = 65536
_SECRET = re.compile(
    r"authorization|cookie|passw|secret|token|api[-_.]?key|credential", re.IGNORECASE
)
# Arguments that every event has.
_OURS = frozenset(
    ("hhash", "p_idx", "level", "trace_id", "span_id", "parent_id", "status", "error")
)
_nodes: dict[str, Any] = {}
# By trace and span id: the span and its region, or None if its begin was given.
_open: dict[tuple[int, int], tuple[Any, Any]] = {}
_lock = threading.Lock()


def _node(name: str) -> Any:
    known = _nodes.get(name)
    if known is None:
        if len(_nodes) > 4096:  # names with numbers in them
            _nodes.clear()
        known = _nodes[name] = Node()
        known._define(CATEGORY, name)
    return known


def _plain(value: Any) -> Any:
    """A value of an attribute: bool, int, float, text, or a sequence of those."""
    if isinstance(value, str):
        return value if len(value) <= LONGEST_TEXT else value[:LONGEST_TEXT]
    if isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value[:MOST_ITEMS]]
    return str(value)[:LONGEST_TEXT]


def _put(args: dict[str, Any], attributes: Mapping[str, Any] | None) -> None:
    left_out = 0
    for key, value in (attributes or {}).items():
        if len(args) >= MOST_ATTRIBUTES:
            left_out += 1
            continue
        name = f"attribute.{key}" if key in _OURS else str(key)[:LONGEST_TEXT]
        args[name] = "***" if _SECRET.search(name) else _plain(value)
    if left_out:
        args["attributes_left_out"] = left_out


def _in_event_loop() -> bool:
    """Tasks that take turns on one thread have spans that cross."""
    asyncio = sys.modules.get("asyncio.events")
    return asyncio is not None and asyncio._get_running_loop() is not None


def _units() -> int:
    """Nanoseconds per unit of the trace's time."""
    now = _core.time()
    ratio = time.time_ns() / now if now else 1000.0
    return min((1, 1000, 10**6, 10**9), key=lambda unit: abs(unit / ratio - 1))


def _arguments(span: Any, context: Any) -> dict[str, Any]:
    args: dict[str, Any] = {
        "trace_id": f"{context.trace_id:032x}",
        "span_id": f"{context.span_id:016x}",
    }
    if span.parent is not None:
        args["parent_id"] = f"{span.parent.span_id:016x}"
    kind = getattr(span.kind, "name", "INTERNAL")
    if kind != "INTERNAL":
        args["kind"] = kind
    status = getattr(span.status, "status_code", None)
    if status is not None and status.name != "UNSET":
        args["status"] = status.name
        if span.status.description:
            args["error"] = _plain(span.status.description)
    _put(args, span.attributes)
    return args


def end_open() -> None:
    """At the end of the program: spans that it never ended, as they are."""
    with _lock:
        left = list(_open.values())
        _open.clear()
    for span, region in left:
        if region is not None:
            region.end({**_arguments(span, span.get_span_context()), "unfinished": True})


class DFTracerSpanProcessor:
    """A SpanProcessor of OpenTelemetry's SDK, by its methods: importing it needs no SDK."""

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        """Never raises, like all that follows: a span belongs to the program."""
        try:
            if ON and _core.active():
                self._begin(span)
        except Exception:
            return

    def _begin(self, span: Any) -> None:
        context = span.get_span_context()
        key = (context.trace_id, context.span_id)
        with _lock:
            if key in _open or len(_open) >= _MOST_OPEN:  # or another processor of ours has it
                return
            if not _open:
                atexit.unregister(end_open)
                atexit.register(end_open)
            _open[key] = span, None
        if abs(time.time_ns() - span.start_time) > _GIVEN_NS:
            return
        region = Region(_node(span.name))
        if _in_event_loop():
            region.detach()
        _open[key] = span, region

    def _on_ending(self, span: Any) -> None:
        return

    def on_end(self, span: Any) -> None:
        try:
            if ON:
                self._end(span)
        except Exception:
            return

    def _end(self, span: Any) -> None:
        context = span.get_span_context()
        with _lock:
            if (key := (context.trace_id, context.span_id)) not in _open:
                return
            _, region = _open.pop(key)
        args = _arguments(span, context)
        ahead = _core.ahead()
        for event in tuple(span.events or ())[:MOST_EVENTS]:
            more: dict[str, Any] = {"span_id": args["span_id"]}
            _put(more, event.attributes)
            _core.instant_at(event.name, CATEGORY, event.timestamp + ahead, more)
        if region is not None:
            region.end(args)
            return
        unit = _units()
        begin = span.start_time + ahead
        _core.complete(
            span.name,
            CATEGORY,
            begin // unit,
            max(0, span.end_time - span.start_time) // unit,
            args,
        )

    def shutdown(self) -> None:
        return

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        return True


def instrument(module: ModuleType) -> None:
    """Gives each TracerProvider that is made from now on a processor. `module` is
    opentelemetry.sdk.trace."""
    if not ON:
        return
    provider = module.TracerProvider
    made = provider.__init__

    @functools.wraps(made)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        self.add_span_processor(DFTracerSpanProcessor())

    provider.__init__ = init

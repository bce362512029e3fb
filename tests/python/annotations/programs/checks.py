"""Runs the checks of a theme in one process: each inside an event of its own, so that the events
which it made can be told from those of the others.

A check is given a decorator; what it decorates is recorded as `forward` of category `compute`. It
runs once for each way to get such a decorator. Run with DFTRACER_ENABLE=0, the same checks must
hold: then they say what undecorated code does.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import json
import sys
import traceback
import types
from collections.abc import Callable
from typing import Any

from dftracer.python import DFTRACER_ENABLE, ai, dft_fn, dftracer

ON = DFTRACER_ENABLE
Decorator = Callable[[Any], Any]

WAYS: dict[str, Callable[[], Decorator]] = {
    "bare": lambda: ai.compute.forward,
    "pinned": lambda: ai.compute.forward(args={"a": 1}),
    "log": lambda: dft_fn("compute").log(name="forward"),
}
_CHECKS: list[tuple[Any, dict[str, Any], list[str]]] = []


def check(
    *events: str, ways: str = "bare pinned log", any_order: bool = False
) -> Callable[[Any], Any]:
    """`events`: what is recorded meanwhile, in the order of the ends: names from the outermost to
    the event's own, then its arguments: "train/fetch count=3". Between threads, `any_order`."""

    def note(function: Any) -> Any:
        expected = {"events": list(events), "any_order": any_order}
        _CHECKS.append((function, expected, ways.split()))
        return function

    return note


def raised(kind: type[BaseException], call: Callable[..., Any], *args: Any) -> BaseException:
    """The exception that a call ends with."""
    try:
        call(*args)
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised")


async def raised_in(kind: type[BaseException], awaitable: Any) -> BaseException:
    """The exception that something awaited ends with."""
    try:
        await awaitable
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised")


def frames(error: BaseException) -> list[tuple[str, int]]:
    """The functions and lines of a traceback, from the outermost on."""
    found = []
    at = error.__traceback__
    while at is not None:
        found.append((at.tb_frame.f_code.co_name, at.tb_lineno))
        at = at.tb_next
    return found


@types.coroutine
def pause() -> Any:
    """To the loop and back."""
    yield


@ai.data.item
def item() -> None:
    """An event to see where it stands."""


def _run(function: Any, way: str) -> str | None:
    given = [WAYS[way]()] if inspect.signature(function).parameters else []
    outer = dft_fn("check", f"{function.__name__}.{way}")
    problem = None
    with outer:
        try:
            made = function(*given)
            if inspect.iscoroutine(made):
                asyncio.run(made)
        except BaseException:
            problem = traceback.format_exc()
        # What was dropped in a cycle ends here and not in the next check.
        gc.collect()
    return problem


def _say(**what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def main() -> None:
    log = dftracer.initialize_log("t.pfw", None, -1)
    wanted = sys.argv[1:]
    for function, expected, ways in _CHECKS:
        for way in ways:
            name = f"{function.__name__}.{way}"
            if wanted and function.__name__ not in wanted:
                continue
            _say(begin=name)
            _say(end=name, problem=_run(function, way), **expected)
    log.finalize()

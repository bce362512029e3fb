"""Decorated asynchronous generators: one event each, from the first item to the end."""

from __future__ import annotations

import asyncio
import collections.abc
import inspect
import sys
import types
from contextlib import asynccontextmanager, suppress
from typing import Any

from checks import Decorator, check, frames, item, main, pause, raised, raised_in


async def count(n: int) -> Any:
    for i in range(n):
        await pause()
        yield i


async def echo(start: Any = None) -> Any:
    answer = start
    while True:
        try:
            answer = yield answer
        except ValueError as error:
            answer = error
        await pause()
        if answer == "end":
            return


@check("forward count=3", "forward count=0", "forward count=2")
async def items(d: Decorator) -> None:
    made = d(count)
    assert [n async for n in made(3)] == [0, 1, 2]
    assert [n async for n in made(0)] == []
    total = 0
    async for n in made(n=2):
        total += n
    else:
        total += 10
    assert total == 11


@check("forward/item", "item", "forward/item", "item", "forward count=2")
async def events_inside_and_between(d: Decorator) -> None:
    @d
    async def work() -> Any:
        for _ in range(2):
            await pause()
            item()
            yield

    async for _ in work():
        item()


@check("forward count=4")
async def sending(d: Decorator) -> None:
    one = d(echo)("first")
    assert await one.__anext__() == "first"
    assert await one.asend(1) == 1
    assert await one.__anext__() is None
    error = ValueError("thrown")
    assert await one.athrow(error) is error
    await raised_in(StopAsyncIteration, one.asend("end"))
    await raised_in(StopAsyncIteration, one.__anext__())


@check("forward count=1", "forward count=1")
async def throwing(d: Decorator) -> None:
    one = d(echo)()
    await one.__anext__()
    error = KeyError("not caught")
    assert await raised_in(KeyError, one.athrow(error)) is error
    await raised_in(StopAsyncIteration, one.__anext__())

    async def fail() -> Any:
        yield 1
        raise ValueError("in the middle")

    async def all_of(made: Any) -> None:
        async for _ in made():
            pass

    recorded = await raised_in(ValueError, all_of(d(fail)))
    plain = await raised_in(ValueError, all_of(fail))
    assert frames(recorded) == frames(plain)


@check("forward/item", "forward count=1")
async def closing(d: Decorator) -> None:
    @d
    async def work() -> Any:
        try:
            yield 1
            yield 2
        finally:
            await pause()
            item()

    one = work()
    await one.__anext__()
    assert await one.aclose() is None
    assert await one.aclose() is None
    await raised_in(StopAsyncIteration, one.__anext__())
    await work().aclose()


@check("forward count=1", "item", "item")
async def left_and_dropped(d: Decorator) -> None:
    """The loop closes what is left, as it does for any."""
    ended = []

    @d
    async def work() -> Any:
        try:
            yield 1
            yield 2
        finally:
            await pause()
            item()
            ended.append(1)

    async for _ in work():
        break
    for _ in range(5):
        await asyncio.sleep(0)
    assert ended == [1]
    item()


@check("forward count=1")
def closed_by_the_loop(d: Decorator) -> None:
    ended = []

    @d
    async def work() -> Any:
        try:
            yield 1
        finally:
            ended.append(1)

    async def run() -> Any:
        one = work()
        await one.__anext__()
        return one

    kept = asyncio.run(run())
    assert ended == [1]
    del kept


@check("forward count=2")
async def entered_while_it_runs(d: Decorator) -> None:
    one = d(count)(2)
    step = one.__anext__()
    step.send(None)
    error = raised(RuntimeError, one.__anext__().send, None)
    assert "already running" in str(error)
    assert raised(StopIteration, step.send, None).value == 0  # type: ignore[attr-defined]
    assert [n async for n in one] == [1]


@check("forward count=2")
async def sending_to_a_fresh_one(d: Decorator) -> None:
    one = d(count)(2)
    error = await raised_in(TypeError, one.asend(1))
    assert "just-started async generator" in str(error)
    assert [n async for n in one] == [0, 1]


@check("forward count=1", "forward count=1")
async def cancelled_in_the_middle(d: Decorator) -> None:
    @d
    async def work() -> Any:
        yield 1
        await asyncio.sleep(60)

    async def all_of() -> None:
        async for _ in work():
            pass

    task = asyncio.ensure_future(all_of())
    await asyncio.sleep(0)
    task.cancel()
    await raised_in(asyncio.CancelledError, task)
    await raised_in(asyncio.TimeoutError, asyncio.wait_for(all_of(), 0.001))


@check(*["forward/item"] * 5, "forward count=3", "forward/item", "forward count=3")
async def two_at_once(d: Decorator) -> None:
    @d
    async def work() -> Any:
        for n in range(3):
            await pause()
            item()
            yield n

    async def all_of() -> list[int]:
        return [n async for n in work()]

    assert await asyncio.gather(all_of(), all_of()) == [[0, 1, 2]] * 2


@check("forward/item", "forward count=1", "forward/item", "forward count=1")
async def context_managers(d: Decorator) -> None:
    @asynccontextmanager
    @d
    async def work() -> Any:
        await pause()
        with suppress(ValueError):
            yield 5
        item()

    async with work() as five:
        assert five == 5
    async with work():
        raise ValueError


@check("forward count=1", "forward count=0")
async def what_a_generator_says_of_itself(d: Decorator) -> None:
    one = d(count)(1)
    assert inspect.isasyncgen(one)
    assert isinstance(one, types.AsyncGeneratorType)
    assert isinstance(one, collections.abc.AsyncGenerator)
    assert one.__aiter__() is one
    assert (one.__name__, one.__qualname__) == ("count", "count")
    assert one.ag_code is count.__code__
    assert one.ag_running is False
    step = one.__anext__()
    assert inspect.isawaitable(step)
    assert await step == 0
    assert [n async for n in one] == []
    if sys.version_info >= (3, 10):
        assert await anext(aiter(d(count)(0)), 7) == 7  # noqa: F821
    else:
        assert [n async for n in d(count)(0)] == []


if __name__ == "__main__":
    main()

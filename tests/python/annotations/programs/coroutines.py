"""Decorated asynchronous functions: one event over the awaited time, tasks beside each other."""

from __future__ import annotations

import asyncio
import collections.abc
import contextvars
import functools
import gc
import inspect
import logging
import threading
import time
import types
import warnings
from typing import Any

from checks import Decorator, check, frames, item, main, pause, raised, raised_in

from dftracer.python import ai


async def double(n: int, times: int = 1) -> int:
    for _ in range(times):
        await pause()
    return 2 * n


@check("forward", "forward", "forward")
async def values(d: Decorator) -> None:
    made = d(double)
    one = object()

    @d
    async def same(what: Any) -> Any:
        return what

    assert await made(2) == 4
    assert await made(n=3, times=5) == 6
    assert await same(one) is one


@check("forward", "forward")
async def exceptions(d: Decorator) -> None:
    error = ValueError("mine")

    async def fail() -> None:
        await pause()
        raise error

    assert await raised_in(ValueError, d(fail)()) is error
    recorded = [name for name, _ in frames(error)]
    error.__traceback__ = None
    await raised_in(ValueError, fail())
    assert recorded == [name for name, _ in frames(error)]

    async def stop() -> None:
        raise StopIteration(1)

    assert str(await raised_in(RuntimeError, d(stop)())) == "coroutine raised StopIteration"


@check("forward")
async def awaited_time(d: Decorator) -> None:
    await d(asyncio.sleep)(0.03)


@check("forward/forward/item", "forward/forward", "forward/item", "forward")
async def nested(d: Decorator) -> None:
    @d
    async def inner() -> None:
        await pause()
        item()

    @d
    async def outer() -> None:
        await pause()
        await inner()
        await pause()
        item()

    await outer()


@check(*["forward/item"] * 2, *["forward/backward/item", "forward/backward", "forward"] * 2)
async def tasks_know_their_parents(d: Decorator) -> None:
    @ai.compute.backward
    async def inner() -> None:
        await pause()
        item()

    @d
    async def outer() -> None:
        await pause()
        item()
        await inner()

    await asyncio.gather(outer(), outer())


@check(*["forward"] * 100)
async def hundred_at_once(d: Decorator) -> None:
    made = d(double)
    assert await asyncio.gather(*(made(n, 1 + n % 7) for n in range(100))) == list(range(0, 200, 2))


@check(*["forward"] * 20)
async def overlapping(d: Decorator) -> None:
    """Begun one after the other while the first ones run, and ended in the order of the begin."""

    @d
    async def work(gate: asyncio.Event) -> None:
        await gate.wait()
        time.sleep(0.0001)

    gates = [asyncio.Event() for _ in range(20)]
    tasks = []
    for gate in gates:
        tasks.append(asyncio.ensure_future(work(gate)))
        await asyncio.sleep(0)
        time.sleep(0.0001)
    for gate in gates:
        gate.set()
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)


@check("forward/item", "forward")
async def cancellation(d: Decorator) -> None:
    seen = []

    @d
    async def work() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError as error:
            seen.append(error)
            raise
        finally:
            await pause()
            item()

    task = asyncio.ensure_future(work())
    await pause()
    task.cancel()
    await raised_in(asyncio.CancelledError, task)
    assert task.cancelled()
    assert len(seen) == 1


@check("forward")
async def cancelled_before_it_began(d: Decorator) -> None:
    """The error is thrown into it all the same."""
    task = asyncio.ensure_future(d(double)(1))
    task.cancel()
    await raised_in(asyncio.CancelledError, task)


@check("forward", "forward", "forward")
async def timeouts(d: Decorator) -> None:
    sleep = d(asyncio.sleep)
    await raised_in(asyncio.TimeoutError, asyncio.wait_for(sleep(60), 0.001))
    assert await asyncio.wait_for(sleep(0, "result"), 60) == "result"
    done, pending = await asyncio.wait([asyncio.ensure_future(sleep(60))], timeout=0.001)
    assert not done
    for task in pending:
        task.cancel()
        await raised_in(asyncio.CancelledError, task)


@check("forward", "forward", "forward")
async def task_groups(d: Decorator) -> None:
    if not hasattr(asyncio, "TaskGroup"):
        await asyncio.gather(*(d(asyncio.sleep)(0) for _ in range(3)))
        return

    @d
    async def fail() -> None:
        await pause()
        raise ValueError("mine")

    async def group() -> None:
        async with asyncio.TaskGroup() as tasks:  # type: ignore[attr-defined]
            tasks.create_task(d(asyncio.sleep)(60))
            tasks.create_task(d(asyncio.sleep)(60))
            tasks.create_task(fail())

    error = await raised_in(BaseException, group())
    assert [str(one) for one in error.exceptions] == ["mine"]  # type: ignore[attr-defined]


@check("forward", "forward")
async def async_with(d: Decorator) -> None:
    class One:
        @d
        async def __aenter__(self) -> One:
            await pause()
            return self

        @d
        async def __aexit__(self, *exc: object) -> bool:
            await pause()
            return exc[0] is ValueError

    one = One()
    async with one as same:
        assert same is one
        raise ValueError


@check()
def never_awaited(d: Decorator) -> None:
    """The warning of the interpreter is still given, word for word."""

    def warning(made: Any) -> list[str]:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            made(1)
            gc.collect()
        return [f"{one.category.__name__}: {str(one.message).splitlines()[0]}" for one in found]

    expected = ["RuntimeWarning: coroutine 'double' was never awaited"]
    assert warning(double) == expected
    assert warning(d(double)) == expected
    d(double)(1).close()


@check("forward")
async def awaited_twice(d: Decorator) -> None:
    one = d(double)(1)
    assert await one == 2
    message = "cannot reuse already awaited coroutine"
    assert str(await raised_in(RuntimeError, one)) == message


@check("forward", "forward", "forward", "forward/item", "forward")
def by_hand(d: Decorator) -> None:
    made = d(double)
    one = made(4)
    assert one.send(None) is None
    assert raised(StopIteration, one.send, None).value == 8  # type: ignore[attr-defined]
    two = made(4)
    two.send(None)
    error = KeyError("thrown")
    assert raised(KeyError, two.throw, error) is error
    three = made(4).__await__()
    next(three)
    assert raised(StopIteration, next, three).value == 8  # type: ignore[attr-defined]

    @d
    async def last() -> None:
        try:
            await pause()
        finally:
            item()

    four = last()
    four.send(None)
    assert four.close() is None
    assert four.close() is None


@check("forward")
def dropped(d: Decorator) -> None:
    ended = []

    @d
    async def work() -> None:
        try:
            await pause()
        finally:
            ended.append(1)

    one = work()
    one.send(None)
    del one
    assert ended == [1]


@check("forward/train/item", "forward/train", "forward")
async def region_around_an_await(d: Decorator) -> None:
    @d
    async def work() -> None:
        with ai.pipeline.train:
            await pause()
            item()

    await work()


@check("*/train", "*/train", "*/train", ways="bare")
async def regions_of_tasks() -> None:
    """`with` in functions that are not decorated: each ends its own."""

    async def work(n: int) -> None:
        with ai.pipeline.train:
            for _ in range(n):
                await pause()

    await asyncio.gather(work(1), work(3), work(2))


@check("forward", "forward")
async def what_it_says_of_itself(d: Decorator) -> None:
    one = d(double)(1)
    assert inspect.iscoroutine(one)
    assert inspect.isawaitable(one)
    assert asyncio.iscoroutine(one)
    assert isinstance(one, types.CoroutineType)
    assert isinstance(one, collections.abc.Coroutine)
    assert (one.__name__, one.__qualname__) == ("double", "double")
    assert one.cr_code is double.__code__
    assert inspect.getcoroutinestate(one) == inspect.CORO_CREATED
    task = asyncio.ensure_future(one)
    assert task.get_coro() is one
    assert "double" in repr(task)
    await pause()
    assert inspect.getcoroutinestate(one) == inspect.CORO_SUSPENDED
    assert inspect.getcoroutinelocals(one)["n"] == 1
    assert one.cr_await is not None
    assert [frame.f_code.co_name for frame in task.get_stack()] == ["double"]
    await task
    assert inspect.getcoroutinestate(one) == inspect.CORO_CLOSED
    assert one.cr_frame is None
    await asyncio.wait_for(asyncio.shield(d(double)(1)), 60)


@check(*["forward"] * 6)
async def kinds_of_async_functions(d: Decorator) -> None:
    class One:
        @d
        async def method(self) -> One:
            return self

        @d
        @staticmethod
        async def static() -> int:
            return 1

        @classmethod
        @d
        async def of_class(cls) -> type:
            return cls

        async def __call__(self) -> int:
            return 5

    one = One()
    assert await one.method() is one
    assert await One.static() == 1
    assert await one.of_class() is One
    assert await d(one)() == 5
    assert await d(functools.partial(double, 2))() == 4
    assert await d(one.__call__)() == 5


@check("forward")
async def context_variables(d: Decorator) -> None:
    """An awaited coroutine runs in the context of who awaits it."""
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable", default=0)

    @d
    async def work() -> None:
        await pause()
        variable.set(variable.get() + 1)

    variable.set(5)
    await work()
    assert variable.get() == 6


@check("forward", "forward", "forward", "forward")
def loops(d: Decorator) -> None:
    """Everything that runs coroutines takes these."""
    made = d(double)
    assert asyncio.run(made(1)) == 2
    loop = asyncio.new_event_loop()
    assert loop.run_until_complete(made(2)) == 4
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    assert asyncio.run_coroutine_threadsafe(made(3), loop).result() == 6
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()

    async def in_thread() -> Any:
        return await asyncio.get_running_loop().run_in_executor(None, d(lambda: 7))

    assert asyncio.run(in_thread()) == 7


@check("forward")
def debug_mode(d: Decorator) -> None:
    """With the loop's own checks: it says which task was slow, and where it was made."""
    told: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append(record.getMessage())

    @d
    async def slow() -> None:
        await pause()
        time.sleep(0.02)

    async def run() -> None:
        asyncio.get_running_loop().slow_callback_duration = 0.01
        await asyncio.ensure_future(slow())

    logger = logging.getLogger("asyncio")
    handler = Keep()
    logger.addHandler(handler)
    logger.propagate = False
    try:
        asyncio.run(run(), debug=True)
    finally:
        logger.removeHandler(handler)
        logger.propagate = True
    assert any("slow()" in text and "Executing" in text for text in told), told


@check("forward")
async def run_out_of_stack(d: Decorator) -> None:
    """An error in the middle of an await, from a depth that cannot be."""

    async def deep() -> None:
        await deep()

    await raised_in(RecursionError, d(deep)())


@check(*["forward"] * 8, any_order=True)
def in_threads(d: Decorator) -> None:
    """A loop in each of several threads."""
    made = d(double)
    results: list[int] = []

    def run(n: int) -> None:
        async def both() -> None:
            results.extend(await asyncio.gather(made(n, 3), made(n, 2)))

        asyncio.run(both())

    threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [0, 0, 2, 2, 4, 4, 6, 6]


if __name__ == "__main__":
    main()

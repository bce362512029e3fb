"""Decorated generator functions: one event a generator, from its first item to its end."""

from __future__ import annotations

import collections.abc
import contextlib
import gc
import inspect
import itertools
import sys
import threading
import time
import types
import weakref
from collections.abc import Iterator
from functools import partial
from typing import Any

from checks import Decorator, check, frames, item, main, raised

from dftracer.python import ai


def count(n: int) -> Iterator[int]:
    yield from range(n)


def echo(start: Any = None) -> Any:
    """Answers what it is sent, and what is thrown into it."""
    told = []
    answer = start
    while True:
        try:
            answer = yield answer
        except ValueError as error:
            answer = error
        if answer == "end":
            return told
        told.append(answer)


@check("forward count=3", "forward count=0", "forward count=2")
def items(d: Decorator) -> None:
    made = d(count)
    assert list(made(3)) == [0, 1, 2]
    assert list(made(0)) == []
    assert sum(made(n=2)) == 1


@check()
def never_begun(d: Decorator) -> None:
    made = d(count)
    made(1)
    made(1).close()
    one = made(1)
    del one


@check("forward/item", "forward/item", "forward count=2")
def events_inside(d: Decorator) -> None:
    @d
    def work() -> Iterator[int]:
        item()
        yield 1
        item()
        yield 2

    assert list(work()) == [1, 2]


@check("item", "forward/item", "item", "forward/item", "forward count=1")
def events_between(d: Decorator) -> None:
    """What runs while it is left is not inside it."""

    @d
    def work() -> Iterator[int]:
        item()
        yield 1
        item()

    one = work()
    item()
    next(one)
    item()
    assert next(one, None) is None


@check("forward count=3")
def busy_time(d: Decorator) -> None:
    """Five milliseconds inside and five outside, three times; test_suspended.py looks at them."""

    @d
    def work() -> Iterator[int]:
        for n in range(3):
            time.sleep(0.005)
            yield n

    for _ in work():
        time.sleep(0.005)


@check("forward count=4")
def sending(d: Decorator) -> None:
    one = d(echo)("first")
    assert next(one) == "first"
    assert one.send(1) == 1
    assert next(one) is None
    error = ValueError("thrown")
    assert one.throw(error) is error
    stop = raised(StopIteration, one.send, "end")
    assert stop.value == [1, None, error]


@check(*["forward count=0"] * 8)
def returned_values(d: Decorator) -> None:
    def work(value: Any) -> Any:
        return value
        yield

    made = d(work)
    for value in (None, 5, (1, 2), StopIteration(3)):
        for how in (lambda one: next(one), lambda one: one.send(None)):
            assert raised(StopIteration, how, made(value)).value is value  # type: ignore[attr-defined]


@check("forward count=2", "forward count=3")
def yield_from(d: Decorator) -> None:
    def outer(inner: Any) -> Any:
        told = yield from inner
        yield told

    one = outer(d(echo)("first"))
    assert next(one) == "first"
    assert one.send(1) == 1
    assert one.send("end") == [1]
    two = d(outer)(iter([1, 2]))
    assert list(two) == [1, 2, None]


@check("forward count=2", "forward count=1", "forward count=1", "forward count=0")
def throwing(d: Decorator) -> None:
    made = d(echo)
    one = made(1)
    next(one)
    assert isinstance(one.throw(ValueError("caught")), ValueError)
    error = KeyError("not caught")
    assert raised(KeyError, one.throw, error) is error
    assert raised(StopIteration, next, one) is not None

    two, plain = made(), echo()
    next(two), next(plain)
    assert frames(raised(KeyError, two.throw, KeyError("a"))) == frames(
        raised(KeyError, plain.throw, KeyError("a"))
    )

    def through(inner: Any) -> Any:
        yield from inner

    three = through(made(3))
    next(three)
    assert raised(KeyError, three.throw, error) is error
    four = made(4)
    assert raised(KeyError, four.throw, error) is error


@check("forward/item", "forward count=1", "forward count=1")
def closing(d: Decorator) -> None:
    seen = []

    @d
    def work() -> Iterator[int]:
        try:
            yield 1
        except GeneratorExit as error:
            seen.append(error)
            raise
        finally:
            item()

    one = work()
    assert next(one) == 1
    assert one.close() is None
    assert one.close() is None
    assert len(seen) == 1
    raised(StopIteration, next, one)

    @d
    def stubborn() -> Iterator[int]:
        while True:
            with contextlib.suppress(GeneratorExit):
                yield 1

    two = stubborn()
    next(two)
    assert str(raised(RuntimeError, two.close)) == "generator ignored GeneratorExit"
    # It would say so again when it is let go.
    stub = sys.unraisablehook
    sys.unraisablehook = lambda unraisable: None
    del two
    sys.unraisablehook = stub


@check("forward count=0")
def stop_iteration_inside(d: Decorator) -> None:
    @d
    def work() -> Iterator[int]:
        raise StopIteration(5)
        yield

    error = raised(RuntimeError, next, work())
    assert str(error) == "generator raised StopIteration"
    assert isinstance(error.__cause__, StopIteration)


@check("forward count=1", "forward count=1")
def failing(d: Decorator) -> None:
    def work() -> Iterator[int]:
        yield 1
        raise ValueError("in the middle")

    def run(made: Any) -> BaseException:
        return raised(ValueError, list, made())

    error, plain = run(d(work)), run(work)
    assert frames(error) == frames(plain)
    assert str(error) == "in the middle"
    one = d(work)()
    next(one)
    raised(ValueError, next, one)
    raised(StopIteration, next, one)


@check("forward/item", "forward count=1", "forward/item", "forward count=2")
def dropped(d: Decorator) -> None:
    """What it does at its end is inside its event."""

    @d
    def work() -> Iterator[int]:
        try:
            yield from (1, 2, 3)
        finally:
            item()

    one = work()
    next(one)
    del one
    for n in work():
        if n == 2:
            break


@check("forward count=1")
def dropped_in_a_cycle(d: Decorator) -> None:
    held: list[Any] = []

    @d
    def work(me: Any) -> Iterator[int]:
        yield 1

    held.append(work(held))
    next(held[0])
    reference = weakref.ref(held[0])
    del held
    gc.collect()
    assert reference() is None


@check("forward count=2")
def entered_while_it_runs(d: Decorator) -> None:
    """The error that this gives is the caller's; the generator goes on, and so does its event."""

    @d
    def work() -> Iterator[int]:
        for again in (one.__next__, lambda: one.send(None), lambda: one.throw(KeyError), one.close):
            assert str(raised(ValueError, again)) == "generator already executing"
        yield 1
        yield 2

    one = work()
    assert list(one) == [1, 2]


@check("forward count=3")
def sending_to_a_fresh_one(d: Decorator) -> None:
    one = d(count)(3)
    message = "can't send non-None value to a just-started generator"
    assert str(raised(TypeError, one.send, 1)) == message
    assert list(one) == [0, 1, 2]


@check("forward count=2", "forward count=2")
def exhausted(d: Decorator) -> None:
    one = d(count)(2)
    assert list(one) == [0, 1]
    assert list(one) == []
    raised(StopIteration, next, one)
    assert next(one, 5) == 5
    two = d(count)(2)
    assert [*two, *two] == [0, 1]


@check("forward/item", "forward/item", "forward/item", "forward count=1", "forward count=2")
def two_at_once(d: Decorator) -> None:
    @d
    def work(n: int) -> Iterator[int]:
        for i in range(n):
            item()
            yield i

    one, two = work(1), work(2)
    assert [next(one), next(two), next(two), next(one, None)] == [0, 0, 1, None]
    assert next(two, None) is None


@check("forward/forward/forward count=1", "forward/forward count=2", "forward count=3")
def recursive(d: Decorator) -> None:
    @d
    def down(n: int) -> Iterator[int]:
        yield n
        if n > 1:
            yield from down(n - 1)

    assert list(down(3)) == [3, 2, 1]


@check("train/epoch", "train", "item", "train/epoch/forward/item", "train/epoch/forward count=1")
def resumed_elsewhere(d: Decorator) -> None:
    """Begun three levels deep, it is still there when it goes on outside of them."""

    @d
    def work() -> Iterator[int]:
        yield 1
        item()

    with ai.pipeline.train, ai.pipeline.epoch:
        one = work()
        next(one)
    item()
    next(one, None)


@check("forward/item", "train/item", "forward/item", "train", "forward count=2")
def resumed_deeper(d: Decorator) -> None:
    @d
    def work() -> Iterator[int]:
        item()
        yield 1
        item()
        yield 2

    one = work()
    next(one)
    with ai.pipeline.train:
        item()
        next(one)
    assert next(one, None) is None


@check("forward/item", "forward/item", "forward count=2")
def resumed_on_another_thread(d: Decorator) -> None:
    threads = []

    @d
    def work() -> Iterator[int]:
        for n in (1, 2):
            threads.append(threading.get_ident())
            item()
            yield n

    one = work()
    next(one)
    thread = threading.Thread(target=next, args=(one,))
    thread.start()
    thread.join()
    assert next(one, None) is None
    assert len(set(threads)) == 2


@check("forward count=1", "forward count=1")
def ended_on_another_thread(d: Decorator) -> None:
    for last in (list, lambda one: one.close()):
        one = d(count)(1)
        next(one)
        thread = threading.Thread(target=last, args=(one,))
        thread.start()
        thread.join()


@check("forward count=2", "item", "forward/test")
def region_left_open(d: Decorator) -> None:
    """One that begins inside and goes on outside does not disturb the generator's end."""

    @d
    def work() -> Iterator[int]:
        yield 1
        ai.pipeline.test.start()
        yield 2

    assert list(work()) == [1, 2]
    item()
    ai.pipeline.test.stop()


@check("forward/train/item", "forward/train", "forward count=1")
def region_around_a_yield(d: Decorator) -> None:
    @d
    def work() -> Iterator[int]:
        with ai.pipeline.train:
            yield 1
            item()

    assert list(work()) == [1]


@check(*["forward count=1"] * 6)
def kinds_of_generator_functions(d: Decorator) -> None:
    class One:
        @d
        def method(self) -> Iterator[One]:
            yield self

        @d
        @staticmethod
        def static() -> Iterator[int]:
            yield 1

        @classmethod
        @d
        def of_class(cls) -> Iterator[type]:
            yield cls

        @property
        @d
        def value(self) -> Iterator[int]:
            yield 1

    one = One()
    assert list(one.method()) == [one]
    assert list(One.static()) == [1]
    assert list(one.of_class()) == [One]
    assert list(one.value) == [1]
    assert list(d(partial(count, 1))()) == [0]
    assert list(d(lambda: (yield 1))()) == [1]


@check("forward count=1")
def what_it_says_of_itself(d: Decorator) -> None:
    one = d(echo)(1)
    assert inspect.isgenerator(one)
    assert isinstance(one, types.GeneratorType)
    assert isinstance(one, collections.abc.Generator)
    assert isinstance(one, collections.abc.Iterator)
    assert iter(one) is one
    assert (one.__name__, one.__qualname__) == ("echo", "echo")
    assert one.gi_code is echo.__code__
    assert inspect.getgeneratorstate(one) == inspect.GEN_CREATED
    next(one)
    assert inspect.getgeneratorstate(one) == inspect.GEN_SUSPENDED
    assert inspect.getgeneratorlocals(one)["told"] == []
    assert one.gi_frame is not None
    assert one.gi_running is False
    assert one.gi_yieldfrom is None
    assert hash(one) == hash(one)
    one.close()
    assert inspect.getgeneratorstate(one) == inspect.GEN_CLOSED
    raised(AttributeError, getattr, one, "nothing_of_that_name")
    raised(AttributeError, setattr, one, "x", 1)


@check("forward count=2", "forward count=3", "forward count=3", "forward count=1")
def in_itertools(d: Decorator) -> None:
    made = d(count)
    assert list(itertools.islice(made(9), 2)) == [0, 1]
    gc.collect()
    assert list(itertools.chain.from_iterable([made(3)])) == [0, 1, 2]
    left, right = itertools.tee(made(3))
    assert [*left, *right] == [0, 1, 2] * 2
    assert dict(zip(made(1), "a")) == {0: "a"}
    gc.collect()


@check("forward/item", "forward/item", "forward count=1", *["forward/item", "forward count=1"] * 2)
def context_managers(d: Decorator) -> None:
    @contextlib.contextmanager
    @d
    def work(swallow: bool) -> Iterator[int]:
        item()
        try:
            yield 5
        except ValueError:
            if not swallow:
                raise
        else:
            item()

    with work(True) as five:
        assert five == 5
    with work(True):
        raise ValueError

    def inside() -> None:
        with work(False):
            raise ValueError("mine")

    assert str(raised(ValueError, inside)) == "mine"


@check("forward", "forward", "forward count=1", "forward count=1")
def generators_of_coroutines(d: Decorator) -> None:
    """types.coroutine: awaited by some, iterated by others."""

    @d
    @types.coroutine
    def pause() -> Any:
        told = yield "paused"
        return told

    async def awaits() -> Any:
        return await pause()

    @types.coroutine
    def delegates() -> Any:
        return (yield from pause())

    for one in (awaits(), delegates()):
        assert one.send(None) == "paused"
        assert raised(StopIteration, one.send, 7).value == 7  # type: ignore[attr-defined]
    assert list(d(lambda: (yield 1))()) == [1]
    assert list(d(lambda: (yield 2))()) == [2]


@check(*["/".join(["forward"] * n) + " count=1" for n in range(200, 0, -1)])
def deep_delegation(d: Decorator) -> None:
    @d
    def down(n: int) -> Any:
        if n == 0:
            yield 0
        else:
            yield from down(n - 1)

    assert list(down(199)) == [0]


if __name__ == "__main__":
    main()

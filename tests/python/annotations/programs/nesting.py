"""`with`, start() and stop(), loops: what is inside what, and what is beside it."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import queue
import threading
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from checks import ON, check, item, main, raised

import dftracer
from dftracer.python import DFTracerAI, ai, dft_fn

train, epoch, test = ai.pipeline.train, ai.pipeline.epoch, ai.pipeline.test
forward, fetch = ai.compute.forward, ai.dataloader.fetch


# ---- with ----------------------------------------------------------------------------------------


@check("train/epoch/forward", "train/epoch/test", "train/epoch", "train", ways="bare")
def levels() -> None:
    with train as same:
        assert same is train
        with epoch:
            with forward:
                pass
            with test:
                pass


@check("forward/forward/forward", "forward/forward", "forward", ways="bare")
def one_inside_itself() -> None:
    with forward, forward, forward:
        pass


@check("train/forward x=1", "train/forward x=1", "train", ways="bare")
def one_with_arguments_entered_twice() -> None:
    with train:
        one = forward(args={"x": 1})
        with one:
            pass
        with one:
            pass


@check("train/item", "train", "train", ways="bare")
def a_region_that_raises() -> None:
    error = KeyError("mine")

    def fail() -> None:
        with train:
            item()
            raise error

    assert raised(KeyError, fail) is error
    assert error.__context__ is None

    def leave() -> int:
        for _ in range(3):
            with train:
                return 5
        return 6

    assert leave() == 5


@check("train/epoch", "train", "train", "epoch", ways="bare")
def exit_stacks() -> None:
    with contextlib.ExitStack() as stack:
        assert stack.enter_context(train) is train
        stack.enter_context(epoch)
    with contextlib.ExitStack() as stack:
        stack.push(train)
        train.__enter__()
    type(epoch).__enter__(epoch)
    type(epoch).__exit__(epoch, None, None, None)


@check("train", "train", ways="bare")
def entered_by_hand() -> None:
    assert train.__enter__() is train
    assert train.__exit__(None, None, None) is None
    enter, leave = train.__enter__, train.__exit__
    enter()
    leave(ValueError, ValueError("x"), None)
    train.__exit__(None, None, None)  # one too many: nothing


@check("epoch", "epoch/train", ways="bare")
def left_in_another_order() -> None:
    epoch.__enter__()
    train.__enter__()
    epoch.__exit__(None, None, None)
    train.__exit__(None, None, None)


@check("train", "item", "train/epoch", ways="bare")
def a_region_held_by_a_generator() -> None:
    """Which is not decorated: its `with` is open as long as it is left. When it ends, what began
    inside it is no longer around what follows."""

    def work() -> Iterator[int]:
        with train:
            yield 1

    one = work()
    next(one)
    with epoch:
        one.close()
        item()


@check("train", "item", "item", ways="bare", any_order=True)
def entered_and_left_on_different_threads() -> None:
    """As servers do that advance a generator on whatever thread is free."""

    def work() -> Iterator[int]:
        with train:
            yield 1

    one = work()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(next, one).result()
        assert next(one, None) is None
        item()
        pool.submit(item).result()


# ---- start() and stop() --------------------------------------------------------------------------


@check("train/item", "train", "item", ways="bare")
def started_and_stopped() -> None:
    train.start()
    item()
    train.stop()
    item()
    train.stop()


@check("forward/forward/item", "forward/forward", "forward", ways="bare")
def started_twice() -> None:
    forward.start()
    forward.start()
    item()
    forward.stop()
    forward.stop()


@check("train", "train/epoch", ways="bare")
def crossing() -> None:
    train.start()
    epoch.start()
    train.stop()
    epoch.stop()


@check("train", "train/test", "test", "test/train", ways="bare")
def across_a_region() -> None:
    with train:
        test.start()
    test.stop()
    test.start()
    train.__enter__()
    test.stop()
    train.__exit__(None, None, None)


@check("epoch", "epoch", "train", ways="bare", any_order=True)
def in_threads() -> None:
    """Each thread's stop() ends its own; that of a thread without any ends the latest."""
    began, go = threading.Barrier(3), threading.Event()

    def work() -> None:
        epoch.start()
        began.wait()
        go.wait()
        epoch.stop()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    began.wait()
    train.start()
    go.set()
    for thread in threads:
        thread.join()
    last = threading.Thread(target=train.stop)
    last.start()
    last.join()


@check("train", "item", "train/item", "train", ways="bare", any_order=True)
def stopped_elsewhere_leaves_no_trace() -> None:
    """What another thread ended is no longer around what follows here."""
    train.start()
    last = threading.Thread(target=train.stop)
    last.start()
    last.join()
    item()
    with train:
        item()


@check("item", ways="bare")
def stopped_without_a_start() -> None:
    epoch.stop()
    epoch.stop(metadata=False)
    item()


# ---- Loops ---------------------------------------------------------------------------------------


@check(
    "train/item",
    "train/fetch.iter count=1",
    "train/fetch.block count=1",
    "train/item",
    "train/fetch.iter count=2",
    "train/fetch.block count=2",
    "train",
    ways="bare",
)
def loops() -> None:
    with train:
        for n in fetch.iter([5, 6]):
            assert n in (5, 6)
            item()


@check(
    "item",
    "fetch.iter.last count=1",
    "fetch.block.last count=1",
    "fetch.iter count=1",
    "fetch.block count=1",
    "fetch.iter.last count=2",
    "fetch.block.last count=2",
    "w.last count=1",
    "fetch.block.last count=1",
    "fetch.iter.last count=1",
    "l.iter i=1",
    "l.yield i=1",
    ways="bare",
)
def loops_that_are_left() -> None:
    """The item that was not finished is there, and counts of the others do not see it."""
    for _ in fetch.iter(range(9)):
        item()
        break

    def fail() -> None:
        for n in fetch.iter(range(9)):
            if n == 1:
                raise ValueError

    raised(ValueError, fail)
    for _ in fetch.iter([]):
        pass
    next(fetch.iter("a", iter_name="w", include_block=False))
    next(fetch.iter("a", include_iter=False))
    fetch_alone = fetch.iter("a", include_block=False)
    next(fetch_alone)
    del fetch_alone
    # The loops of a dft_fn keep their names: other releases record the wait for such an item.
    next(dft_fn("x").iter([1], name="l", iter_name="i"))


@check(
    "fetch.iter count=1",
    "fetch.block count=1",
    "epoch.iter count=1",
    "epoch.block count=1",
    "fetch.iter count=1",
    "fetch.block count=1",
    "epoch.iter count=2",
    "epoch.block count=2",
    ways="bare",
)
def loops_in_loops() -> None:
    for _ in epoch.iter(range(2)):
        for _ in fetch.iter("a"):
            pass


@check(
    "w count=1",
    "b count=1",
    "fetch.block count=1",
    "fetch.iter count=1",
    "l.iter i=1",
    "l.yield i=1",
    ways="bare",
)
def names_in_loops() -> None:
    list(fetch.iter([1], iter_name="w", block_name="b"))
    list(fetch.iter([1], include_iter=False))
    list(fetch.iter([1], include_block=False))
    list(fetch.iter([1], include_iter=False, include_block=False))
    list(dft_fn("x").iter([1], name="l", iter_name="i"))


@check(*[f"fetch.{part} count={n}" for n in (1, 2, 3) for part in ("iter", "block")], ways="bare")
def items_are_asked_for_one_by_one() -> None:
    asked = []

    def source() -> Iterator[int]:
        for n in range(3):
            asked.append(n)
            yield n

    one = fetch.iter(source())
    assert asked == []
    assert iter(one) is one
    assert next(one) == 0
    assert asked == [0]
    assert list(one) == [1, 2]
    assert next(one, None) is None


@check(*[f"fetch.{part} count={n}" for n in (1, 2) for part in ("iter", "block")], ways="bare")
def iterators_that_raise_go_on() -> None:
    one = fetch.iter(map(int, ["1", "x", "3"]))
    assert next(one) == 1
    error = raised(ValueError, next, one)
    assert "'x'" in str(error)
    assert next(one) == 3
    raised(StopIteration, next, one)


@check(*[f"fetch.{part} count={n}" for n in (1, 2) for part in ("iter", "block")], ways="bare")
def iterators_that_end_and_go_on() -> None:
    """Of a queue, say: nothing there now, something later."""
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()

    class Source:
        def __iter__(self) -> Source:
            return self

        def __next__(self) -> int:
            try:
                return waiting.get_nowait()
            except queue.Empty:
                raise StopIteration from None

    one = fetch.iter(Source())
    found = []
    for n in (1, 2):
        waiting.put(n)
        found += list(one)
    assert found == [1, 2]


@check(ways="bare")
def iterables_keep_their_manners() -> None:
    raised(TypeError, fetch.iter, 5)
    error = ValueError("not iterable today")

    class Bad:
        def __iter__(self) -> Any:
            raise error

    assert raised(ValueError, fetch.iter, Bad()) is error

    class Hint:
        def __iter__(self) -> Hint:
            return self

        def __next__(self) -> int:
            raise StopIteration

        def __length_hint__(self) -> int:
            raise error

    if ON:
        assert raised(ValueError, list, fetch.iter(Hint())) is error
    held: Any = set()
    reference = weakref.ref(held)
    one = fetch.iter(held)
    del held
    assert reference() is not None
    del one
    gc.collect()
    assert reference() is None


@check(*[f"fetch.{part} count={n}" for n in (1, 2) for part in ("iter", "block")], ways="bare")
def closed_from_inside() -> None:
    """An iterator is let go by its own source while that runs."""

    def source() -> Iterator[int]:
        yield 1
        if ON:
            one.close()  # type: ignore[attr-defined]
        yield 2

    one = fetch.iter(source())
    assert list(one) == [1, 2]


@check(
    *[
        f"*/{n}.{part}{last} count={c}"
        for c, n, last in (
            *((1, "fetch", ""), (1, "epoch", "")),
            *((2, "fetch", ""), (2, "epoch", ".last")),
        )
        for part in ("iter", "block")
    ],
    ways="bare",
)
def two_loops_at_once() -> None:
    """zip: each item's body ends inside the other's, and the end of the first leaves the second."""
    pairs = list(zip(fetch.iter("ab"), epoch.iter("cd")))
    assert pairs == [("a", "c"), ("b", "d")]


@check(
    "fetch.iter count=1",
    "fetch.block count=1",
    "train",
    "*/fetch.iter count=2",
    "*/fetch.block count=2",
    ways="bare",
)
def advanced_inside_a_region() -> None:
    """The body of the first item began before the region, and ends inside it."""
    one = fetch.iter("ab")
    next(one)
    with train:
        next(one)
    next(one, None)


@check("fetch.iter count=1", "fetch.block count=1", "train", ways="bare")
def a_region_that_leaves_the_body() -> None:
    for _ in fetch.iter([1]):
        train.start()
    train.stop()


@check(
    *[
        f"*/{n}.{part} count={c}"
        for c in (1, 2)
        for n in ("fetch", "item")
        for part in ("iter", "block")
    ],
    ways="bare",
    any_order=True,
)
def a_loop_that_is_fed_by_a_loop() -> None:
    """The body of the inner one is left while the outer one's runs, and ends in its next wait."""

    def source() -> Iterator[str]:
        for each in ai.data.item.iter("ab"):
            time.sleep(0.0002)
            yield each
            time.sleep(0.0002)

    for _ in fetch.iter(source()):
        time.sleep(0.0002)


# ---- Python, C, Python ---------------------------------------------------------------------------


@check("train/item", "train/epoch/item", "train/epoch", "train", ways="bare")
def through_c_code() -> None:
    with train:
        functools.reduce(lambda a, b: item(), [1, 2])

        @ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
        def compare(a: Any, b: Any) -> int:
            with epoch:
                item()
            return 0

        numbers = (ctypes.c_int * 2)(2, 1)
        ctypes.PyDLL(None).qsort(numbers, 2, ctypes.sizeof(ctypes.c_int), compare)


@check("train/native/epoch/item", "train/native/epoch", "train/native", "train", ways="bare")
def around_a_region_of_the_c_interface() -> None:
    if not ON:
        return
    library = ctypes.CDLL(str(Path(dftracer.__file__).parent / "lib64" / "libdftracer_core.so"))
    library.dftracer_region_new.restype = ctypes.c_void_p
    library.dftracer_region_delete.argtypes = [ctypes.c_void_p]
    with train:
        native = library.dftracer_region_new(b"native", b"c", 0)
        with epoch:
            item()
        library.dftracer_region_delete(native)


# ---- Odd uses ------------------------------------------------------------------------------------


@check("unnamed", "forward", ways="bare")
def half_made_nodes() -> None:
    if not ON:
        return
    from dftracer import _core

    node = _core.Node()
    with node:
        pass
    assert node.name is None
    node._define("a", "x")
    node.update(step=1)
    node._define("c", "x")
    node.enabled = False
    with node:
        pass
    node.enabled = True
    other = _core.Node.__new__(_core.Node)
    other._define("c" * 1000, "x")

    class Mine(DFTracerAI):
        def __init__(self) -> None:
            pass

    mine = Mine()
    raised(AttributeError, getattr, mine, "nothing")
    with forward:
        raised(AttributeError, delattr, forward, "name")
        raised(AttributeError, setattr, forward, "name", "x")
        raised(TypeError, _core.Node._define, node, "a")
        raised(TypeError, _core.Node._define, node, "a", "b", 5)
        raised(TypeError, _core.Function, node, 5, 0)
        raised(TypeError, _core.Function, 5, len, 0)
        raised(TypeError, _core.Function)
        raised(TypeError, _core.Iter, node, 5, None, None, "n")
        raised(TypeError, _core.Iter)
        raised(TypeError, _core.Node.start, 5)
        raised(TypeError, type, "Sub", (_core.Function,), {})


@check(ways="bare")
def types_that_cannot_be_made() -> None:
    if not ON:
        return

    @forward
    def items() -> Iterator[int]:
        yield 1

    @forward
    async def slow() -> None: ...

    @forward
    async def slow_items() -> Any:
        yield 1

    one, two, three = items(), slow(), slow_items()
    step = three.__anext__()
    two.close()
    for kind in map(type, (one, two, three, step)):
        raised(TypeError, kind)
        raised(TypeError, object.__new__, kind)
        raised(TypeError, kind.__new__, kind)
    step.close()  # one that nobody awaits is warned of


@check("train/forward", "train", ways="bare")
def finalizers_inside_a_region() -> None:
    """An object that is let go, and raises, while an event is being recorded."""
    import sys

    class Bad:
        def __del__(self) -> None:
            with forward:
                raise ValueError("in __del__")

    told: list[Any] = []
    before, sys.unraisablehook = sys.unraisablehook, told.append
    try:
        with train:
            Bad()
    finally:
        sys.unraisablehook = before
    assert len(told) == 1


if __name__ == "__main__":
    main()

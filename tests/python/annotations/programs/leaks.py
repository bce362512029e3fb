"""Ten thousand of everything leave nothing behind: no object, no count of references, no memory."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import gc
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

from dftracer import _core
from dftracer.python import DFTracerAI, ai, dft_fn, dftracer

node = DFTracerAI(cat="leaks", name="node")
tracer = _core.Node()
tracer._define("leaks", "tracer")
argument, result, error = object(), object(), ValueError("x")


@node
def call(a: object, b: object = None) -> object:
    return result


@node
def fail() -> None:
    raise error


@node
def items() -> Iterator[object]:
    yield argument
    yield result


@node
async def slow() -> object:
    await asyncio.sleep(0)
    return result


@node
async def slow_items() -> Any:
    yield argument
    yield result


class One:
    def __init__(self) -> None:
        self.step = 5

    @node
    def method(self) -> object:
        return result

    @dft_fn("leaks", "captures").log
    def captures(self, epoch: int = 1) -> object:
        return result

    @node
    @property
    def value(self) -> object:
        return result


one = One()


def calls() -> None:
    call(argument)
    call(argument, b=argument)
    with contextlib.suppress(ValueError):
        fail()
    error.__traceback__ = None
    one.method()
    one.captures()
    one.captures(epoch=7)
    assert one.value is result


def suspended() -> None:
    list(items())
    next(items())
    items()
    items().close()
    made = slow()
    with contextlib.suppress(StopIteration):
        made.send(None)
        made.send(None)
    made = slow()
    made.send(None)
    made.close()
    slow().close()
    step = slow_items().__anext__()
    with contextlib.suppress(StopIteration):
        step.send(None)


def regions() -> None:
    with node:
        pass
    with node(args={"k": argument, "text": "x" * 200}):
        pass
    with contextlib.suppress(ValueError), node.init:
        raise ValueError
    node.start()
    node.stop()
    for _ in node.iter([argument, result]):
        break
    list(node.iter([argument]))


def nodes() -> None:
    node.update(step=1, args={"k": "v" * 100, "o": argument})
    node.derive("child")
    node(lambda: 1)()
    node(enable=False)(lambda: 1)()
    DFTracerAI(cat="a", name="b").derive("c").update(epoch=1)
    dft_fn("a", "b", epoch=1).log(name="x")(lambda self: 1)(one)


def graphs() -> None:
    """Compiled graphs and their operations, as dynamo makes them, with their cycles."""
    compiled = _core.Compiled(tracer)
    graph = _core.Graph(compiled, lambda: False, True, "graph", {"k": "v"})
    op = _core.Op(graph, call, False, "op", {"k": "v"}, "call", -1)
    method = _core.Op(graph, "method", True, "op", {}, "method", 1)
    with contextlib.suppress(RuntimeError):
        graph(argument)
    graph.set(call, lambda a: (op(a), method(one)))
    assert graph(argument) == (result, result)
    _core._asked(tracer, tracer)
    graph(argument)
    _core._asked()


def objects() -> None:
    """What integrations make: regions, batches, and the arguments that workers take over."""
    _core.Region(tracer).end({"k": argument})
    _core.Region(tracer).drop()
    _core.Region(tracer)
    batch = _core.Batch("leaks", "other", True)
    thread, device = batch.thread(1), batch.device("device")
    batch.add(thread, "event", 1, 9, {"k": argument})
    batch.memory(thread, 2, 100, False)
    batch.add(device, "event", 1, 9)
    batch.finish()
    for key, value in tracer._export():
        tracer._adopt(key, value)
    tracer.update(gone=argument)
    tracer._forget("gone")
    tracer._values()


def tasks() -> None:
    """Contexts with arguments of their own."""

    async def work(n: int) -> None:
        node.update(step=n)
        await slow()

    async def both() -> None:
        await asyncio.gather(work(1), work(2))

    asyncio.run(both())


THEMES: dict[Callable[[], None], int] = {
    calls: 10_000,
    suspended: 10_000,
    regions: 10_000,
    nodes: 10_000,
    graphs: 3_000,
    objects: 3_000,
    tasks: 300,
}


def census() -> collections.Counter[str]:
    gc.collect()
    return collections.Counter(f"{type(each).__name__}" for each in gc.get_objects())


def pages() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])


def growth(work: Callable[[], None], times: int) -> dict[str, int]:
    """What `times` rounds leave behind; less than half a thing each is no leak."""
    for _ in range(times // 10):
        work()
    counted = {
        "argument": argument,
        "result": result,
        "error": error,
        "node": node,
        "tracer": tracer,
        "forward": ai.compute.forward,
        "call": call,
        "items": items,
        "one": one,
    }
    before, memory = census(), pages()
    references = {name: sys.getrefcount(each) for name, each in counted.items()}
    for _ in range(times):
        work()
    after = census()
    grown = {kind: count - before[kind] for kind, count in after.items()}
    grown["pages"] = pages() - memory
    # One too few would be worse than one too many.
    lost = {name: references[name] - sys.getrefcount(each) for name, each in counted.items()}
    grown |= {name: abs(by) for name, by in lost.items()}
    return {name: by for name, by in grown.items() if by > times // 2}


if __name__ == "__main__":
    log = dftracer.initialize_log("t.pfw")
    ai.update(epoch=1)
    print(json.dumps({work.__name__: growth(work, times) for work, times in THEMES.items()}))
    log.finalize()

"""A user's program, as mypy --strict sees it: decorated functions keep their types.

Checked by test_typing.py. `# R:` is what mypy reveals of the line, `# E:` the kind of error that it
must report there; it must report no other.
"""

# ruff: noqa: F821, B018

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import Any, Protocol, TypeVar, overload

from dftracer.logger import dft_fn as older_dft_fn
from dftracer.python import DFTracerAI, ai, dft_fn, dftracer

T = TypeVar("T")
logger = dftracer.initialize_log("t.pfw", "data", 0)
reveal_type(logger)  # R: dftracer.python.logger.dftracer
reveal_type(logger.get_time())  # R: int
log = dft_fn("app", name="main", epoch=1)
older = older_dft_fn("app")
mine = DFTracerAI(cat="mine", name="one", epoch=1, step=2)


# ---- Functions -----------------------------------------------------------------------------------


@ai.compute.forward
def bare(a: int, *, b: str = "") -> float:
    return 1.0


@ai.compute.forward()
def empty(a: int, *, b: str = "") -> float:
    return 1.0


@ai.compute.forward(args={"x": 1}, epoch=1, step=2, image_idx=3, image_size=(4, 5), enable=True)
def full(a: int, *, b: str = "") -> float:
    return 1.0


@ai.data.preprocess.derive(name="collate")
def derived(a: int, *, b: str = "") -> float:
    return 1.0


@mine
def own(a: int, *, b: str = "") -> float:
    return 1.0


@log
def logged(a: int, *, b: str = "") -> float:
    return 1.0


@log.log
def logged_bare(a: int, *, b: str = "") -> float:
    return 1.0


@log.log(name="n")
def logged_named(a: int, *, b: str = "") -> float:
    return 1.0


@older.log
def logged_older(a: int, *, b: str = "") -> float:
    return 1.0


reveal_type(bare)  # R: def (a: int, *, b: str =) -> float
reveal_type(empty)  # R: def (a: int, *, b: str =) -> float
reveal_type(full)  # R: def (a: int, *, b: str =) -> float
reveal_type(derived)  # R: def (a: int, *, b: str =) -> float
reveal_type(own)  # R: def (a: int, *, b: str =) -> float
reveal_type(logged)  # R: def (a: int, *, b: str =) -> float
reveal_type(logged_bare)  # R: def (a: int, *, b: str =) -> float
reveal_type(logged_named)  # R: def (a: int, *, b: str =) -> float
reveal_type(logged_older)  # R: def (a: int, *, b: str =) -> float
bare("x")  # E: arg-type
full(1, c=1)  # E: call-arg
logged_named("x")  # E: arg-type


@ai.compute.forward
@log.log
def stacked(a: int) -> str:
    return ""


@ai.data.item
def generic(a: T, b: list[T]) -> dict[str, T]:
    return {"": a}


@ai.dataloader.fetch
def items(n: int) -> Iterator[int]:
    yield from range(n)


@ai.dataloader.fetch
async def slow(n: int) -> str:
    return ""


@ai.dataloader.fetch
async def slow_items(n: int) -> AsyncIterator[str]:
    yield ""


@contextmanager
@ai.pipeline.train
def region(n: int) -> Iterator[str]:
    yield ""


@asynccontextmanager
@ai.pipeline.train
async def slow_region(n: int) -> AsyncIterator[str]:
    yield ""


reveal_type(stacked)  # R: def (a: int) -> str
reveal_type(generic(1, [2]))  # R: dict[str, int]
reveal_type(items)  # R: def (n: int) -> typing.Iterator[int]
reveal_type(slow)  # R: def (n: int) -> typing.Coroutine[Any, Any, str]
reveal_type(slow_items)  # R: def (n: int) -> typing.AsyncIterator[str]
reveal_type(ai.compute.forward(len))  # R: def (typing.Sized) -> int
reveal_type(ai.compute.forward(functools.partial(bare, 1)))  # R: functools.partial[float]
reveal_type(ai.compute.forward(lambda: str(1)))  # R: def () -> str
with region(1) as entered:
    reveal_type(entered)  # R: str


@overload
def both(a: int) -> int: ...
@overload
def both(a: str) -> str: ...
@ai.data.item
def both(a: int | str) -> int | str:
    return a


reveal_type(both(1))  # R: int
reveal_type(both(""))  # R: str


class Step(Protocol):
    def __call__(self, a: int, *, b: str = "") -> float: ...


step: Step = full
anything: Callable[..., Any] = items


# ---- Classes -------------------------------------------------------------------------------------


class Dataset:
    @ai.data.item.init
    def __init__(self, n: int) -> None: ...

    @ai.data.item
    def __getitem__(self, index: int) -> bytes:
        return b""

    @property
    @ai.data.item
    def value(self) -> int:
        return 1

    @value.setter
    @ai.data.item
    def value(self, value: int) -> None: ...

    @functools.cached_property
    @ai.data.item
    def cached(self) -> int:
        return 1

    @ai.data.item
    @staticmethod
    def static_above(a: int) -> str:
        return ""

    @staticmethod
    @ai.data.item(args={"x": 1})
    def static_below(a: int) -> str:
        return ""

    @ai.data.item
    @classmethod
    def class_above(cls, a: int) -> str:
        return ""

    @classmethod
    @ai.data.item
    def class_below(cls, a: int) -> str:
        return ""

    @log.log_static
    @staticmethod
    def logged_static(a: int) -> str:
        return ""


class Logged:
    @log.log_init
    def __init__(self, n: int) -> None: ...

    @log.log
    def method(self, a: int) -> str:
        return ""


@ai.compute
class Model:
    def __init__(self, n: int) -> None: ...


one = Dataset(1)
Dataset("x")  # E: arg-type
reveal_type(one[1])  # R: bytes
reveal_type(one.value)  # R: int
one.value = 2
one.value = "x"  # E: assignment
reveal_type(one.cached)  # R: int
reveal_type(Dataset.static_above)  # R: def (a: int) -> str
reveal_type(one.static_below)  # R: def (a: int) -> str
reveal_type(Dataset.class_above)  # R: def (a: int) -> str
reveal_type(one.class_below)  # R: def (a: int) -> str
reveal_type(one.logged_static)  # R: def (a: int) -> str
reveal_type(Logged(1).method)  # R: def (a: int) -> str
reveal_type(Model)  # R: def (n: int) -> typing_user.Model


# ---- Regions, loops, arguments -------------------------------------------------------------------

with ai.compute as compute:
    reveal_type(compute)  # R: dftracer.python.ai.Compute
with ai.comm.all_reduce(enable=False) as reduce:
    reveal_type(reduce)  # R: dftracer.python.ai.DFTracerAI
with ai.checkpoint.init, ai.checkpoint.init(), log as same:
    reveal_type(same)  # R: dftracer.python.function.dft_fn
with ExitStack() as stack:
    reveal_type(stack.enter_context(ai.pipeline.train))  # R: dftracer.python.ai.DFTracerAI
for number, text in ai.dataloader.fetch.iter(enumerate(["a"])):
    reveal_type((number, text))  # R: tuple[int, str]
for each in log.iter(range(2), name="loop", iter_name="step"):
    reveal_type(each)  # R: int
reveal_type(ai.update(epoch=1, step=2, args={"x": 1}))  # R: dftracer.python.ai.AI
reveal_type(ai.compute.enable().disable())  # R: dftracer.python.ai.Compute
reveal_type(log.update(epoch=1))  # R: dftracer.python.function.dft_fn
reveal_type(ai.pipeline.epoch.start(metadata=True))  # R: None
reveal_type(ai.compute.forward.name)  # R: str
ai.compute.nothing  # E: attr-defined

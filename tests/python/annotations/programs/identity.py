"""What a decorated callable says of itself, and how it is copied, pickled, kept and let go."""

from __future__ import annotations

import asyncio
import copy
import functools
import gc
import inspect
import pickle
import sys
import typing
import weakref
from collections.abc import AsyncIterator, Iterator
from typing import Any, Optional

from checks import ON, Decorator, check, main, raised

from dftracer.python import DFTracerAI, ai, dft_fn


def plain(a: int, b: list[str] = [], *, c: Optional[Point] = None) -> dict[str, Any]:  # noqa: B006, UP045
    """What it does."""
    return {"a": a, "b": b, "c": c}


class Point:
    def __init__(self, x: int = 0) -> None:
        self.x = x

    def get(self) -> int:
        return self.x

    def __call__(self, n: int) -> int:
        return self.x + n


plain.note = {"of": "mine"}  # type: ignore[attr-defined]


@ai.compute.forward
def named() -> int:
    return 3


DUNDERS = "name qualname doc module annotations defaults kwdefaults code globals closure"


# ---- What it says of itself ----------------------------------------------------------------------


@check()
def names_and_dictionaries(d: Decorator) -> None:
    made = d(plain)
    for word in DUNDERS.split():
        name = f"__{word}__"
        assert getattr(made, name) is getattr(plain, name), name
    assert made.__dict__ == plain.__dict__
    assert vars(made)["note"] is plain.note  # type: ignore[attr-defined]
    assert made.note is plain.note  # type: ignore[attr-defined]
    made.other = 1
    assert made.other == vars(made)["other"] == 1
    del made.other
    assert not hasattr(made, "other")
    assert set(dir(made)) >= set(dir(plain))
    assert callable(made)
    assert bool(made)


@check()
def names_can_be_changed(d: Decorator) -> None:
    def one(a: int = 1) -> int:
        return a

    def two(a: int = 1) -> int:
        return a + 100

    made = d(one)
    made.__name__ = "n"
    made.__qualname__ = "q.n"
    made.__doc__ = "Doc."
    made.__module__ = "m"
    made.__annotations__ = {"a": float}
    made.__defaults__ = (5,)
    assert (made.__name__, made.__qualname__, made.__doc__) == ("n", "q.n", "Doc.")
    assert (made.__module__, made.__annotations__) == ("m", {"a": float})
    assert made.__defaults__ == (5,)
    del made.__doc__
    assert made.__doc__ is None


@check("forward", "forward")
def code_can_be_changed(d: Decorator) -> None:
    """As tools do that load changed files into a running notebook."""

    def one(a: int = 1) -> int:
        return a

    def two(a: int = 1) -> int:
        return a + 100

    made = d(one)
    made.__defaults__ = (5,)
    assert made() == 5
    made.__code__ = two.__code__
    assert made() == 105


@check()
def signatures(d: Decorator) -> None:
    class One:
        def method(self, a: int) -> str: ...

        @staticmethod
        def static(a: int) -> str: ...

        @classmethod
        def of_class(cls, a: int) -> str: ...

    class Recorded:
        method = d(One.method)
        static = d(One.__dict__["static"])
        of_class = d(One.__dict__["of_class"])

    kinds: list[Any] = [plain, lambda x, *y: 1, functools.partial(plain, 1), len, Point(), sorted]
    for each in [*kinds, functools.lru_cache(plain), Point().get, str.upper]:
        assert inspect.signature(d(each)) == inspect.signature(each), each
    for name in ("method", "static", "of_class"):
        for of in (lambda kind: kind, lambda kind: kind()):
            made, was = getattr(of(Recorded), name), getattr(of(One), name)
            assert inspect.signature(made) == inspect.signature(was)
    assert inspect.signature(d(plain), follow_wrapped=False) == inspect.signature(plain)
    assert inspect.getfullargspec(d(plain)) == inspect.getfullargspec(plain)

    class Two:
        def __init__(self, x: int = 0) -> None: ...

    before = inspect.signature(Two)
    assert inspect.signature(d(Two)) == before
    assert str(before) == "(x: 'int' = 0) -> 'None'"


@check()
def hints(d: Decorator) -> None:
    expected = typing.get_type_hints(plain)
    assert typing.get_type_hints(d(plain)) == expected
    assert expected["c"] == Optional[Point]
    assert typing.get_type_hints(d(Point.get)) == {"return": int}


@check()
def sources(d: Decorator) -> None:
    made = d(plain)
    assert inspect.getsource(made) == inspect.getsource(plain)
    assert inspect.getsourcefile(made) == __file__
    assert inspect.getdoc(made) == "What it does."
    assert inspect.getmodule(made) is sys.modules[__name__]
    assert inspect.getclosurevars(made).globals == inspect.getclosurevars(plain).globals
    assert made.__wrapped__ is plain if ON else made is plain
    assert inspect.unwrap(made) is plain
    import pydoc

    shown = [pydoc.plain(pydoc.render_doc(each)) for each in (made, plain)]
    assert shown[0] == shown[1], shown


async def coroutine() -> None: ...


def generator() -> Iterator[int]:
    yield 1


async def async_generator() -> AsyncIterator[int]:
    yield 1


class AsyncCall:
    async def __call__(self) -> None: ...

    async def method(self) -> None: ...


@check()
def kinds(d: Decorator) -> None:
    asks = [
        inspect.isfunction,
        inspect.ismethod,
        inspect.isbuiltin,
        inspect.isroutine,
        inspect.isclass,
        inspect.isgeneratorfunction,
        inspect.iscoroutinefunction,
        inspect.isasyncgenfunction,
        asyncio.iscoroutinefunction,
        callable,
    ]
    each: list[Any] = [
        plain,
        lambda: 1,
        coroutine,
        generator,
        async_generator,
        functools.partial(coroutine),
        functools.partial(functools.partial(async_generator)),
        len,
        Point(),
        Point().get,
        AsyncCall(),
        AsyncCall().method,
        str.upper,
    ]
    for one in each:
        made = d(one)
        differ = [ask for ask in asks if ask(made) != ask(one)]
        assert differ == [], (one, differ)

    class One:
        @d
        def method(self) -> None: ...

        @d
        async def slow(self) -> None: ...

        @d
        @staticmethod
        async def static() -> None: ...

    assert inspect.ismethod(One().method)
    assert inspect.isfunction(One.method)
    for function in (One.slow, One().slow, One.static, One().static):
        assert inspect.iscoroutinefunction(function)
    attributes = {entry.name: entry.kind for entry in inspect.classify_class_attrs(One)}
    assert attributes["method"] == "method"
    assert attributes["static"] == "static method"


@check("forward")
def specs_of_mocks(d: Decorator) -> None:
    from unittest import mock

    spec = mock.create_autospec(d(plain), return_value=3)
    assert spec(1, c=None) == 3
    assert "missing a required argument: 'a'" in str(raised(TypeError, spec))
    with mock.patch.dict(globals(), plain=5):
        assert d(lambda: plain)() == 5


# ---- Copies --------------------------------------------------------------------------------------


def again(one: Any) -> list[Any]:
    """Copies of all kinds."""
    protocols = range(pickle.HIGHEST_PROTOCOL + 1)
    pickled = [pickle.loads(pickle.dumps(one, protocol)) for protocol in protocols]
    return [copy.copy(one), copy.deepcopy(one), *pickled]


class Service:
    def __init__(self, n: int) -> None:
        self.n = n

    @ai.compute.forward
    def method(self, a: int) -> int:
        return self.n + a

    @ai.compute.forward
    @classmethod
    def of_class(cls) -> str:
        return cls.__name__

    @ai.compute.forward
    @staticmethod
    def static() -> str:
        return "static"

    @property
    @ai.compute.forward
    def value(self) -> int:
        return self.n


@check(ways="bare")
def copies_of_named_functions() -> None:
    for made in (named, Service.method, Service.static):
        assert all(one is made for one in again(made))


@check(*["forward"] * 24, ways="bare")
def copies_of_methods() -> None:
    service = Service(5)
    for one in again(service.method):
        assert one(1) == 6
    for one in again(Service.of_class):
        assert one() == "Service"
    for one in again(service):
        assert one.value == 5


class Loud(dict):  # type: ignore[type-arg]
    def __call__(self, n: int) -> Any:
        return self.get(n)


@check(*["forward"] * 48)
def copies_of_other_callables(d: Decorator) -> None:
    """Undecorated, all of these can be copied and sent to another process. So can these, and the
    copies are recorded as well."""
    each: list[tuple[Any, Any]] = [
        (functools.partial(int, base=2), "11"),
        (len, "abc"),
        (Point(2), 1),
        (Point(3).get, None),
        (Loud({1: 3}), 1),
        (plain_three, None),
    ]
    for one, argument in each:
        for made in again(d(one)):
            assert made(*[] if argument is None else [argument]) == 3, one


def plain_three() -> int:
    return 3


class Layer:
    """Its method is decorated from outside, as one does with models of others."""

    def __init__(self, n: int) -> None:
        self.n = n

    def forward(self) -> Layer:
        return self


@check(*["forward"] * 9)
def copies_of_objects_with_decorated_methods(d: Decorator) -> None:
    layer = Layer(5)
    layer.forward = d(layer.forward)  # type: ignore[method-assign]
    assert layer.forward() is layer
    for one in again(layer):
        if one.__dict__["forward"] is layer.__dict__["forward"]:
            one.forward = layer.forward  # copy.copy: the same method of the same object
            assert one.forward() is layer
        else:
            assert one.forward() is one
            assert one is not layer
            assert one.n == 5


@check(ways="bare")
def copies_of_nodes() -> None:
    """An object may keep a node or a logger; it is copied and sent like any other."""

    class Module:
        def __init__(self) -> None:
            self.node = ai.compute.forward
            self.derived = ai.data.preprocess.derive("collate")
            self.log = dft_fn("data", "load", epoch=3)
            self.own = DFTracerAI(cat="mine", name="one", step=4)

    module = copy.deepcopy(Module())
    if not ON:
        return
    assert module.node is ai.compute.forward
    assert module.derived is ai.data.preprocess.derive("collate")
    assert (module.log.cat, module.log.name) == ("data", "load")
    assert (module.own.cat, module.own.name) == ("mine", "one")
    for node in (ai, ai.compute, ai.compute.forward, ai.data.io.read, ai.checkpoint.init):
        assert all(one is node for one in again(node)), node


@check("load epoch=3", "load epoch=3", "one step=4 x=1", "one step=4 x=1", ways="bare")
def copies_of_nodes_are_recorded() -> None:
    for node in (dft_fn("data", "load", epoch=3), DFTracerAI(cat="mine", name="one", step=4)):
        if isinstance(node, DFTracerAI):
            node.update(args={"x": 1})
        for one in (copy.copy(node), pickle.loads(pickle.dumps(node))):
            assert type(one) is type(node)
            with one:
                pass


@check("forward", "forward", "forward", ways="bare pinned log")
def copies_by_value(d: Decorator) -> None:
    """cloudpickle, which Dask, Ray and joblib use: functions of the main program and closures."""
    try:
        import cloudpickle
    except ImportError:
        for _ in range(3):
            d(plain_three)()
        return
    n = 3

    @d
    def closure() -> int:
        return n

    class Local:
        @d
        def method(self) -> int:
            return n

    for made, call in ((closure, lambda one: one()), (Local, lambda one: one().method())):
        assert call(cloudpickle.loads(cloudpickle.dumps(made))) == 3
    assert pickle.loads(cloudpickle.dumps(d(functools.partial(int, base=2))))("11") == 3


# ---- Keeping and letting go ----------------------------------------------------------------------


@check()
def hashes_and_weak_references(d: Decorator) -> None:
    made = d(lambda: 1)
    assert made == made
    assert made != d(lambda: 1)
    assert {made: 1}[made] == 1
    assert len({made, made}) == 1
    gone: list[Any] = []
    reference = weakref.ref(made, gone.append)
    keys: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary({made: 1})
    assert reference() is made
    assert len(keys) == 1
    del made
    assert reference() is None
    assert gone == [reference]
    assert len(keys) == 0

    class One:
        @d
        def method(self) -> int:
            return 1

    one = One()
    method = weakref.WeakMethod(one.method)
    assert method() == one.method
    del one
    assert method() is None


@check()
def nothing_is_kept(d: Decorator) -> None:
    """Functions that refer to themselves, in all the ways that they can, are let go."""
    references = []

    def closure() -> Any:
        def inner() -> Any:
            return made

        made = d(inner)
        return made

    def attribute() -> Any:
        made = d(lambda: 1)
        made.me = made
        return made

    def default() -> Any:
        made = d(lambda x=None: x)
        made.__defaults__ = (made,)
        return made

    def partial() -> Any:
        held: list[Any] = []
        held.append(d(functools.partial(print, held)))
        return held[0]

    def bound() -> Any:
        held: list[Any] = []
        held.append(d(held.append))
        return held[0]

    def instance() -> Any:
        point = Point()
        point.x = made = d(point)
        return made

    def in_class() -> Any:
        class One:
            @d
            def method(self) -> Any:
                return One

        return One.method

    def of_class() -> Any:
        @d
        class One:
            def __init__(self) -> None:
                self.me = One

        One()
        return One

    ways = (closure, attribute, default, partial, bound, instance, in_class)
    references = [weakref.ref(way()) for way in ways]
    if ON:
        gc.collect()
        kept = [way.__name__ for way, one in zip(ways, references) if one() is not None]
        assert kept == []


if __name__ == "__main__":
    main()

"""Decorated objects and classes, and what other decorators make of functions."""

from __future__ import annotations

import functools
from typing import Any

from checks import ON, Decorator, check, main, raised

from dftracer.python import ai

# ---- Objects and classes -------------------------------------------------------------------------


class Model:
    training = True

    def __init__(self) -> None:
        self.weights = [1, 2]

    def __call__(self, x: int) -> Any:
        return x if self.training else -x

    def train(self, on: bool) -> Model:
        self.training = on
        return self


@check("forward", "forward", "forward")
def callable_objects(d: Decorator) -> None:
    model = Model()
    made = d(model)
    assert made(1) == 1
    assert isinstance(made, Model)
    assert made.weights is model.weights
    made.train(False)
    assert made(1) == -1
    made.training = True
    made.extra = 5
    assert made(1) == 1
    assert (model.training, model.extra) == (True, 5)  # type: ignore[attr-defined]
    del made.extra
    assert not hasattr(model, "extra")
    assert not hasattr(made, "extra")


@check("forward", "forward", "forward")
def classes(d: Decorator) -> None:
    class Base:
        """Doc."""

        def __init__(self, n: int) -> None:
            self.n = n

    before = Base.__dict__.copy()
    made = d(Base)
    assert made is Base
    assert set(Base.__dict__) == set(before)

    class Derived(Base):
        def __init__(self) -> None:
            super().__init__(7)

    assert Base(3).n == 3
    assert type(Base(n=4)) is Base
    assert Derived().n == 7
    assert "takes 1 positional argument but 2 were given" in str(raised(TypeError, Derived, 1))


@check()
def classes_without_a_constructor(d: Decorator) -> None:
    """Nothing of theirs is run when an instance is made; they work as before."""
    import dataclasses
    import enum

    @d
    class Empty:
        pass

    @dataclasses.dataclass
    @d
    class Data:
        x: int

    @d
    class Colour(enum.Enum):
        RED = 1

    assert type(Empty()) is Empty
    assert str(raised(TypeError, Empty, 1)) == "Empty() takes no arguments"
    assert Data(1) == Data(x=1)
    assert Colour(1) is Colour.RED


@check(*["forward"] * 4)
def classes_with_new(d: Decorator) -> None:
    """Those make their instances in __new__, and have no __init__."""
    import typing

    @d
    class Row(typing.NamedTuple):
        x: int
        y: int = 2

    @d
    class Text(str):
        __slots__ = ()

    @d
    class New:
        def __new__(cls, n: int) -> New:
            return super().__new__(cls)

    class Derived(New):
        def __new__(cls) -> Derived:
            return super().__new__(cls, 5)  # type: ignore[return-value]

    assert Row(1) == (1, 2)
    assert Text("a") == "a"
    assert type(New(1)) is New
    assert type(Derived()) is Derived


@check("forward", "forward")
def data_classes(d: Decorator) -> None:
    import dataclasses

    @d
    @dataclasses.dataclass
    class Data:
        x: int
        y: int = 2

        @d
        def total(self) -> int:
            return self.x + self.y

    one = Data(1)
    assert one.total() == 3
    assert repr(one).endswith("Data(x=1, y=2)")
    assert dataclasses.asdict(one) == {"x": 1, "y": 2}


@check(*["forward"] * 5)
def c_classes(d: Decorator) -> None:
    assert d(functools.partial)(int, "5")() == 5
    assert functools.partial(int, "6")() == 6  # itself is as it was, and not recorded
    assert d(int)("5") == 5
    assert d(dict)(a=1) == {"a": 1}
    assert list(d(range)(3)) == [0, 1, 2]
    assert str(raised(ValueError, d(float), "x")) == str(raised(ValueError, float, "x"))


@check("item.iter count=1", "item.block count=1", ways="bare")
def c_classes_that_can_be_changed() -> None:
    """Other than those above, some made by extensions let their attributes be set. Their way to
    make an instance is left alone."""
    if ON:
        from dftracer import _core

        ai.compute.forward(_core.Iter)
    assert list(ai.data.item.iter([1])) == [1]


@check("forward", "forward")
def abstract_methods(d: Decorator) -> None:
    import abc

    class Base(abc.ABC):
        @d
        @abc.abstractmethod
        def above(self) -> int:
            return 1

        @abc.abstractmethod
        @d
        def below(self) -> int:
            return 2

        @property
        @abc.abstractmethod
        @d
        def value(self) -> int: ...

    class Derived(Base):
        def above(self) -> int:
            return super().above()

        def below(self) -> int:
            return super().below()

        value = 3

    assert Base.__abstractmethods__ == {"above", "below", "value"}
    raised(TypeError, Base)
    assert Derived().above() + Derived().below() == 3


@check(*["forward"] * 5)
def single_dispatch(d: Decorator) -> None:
    @d
    @functools.singledispatch
    def above(x: Any) -> str:
        return "object"

    @above.register
    def _(x: int) -> str:
        return "int"

    @functools.singledispatch
    @d
    def below(x: Any) -> str:
        return "object"

    @below.register(list)
    @d
    def _(x: Any) -> str:
        return "list"

    @below.register
    @d
    def by_hint(x: int) -> str:
        return "int"

    assert [above(1), above("")] == ["int", "object"]
    assert [below(1), below(""), below([])] == ["int", "object", "list"]
    assert above.dispatch(int)(1) == "int"


@check("forward", "forward")
def single_dispatch_methods(d: Decorator) -> None:
    class One:
        @d
        @functools.singledispatchmethod
        def which(self, x: Any) -> str:
            return "object"

        @which.register
        def _(self, x: int) -> str:
            return "int"

    assert [One().which(1), One().which("")] == ["int", "object"]


@check("forward", "forward", "forward")
def caches(d: Decorator) -> None:
    calls = []

    @functools.cache
    @d
    def above(n: int) -> int:
        calls.append(n)
        return n

    @d
    @functools.lru_cache
    def below(n: int) -> int:
        calls.append(n)
        return n

    assert above(1) + above(1) == 2
    assert above.cache_info().hits == 1
    assert below(1) + below(1) == 2
    assert below.cache_info().hits == 1
    below.cache_clear()
    assert below.cache_info().hits == 0
    assert calls == [1, 1]


@check("forward", "forward")
def cached_methods(d: Decorator) -> None:
    class One:
        @d
        @functools.lru_cache  # noqa: B019
        def get(self, n: int) -> int:
            return n

    one = One()
    assert one.get(1) + one.get(1) == 2
    assert One.get.cache_info().hits == 1


@check("forward", "forward")
def wraps(d: Decorator) -> None:
    """functools.wraps above and below, as other decorators have it."""

    def other(function: Any) -> Any:
        @functools.wraps(function)
        @d
        def wrapper(*args: Any) -> Any:
            return function(*args)

        return wrapper

    def plain(a: int) -> int:
        """Doc."""
        return a

    made = other(plain)
    assert made(2) == 2
    assert made.__wrapped__ is plain
    assert (made.__name__, made.__doc__) == ("plain", "Doc.")

    @functools.wraps(made)
    def around(*args: Any) -> Any:
        return made(*args)

    assert around(3) == 3
    assert around.__wrapped__ is made


@check("forward")
def no_callable(d: Decorator) -> None:
    """What is no callable, and nothing that is known, comes back as it is: decorating does not
    break a program that runs without."""

    class Descriptor:
        def __get__(self, one: Any, owner: Any) -> int:
            return 5

    class One:
        five = d(Descriptor())

    assert One().five == 5
    assert d(lambda: 1)() == 1


if __name__ == "__main__":
    main()

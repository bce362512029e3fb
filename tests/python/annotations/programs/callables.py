"""What each kind of callable is when it is decorated: what it was."""

from __future__ import annotations

import functools
import math
import operator
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from checks import Decorator, check, frames, main, raised

from dftracer.python import ai


def refused(value: int, *more: int) -> int:
    if value == 0:
        raise KeyError(value, more)
    return refused(value - 1, *more)


# ---- Functions -----------------------------------------------------------------------------------


@check("forward", "forward")
def function(d: Decorator) -> None:
    def plain(a: Any, /, b: Any = 2, *rest: Any, c: Any, d: Any = 4, **more: Any) -> Any:
        return a, b, rest, c, d, more

    made = d(plain)
    one = object()
    assert made(one, c=3)[0] is one
    assert made(1, 5, 6, 7, c=one, e=8) == (1, 5, (6, 7), one, 4, {"e": 8})


@check("forward", "forward")
def many_arguments(d: Decorator) -> None:
    made = d(lambda *a, **k: (len(a), len(k)))
    assert made(*range(300)) == (300, 0)
    assert made(**{f"k{i}": i for i in range(300)}) == (0, 300)


@check("forward", "forward")
def wrong_arguments(d: Decorator) -> None:
    def two(a: int, b: int) -> None: ...

    made = d(two)
    for args in [(), (1, 2, 3)]:
        told = raised(TypeError, made, *args)
        assert str(told) == str(raised(TypeError, two, *args))


@check("forward", "forward/forward", "forward")
def exception_is_the_functions_own(d: Decorator) -> None:
    made = d(refused)
    error = raised(KeyError, made, 3, 7)
    plain = raised(KeyError, refused, 3, 7)
    assert type(error) is KeyError
    assert error.args == plain.args == (0, (7,))
    assert frames(error) == frames(plain)
    assert error.__cause__ is error.__context__ is None

    one = ValueError("one")

    def inner() -> None:
        raise one from KeyError("cause")

    def outer() -> None:
        d(inner)()

    assert raised(ValueError, d(outer)) is one
    assert repr(one.__cause__) == "KeyError('cause')"
    assert [name for name, _ in frames(one)] == ["raised", "outer", "inner"]


@check(*["forward"] * 6)
def every_exception_passes(d: Decorator) -> None:
    def fail(kind: type[BaseException]) -> None:
        raise kind("x")

    made = d(fail)
    for kind in (KeyboardInterrupt, SystemExit, GeneratorExit, StopIteration, MemoryError):
        assert type(raised(kind, made, kind)) is kind
    assert raised(RecursionError, made, RecursionError).args == ("x",)


@check("forward", "forward")
def exception_state(d: Decorator) -> None:
    """What is being handled around a call is seen in it, and is the context of what it raises."""
    import sys

    @d
    def seen() -> Any:
        return sys.exc_info()[1]

    @d
    def again() -> None:
        raise KeyError("new")

    found = []
    try:
        raise ValueError("old")
    except ValueError as old:
        found = [old, seen(), raised(KeyError, again).__context__]
    assert found[0] is found[1] is found[2]
    assert sys.exc_info() == (None, None, None)


@check("forward")
def return_in_finally(d: Decorator) -> None:
    @d
    def swallow() -> int:
        try:
            raise KeyboardInterrupt
        finally:
            return 5  # noqa: B012

    assert swallow() == 5


@check("forward")
def lambdas(d: Decorator) -> None:
    made = d(lambda x, y=2: (x, y))
    assert made(1) == (1, 2)
    assert made.__name__ == "<lambda>"


@check("forward/forward/forward/forward", "forward/forward/forward", "forward/forward", "forward")
def recursion(d: Decorator) -> None:
    @d
    def factorial(n: int) -> int:
        return n * factorial(n - 1) if n > 1 else 1

    assert factorial(4) == 24


@check(ways="bare")
def recursion_limit() -> None:
    """Too deep: the same error at the same depth as without, and the stack is whole afterwards."""
    from dftracer.python import dft_fn

    hidden = dft_fn("depth", "deep", enable=True)
    depth = [0]

    def deep() -> None:
        depth[0] += 1
        deep()

    def recorded() -> None:
        depth[0] += 1
        again()

    raised(RecursionError, deep)
    plain, depth[0] = depth[0], 0
    hidden.disable()
    again = hidden.log(recorded)
    raised(RecursionError, again)
    assert abs(depth[0] - plain) <= 2, (plain, depth[0])


@check("backward/forward", "backward")
def two_nodes(d: Decorator) -> None:
    def plain(a: int) -> int:
        return a + 1

    made = ai.compute.backward(d(plain))
    assert made(1) == 2
    assert made.__name__ == "plain"


@check("forward/forward", "forward")
def the_same_node_twice(d: Decorator) -> None:
    assert d(d(lambda: 3))() == 3


@check(*["forward"] * 6)
def as_an_argument(d: Decorator) -> None:
    """Called by C code in all the ways that there are."""
    made = d(lambda *a: -a[0] if a else 7)
    assert sorted([1, 3, 2], key=made) == [3, 2, 1]
    assert list(map(made, [1])) == [-1]
    assert functools.reduce(d(operator.add), [1, 2]) == 3
    assert functools.partial(made, 5)() == -5


@check("forward", "forward", "forward", any_order=True)
def in_threads(d: Decorator) -> None:
    seen = []

    @d
    def work(n: int) -> int:
        seen.append(threading.current_thread())
        return n

    thread = threading.Thread(target=work, args=(1,))
    thread.start()
    thread.join()
    with ThreadPoolExecutor(1) as pool:
        assert list(pool.map(work, [1, 2])) == [1, 2]
    assert seen[0] is thread


# ---- Methods -------------------------------------------------------------------------------------


@check("forward", "forward", "forward", "forward/forward", "forward")
def methods(d: Decorator) -> None:
    class Base:
        factor = 2

        @d
        def times(self, n: int) -> int:
            """Doc."""
            return self.factor * n

    class Derived(Base):
        factor = 3

        @d
        def times(self, n: int) -> int:
            return 10 * super().times(n)

    one = Base()
    assert one.times(4) == 8
    assert Base.times(one, 4) == 8
    bound = one.times
    assert bound(n=5) == 10
    assert bound.__self__ is one
    assert bound.__func__ is Base.times is Base.__dict__["times"]
    assert bound == one.times
    assert hash(bound) == hash(one.times)
    assert bound.__doc__ == "Doc."
    assert bound.__name__ == "times"
    assert bound.__qualname__ == "methods.<locals>.Base.times"
    assert Derived().times(1) == 30


@check(*["forward"] * 6)
def static_methods(d: Decorator) -> None:
    class One:
        @d
        @staticmethod
        def above(a: int) -> int:
            return a

        @staticmethod
        @d
        def below(a: int) -> int:
            return a

        __call__ = None

    for name in ("above", "below"):
        assert isinstance(One.__dict__[name], staticmethod)
        assert getattr(One, name)(1) == getattr(One(), name)(1) == 1
        assert getattr(One, name).__name__ == name
        assert getattr(One, name).__qualname__ == f"static_methods.<locals>.One.{name}"
        assert One.__dict__[name].__func__(2) == 2


@check(*["forward"] * 6)
def class_methods(d: Decorator) -> None:
    class Base:
        @d
        @classmethod
        def above(cls) -> type:
            return cls

        @classmethod
        @d
        def below(cls) -> type:
            return cls

    class Derived(Base):
        pass

    for name in ("above", "below"):
        assert isinstance(Base.__dict__[name], classmethod)
        assert getattr(Base, name)() is Base
        assert getattr(Derived, name)() is Derived
        assert getattr(Derived(), name)() is Derived
        assert getattr(Derived, name).__self__ is Derived


@check(*["forward"] * 6)
def properties(d: Decorator) -> None:
    class One:
        def __init__(self) -> None:
            self._value = 1

        @d
        @property
        def above(self) -> int:
            """Above."""
            return self._value

        @above.setter
        def above(self, value: int) -> None:
            self._value = value

        @property
        @d
        def below(self) -> int:
            """Below."""
            return self._value

        @below.setter
        @d
        def below(self, value: int) -> None:
            self._value = value

        def _get(self) -> int:
            return self._value

        def _set(self, value: int) -> None:
            self._value = value

        def _delete(self) -> None:
            self._value = 0

        whole = d(property(_get, _set, _delete, "Whole."))

    one = One()
    assert one.above == 1
    one.above = 2  # its setter came after the decorator: not recorded
    one.below = one.below + 1
    assert one._value == 3
    one.whole = one.whole + 1
    assert one._value == 4
    del one.whole
    assert one._value == 0
    for name in ("above", "below", "whole"):
        made = One.__dict__[name]
        assert type(made) is property
        assert made.__doc__ == f"{name.capitalize()}."
    raised(AttributeError, delattr, one, "above")


@check("forward", "forward", "forward")
def cached_properties(d: Decorator) -> None:
    class One:
        @d
        @functools.cached_property
        def above(self) -> object:
            """Doc."""
            return object()

        @functools.cached_property
        @d
        def below(self) -> object:
            """Doc."""
            return object()

        @d
        @functools.cached_property
        def failing(self) -> object:
            raise ValueError("no")

    one = One()
    for name in ("above", "below"):
        assert getattr(one, name) is getattr(one, name) is one.__dict__[name]
        made = One.__dict__[name]
        assert isinstance(made, functools.cached_property)
        assert made.__doc__ == "Doc."
        assert made.attrname == name
    assert str(raised(ValueError, getattr, one, "failing")) == "no"


@check(*["forward"] * 5)
def partials(d: Decorator) -> None:
    def add(a: int, b: int = 0, *, c: int = 0) -> int:
        return a + b + c

    made = d(functools.partial(add, 1, c=5))
    assert made(2) == 8
    assert made.func is add
    assert made.args == (1,)
    assert made.keywords == {"c": 5}

    class One:
        base = 10

        def add(self, a: int, b: int) -> int:
            return self.base + a + b

        above = d(functools.partialmethod(add, 1))
        below = functools.partialmethod(d(add), 2)
        # A partial in a class is no method.
        plain = d(functools.partial(add, None, 3))

    one = One()
    assert one.above(1) == 12
    assert one.below(1) == 13
    assert One.above(one, 2) == 13
    One.base = 0
    with warnings.catch_warnings():  # from 3.13 on: it will be one
        warnings.simplefilter("ignore", FutureWarning)
        assert raised(AttributeError, one.plain, 1) is not None


@check(*["forward"] * 8)
def c_functions(d: Decorator) -> None:
    made = d(len)
    assert made([1, 2]) == 2
    assert str(raised(TypeError, made, 5)) == str(raised(TypeError, len, 5))
    assert frames(raised(TypeError, made, 5))[-1][0] == "raised"
    assert d(math.hypot)(3, 4) == 5
    assert d("ab".upper)() == "AB"
    assert d(str.upper)("ab") == "AB"
    assert d(operator.itemgetter(1))([1, 2]) == 2
    assert d(functools.partial(int, base=2))("101") == 5
    assert (made.__name__, made.__module__, made.__self__) == ("len", "builtins", len.__self__)


@check("forward", "forward")
def c_methods_in_a_class(d: Decorator) -> None:
    """A C function in a class body is no method; a method of a C type is one."""

    class Text(str):
        length = d(len)
        loud = d(str.upper)

    text = Text("abc")
    assert text.loud() == "ABC"
    assert text.length([1]) == 1


@check("forward")
def bound_methods(d: Decorator) -> None:
    class One:
        def get(self) -> One:
            return self

    one = One()
    made = d(one.get)
    assert made() is one
    assert made.__self__ is one
    assert made.__func__ is One.get


@check("forward", "forward", "forward", "forward")
def special_methods(d: Decorator) -> None:
    class One:
        @d
        def __init__(self, n: int) -> None:
            self.n = n

        @d
        def __call__(self, n: int) -> int:
            return self.n + n

        @d
        def __getitem__(self, key: int) -> int:
            return self.n * key

        @d
        def __enter__(self) -> One:
            return self

        def __exit__(self, *exc: object) -> None: ...

    with One(2) as one:
        assert one(3) == 5
        assert one[4] == 8


@check(*["forward/forward", "forward"] * 2, "forward")
def new_method(d: Decorator) -> None:
    class One:
        @d
        def __new__(cls, n: int) -> One:
            made = super().__new__(cls)
            made.n = n  # type: ignore[attr-defined]
            return made

        n: int

    class Two(One):
        @d
        def __new__(cls, n: int) -> Two:
            return super().__new__(cls, n + 1)  # type: ignore[return-value]

    assert type(Two(1)) is Two
    assert Two(1).n == 2
    assert One(1).n == 1


@check("forward", "forward", "forward")
def methods_that_are_class_methods_by_their_name(d: Decorator) -> None:
    found = []

    class Base:
        @d
        def __init_subclass__(cls, **options: Any) -> None:
            found.append((cls.__name__, options))

        @d
        def __class_getitem__(cls, item: Any) -> Any:
            return cls, item

    class Derived(Base, x=1):
        pass

    assert found == [("Derived", {"x": 1})]
    assert Base[int] == (Base, int)
    assert Derived[str] == (Derived, str)


@check("forward")
def del_method(d: Decorator) -> None:
    gone = []

    class One:
        @d
        def __del__(self) -> None:
            gone.append(self.__class__)

    One()
    assert gone == [One]


if __name__ == "__main__":
    main()

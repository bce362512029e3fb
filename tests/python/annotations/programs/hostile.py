"""Everything that the extension has, used as nobody should: whatever is raised is caught, and the
interpreter must live. Prints the number of calls that were made.

python hostile.py SEED ROUNDS
"""

from __future__ import annotations

import contextlib
import copy
import gc
import pickle
import random
import sys
import threading
import warnings
import weakref
from typing import Any

from dftracer import _core
from dftracer.python import DFTracerAI, ai, dft_fn, dftracer


class Rude:
    """Answers every question with an exception, or with code that uses nodes."""

    awake = False

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def _act(self, *_: Any, **__: Any) -> Any:
        if not Rude.awake:
            return 1
        what = self.chance.randrange(6)
        if what == 0:
            raise ValueError("rude")
        if what == 1:
            ai.compute.update(**{f"k{self.chance.randrange(50)}": 1})
        if what == 2:
            with ai.compute.forward(args={"x": self}):
                gc.collect(0)
        if what == 3:
            raise KeyboardInterrupt
        return self.chance.choice([None, 1, "x", [], self, float("nan")])

    __str__ = __repr__ = __len__ = __iter__ = __next__ = __bool__ = __index__ = _act  # type: ignore[assignment]
    __float__ = __int__ = __hash__ = __eq__ = __call__ = __getitem__ = keys = _act  # type: ignore[assignment]
    __get__ = __set_name__ = __await__ = __aiter__ = __anext__ = __fspath__ = _act
    send = throw = close = _act

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._act()


def make(chance: random.Random) -> tuple[list[Any], list[Any]]:
    """Objects to use, and values to use them with."""
    rude = Rude(chance)

    @ai.compute.forward
    def function(*args: Any, **more: Any) -> Any:
        return args

    @dft_fn("x").log
    def captures(self: Any, epoch: Any = 1, *, step: Any = None) -> Any:
        return self

    @ai.data.item
    def items(*args: Any) -> Any:
        for _ in range(20):
            yield (yield args)

    @ai.data.item
    async def slow(*args: Any) -> Any:
        return args

    @ai.data.item
    async def slow_items(*args: Any) -> Any:
        for _ in range(20):
            yield args

    class One:
        method = function
        prop = property(function)

    generator, coroutine, agenerator = items(), slow(), slow_items()
    step = agenerator.__anext__()
    node = DFTracerAI(cat="a", name="b")
    bare = _core.Node()
    things: list[Any] = [
        function,
        captures,
        items,
        generator,
        coroutine,
        agenerator,
        step,
        node,
        bare,
        ai.compute.forward(args={"x": 1}),
        node.derive("c"),
        dft_fn("x", "y"),
        node.iter(range(5)),
        node.iter([rude]),
        One().method,
        node(len),
        node(rude),
        node([].append),
    ]
    types = [_core.Node, _core.Function, _core.Callable, _core.Iter, *map(type, things[:7])]
    functions = [
        getattr(_core, name)
        for name in ("active", "time", "enter", "leave", "complete", "instant", "metadata")
    ]
    values = [
        None,
        True,
        0,
        -1,
        2**63,
        -(2**64),
        10**400,
        float("nan"),
        float("inf"),
        "",
        "text",
        "\udc80\0",
        "x" * 300,
        b"\xff\0",
        (),
        (1, 2),
        [],
        {},
        {"k": 1},
        {1: 2, None: [3], rude: rude},
        {"args": {"args": {}}},
        [rude],
        set(),
        object(),
        rude,
        ValueError,
        ValueError("x"),
        int,
        len,
        node,
        bare,
        function,
        generator,
        sys,
        range(3),
        memoryview(b"x"),
        *things,
    ]
    values.append(values)
    return [*things, *things, *types, *functions], values


CHANGES = ("__setattr__", "__delattr__", "__init__")
KEYS = ("epoch", "step", "image_size", "enable", "args", "metadata", "name", "x", "\udc80")


def poke(one: Any, values: list[Any], chance: random.Random) -> Any:
    def some() -> Any:
        return chance.choice(values)

    what = chance.randrange(20)
    # _define puts a node into a tree, and is nothing for users.
    names = [name for name in dir(type(one)) if name not in ("__class__", "_define")]
    name = chance.choice([*names, "_adopt", "_export", "update", "__dict__", "nothing"])
    if isinstance(one, type) and (what < 2 or name in CHANGES):
        return None  # changing the types would only disturb the rest
    if what == 0:
        return setattr(one, name, some())
    if what == 1:
        return delattr(one, chance.choice([name, "x"]))
    if what == 2:
        return [repr, str, hash, bool, dir, iter, next, len, vars, weakref.ref][
            chance.randrange(10)
        ](one)
    if what == 3:
        return chance.choice([copy.copy, copy.deepcopy, pickle.dumps])(one)
    if what == 4:
        return one == some(), one < some()
    if what == 5:
        with one:
            return poke(some(), values, chance)
    if what == 6:
        return type("Sub", (one if isinstance(one, type) else type(one),), {"x": some()})
    if what == 7:
        return object.__new__(one if isinstance(one, type) else type(one))
    called = one if what < 11 else getattr(one, name)
    args = [some() for _ in range(chance.choice([0, 0, 1, 1, 2, 3, 6]))]
    more = {chance.choice(KEYS): some() for _ in range(chance.choice([0, 0, 0, 1, 2]))}
    return called(*args, **more)


def main(seed: int, rounds: int) -> None:
    warnings.simplefilter("ignore")
    sys.unraisablehook = lambda unraisable: None
    sys.setrecursionlimit(300)
    dftracer.initialize_log("t.pfw")
    chance = random.Random(seed)
    calls = 0
    kept: list[Any] = []
    for n in range(rounds):
        if n % 50 == 0:
            kept.clear()
            things, values = make(chance)
        one = chance.choice(things)
        Rude.awake = True
        with contextlib.suppress(Exception, KeyboardInterrupt, GeneratorExit):
            kept.append(poke(one, values, chance))
        Rude.awake = False
        calls += 1
        if n % 500 == 0:
            thread = threading.Thread(target=kept.clear)
            thread.start()
            thread.join()
            gc.collect()
    kept.clear()
    print(calls)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))

"""dft_fn: decorators, the arguments that they take from calls and objects, loops, and by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.python_face import marks, own, run_python, shapes
from support.traces import Trace, read_one

HEAD = """\
from dftracer.python import dft_fn, dftracer, ai
dftracer.initialize_log("t.pfw")
x = dft_fn("app", name="x")
"""


def trace(body: str, where: Path, **how: Any) -> Trace:
    run_python(HEAD + body, cwd=where, **how)
    return read_one(where)


def named(trace: Trace) -> list[tuple[str, dict[str, Any]]]:
    return [(event["name"], own(event)) for event in trace.recorded]


DECORATORS = """
def plain(): return 1
@x.log
def bare(a, b=2):
    "doc"
    return a + b
@x.log()
def empty(): return "empty"
@x.log(name="given")
def renamed(): return "renamed"
@x.log("by position")
def positional(): return "positional"
@x
def direct(): return "direct"
class A:
    @x.log_init
    def __init__(self, value): self.value = value
    @x.log
    def method(self): return self.value
    @x.log_static
    @staticmethod
    def below(v): return v
    @staticmethod
    @x.log_static
    def above(v): return v
    @x.log_static(name="static")
    @staticmethod
    def third(v): return v
    @x.log
    @classmethod
    def made(cls): return cls
class B:
    @x.log_init(name="B made")
    def __init__(self): self.done = True
@x.log
def raising(): raise ValueError("own")
late = x.log(plain)
assert (bare(1), bare(1, b=5), empty(), renamed()) == (3, 6, "empty", "renamed")
assert (positional(), direct(), late()) == ("positional", "direct", 1)
a = A(7)
assert a.method() == 7 and a.below(1) == A.above(1) == a.third(1) == 1 and A.made() is A
assert A.__init__(a, 8) is None and a.value == 8 and B().done
assert (bare.__name__, bare.__doc__, bare.__qualname__) == ("bare", "doc", "bare")
try: raising()
except ValueError as error: assert error.args == ("own",)
else: raise AssertionError
@x.log
def loop(n): return n if n == 0 else loop(n - 1)
loop(2)
"""


def test_decorators(tmp_path: Path) -> None:
    found = shapes(trace(DECORATORS, tmp_path))
    expected = [
        *["bare", "bare", "empty", "given", "by position", "direct", "plain"],
        *["A.__init__", "A.method", "A.below", "A.above", "static", "A.made", "A.__init__"],
        *["B made", "raising", "loop/loop/loop", "loop/loop", "loop"],
    ]
    assert found == [("app", path, {}) for path in expected]


CAPTURES = """
@x.log
def parameters(epoch, step, image_idx, image_size, other): pass
@x.log
def defaults(step=3, epoch=None): pass
@x.log
def keyword_only(*, step, epoch=9): pass
@x.log
def variable(*args, **kwargs): pass
@x.log
def after(first, /, step, *rest, epoch=1): pass
@x.log
def only(epoch): pass
parameters(1, 2, 3, 224.5, 5)
parameters(image_size=(3, 4), image_idx=1, step=2, epoch=0, other=None)
defaults()
defaults(9)
defaults(step=9, epoch=4)
defaults(step=None)
keyword_only(step=4)
keyword_only(step=4, epoch=None)
variable(1, step=7)
after(0, 5, 6, 7)
after(0, step=5, epoch=2)
only(8)
try: parameters(1)
except TypeError as error: assert "missing 4" in str(error)
try: defaults(nonsense=1)
except TypeError as error: assert "nonsense" in str(error)
"""


def test_parameters_go_along_with_the_value_that_was_passed(tmp_path: Path) -> None:
    found = named(trace(CAPTURES, tmp_path))
    assert found == [
        ("parameters", {"epoch": 1, "step": 2, "image_idx": 3, "image_size": 224.5}),
        ("parameters", {"epoch": 0, "step": 2, "image_idx": 1, "image_size": [3, 4]}),
        ("defaults", {"step": 3}),
        ("defaults", {"step": 9}),
        ("defaults", {"step": 9, "epoch": 4}),
        ("defaults", {}),
        ("keyword_only", {"step": 4, "epoch": 9}),
        ("keyword_only", {"step": 4}),
        ("variable", {}),
        ("after", {"step": 5, "epoch": 1}),
        ("after", {"step": 5, "epoch": 2}),
        ("only", {"epoch": 8}),
        # Calls that fail to bind raise as they would, and are recorded.
        ("parameters", {"epoch": 1}),
        ("defaults", {"step": 3}),
    ]


OBJECTS = """
class Plain:
    epoch = 1                                  # of the class
    def __init__(self): self.step = 2; self.image_idx = None
    @x.log
    def run(self): self.step = 99              # as it was when the call began
    @x.log
    def over(self, step): pass                 # a parameter hides an attribute
    @x.log_init
    def initial(self, step=5): pass            # a constructor: only parameters
    @x.log_static
    def static(self, step): pass               # nothing at all
Plain().run()
Plain().over(step=7)
Plain().initial()
Plain().static(3)

class Slots:
    __slots__ = ("step", "epoch")
    @x.log
    def run(self): pass
s = Slots()
s.step = 4
s.run()

called = []
class Hostile:
    @property
    def epoch(self): called.append("property"); return 1
    def __getattr__(self, name): called.append(name); return 5
    @x.log
    def run(self): pass
class Everything(Hostile):
    def __getattribute__(self, name):
        called.append(name)
        return object.__getattribute__(self, name)
Hostile().run()
e = Everything()
run = type(e).run
called.clear()
run(e)
assert called == [], called

class Module:                                  # keeps what it holds elsewhere, as nn.Module does
    def __init__(self): self.__dict__["_buffers"] = {"step": 1}
    def __getattr__(self, name):
        called.append(name)
        return self.__dict__["_buffers"][name]
    @x.log
    def forward(self): return self.step
assert Module().forward() == 1
assert called == ["step"], called              # the function's own look, and no other

class Derived(Plain):
    @x.log
    def run(self): return super().run()
Derived().run()
@x.log
def free(self): pass                           # called self, and no method
free(Plain())
free(3)
free(None)
@x.log
def this(this): pass
this(Plain())
"""


def test_attributes_of_self_go_along_and_no_code_of_theirs_runs(tmp_path: Path) -> None:
    found = named(trace(OBJECTS, tmp_path))
    assert found == [
        ("Plain.run", {"epoch": 1, "step": 2}),
        ("Plain.over", {"step": 7, "epoch": 1}),
        ("Plain.initial", {"step": 5}),
        ("Plain.static", {}),
        ("Slots.run", {"step": 4}),
        ("Hostile.run", {}),
        ("Hostile.run", {}),
        ("Module.forward", {}),
        ("Plain.run", {"epoch": 1, "step": 2}),
        ("Derived.run", {"epoch": 1, "step": 2}),
        ("free", {"epoch": 1, "step": 2}),
        ("free", {}),
        ("free", {}),
        ("this", {}),
    ]


def test_captured_arguments_stay_with_their_call(tmp_path: Path) -> None:
    body = """
import threading
@x.log
def first(step): pass
@x.log
def second(): pass
first(step=3)
second()
gate = threading.Barrier(4)
def work(number):
    gate.wait()
    for i in range(50):
        first(step=number * 1000 + i)
        second()
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
for t in threads: t.start()
for t in threads: t.join()
"""
    found = trace(body, tmp_path)
    assert all(own(event) == {} for event in found.named("second"))
    assert len(found.named("second")) == 201
    by_thread: dict[int, list[int]] = {}
    for event in found.named("first"):
        by_thread.setdefault(event["tid"], []).append(own(event)["step"])
    lists = sorted(by_thread.values())
    assert lists == sorted([[3], *[[n * 1000 + i for i in range(50)] for n in range(4)]])


CONTEXTS = """
def outer():
    return dft_fn("app")
with outer(): pass                             # named after who made it
with dft_fn("app"): pass
with dft_fn(cat="app", name="block", epoch=1, step=2, image_idx=3, image_size=4.5) as c:
    assert c.update(step=5, args={"k": "v"}) is c
with c: pass                                   # again
with x:
    with x: pass                               # inside itself
try:
    with dft_fn("app", name="raises"): raise KeyError("own")
except KeyError: pass
with dft_fn("app", name="off", enable=False): pass
x.disable()
with x: pass
x.enable()
x.update(epoch=1)
with x: pass
x.update(epoch=None, args=None)                # not given
with x: x.update(args={"more": 1})
with dft_fn("other", name="apart"): pass       # what x was given is x's
with dft_fn("other", name="by position") as c: c.update(1, 2, 3, 4.5, {"k": 5})
"""


def test_blocks(tmp_path: Path) -> None:
    found = shapes(trace(CONTEXTS, tmp_path))
    given = {"epoch": 1, "step": 5, "image_idx": 3, "image_size": 4.5, "k": "v"}
    assert found == [
        ("app", "outer", {}),
        ("app", "<module>", {}),
        ("app", "block", given),
        ("app", "block", given),
        ("app", "x/x", {}),
        ("app", "x", {}),
        ("app", "raises", {}),
        ("app", "x", {"epoch": 1}),
        ("app", "x", {"epoch": 1, "more": 1}),
        ("other", "apart", {}),
        (
            "other",
            "by position",
            {"epoch": 1, "step": 2, "image_idx": 3, "image_size": 4.5, "k": 5},
        ),
    ]


LOOPS = """
items = []
for item in x.iter("ab"):
    with dft_fn("app", name="inside"): items.append(item)
assert items == ["a", "b"]
for item in x.iter(range(10), name="epochs", iter_name="epoch"):
    if item == 1: break
assert list(x.iter([])) == []
def source():
    yield 1
    raise OSError("own")
try:
    for item in x.iter(source(), "failing"): pass
except OSError as error: assert error.args == ("own",)
else: raise AssertionError
try:
    for item in x.iter([1], "body"): raise ValueError("own")
except ValueError: pass
del item
it = x.iter(iter([1, 2, 3]), "by hand")
assert iter(it) is it and next(it) == 1 and next(it) == 2
it = None
x.update(step=5)
for item in x.iter([7], "named", iter_name="step"): pass
x.disable()
assert list(x.iter([1, 2], "disabled")) == [1, 2]
"""


def test_loops(tmp_path: Path) -> None:
    def pairs(name: str, *numbers: int, key: str = "step") -> list[tuple[str, dict[str, int]]]:
        return [(f"{name}.{part}", {key: n}) for n in numbers for part in ("iter", "yield")]

    found = named(trace(LOOPS, tmp_path))
    first, second = pairs("loop", 1), pairs("loop", 2)
    assert found == [
        ("inside", {}),
        *first,
        ("inside", {}),
        *second,
        *pairs("epochs", 1, 2, key="epoch"),
        *pairs("failing", 1),
        *pairs("body", 1),
        *pairs("by hand", 1, 2),
        # The number of the item, not what was set on the node.
        *pairs("named", 1),
    ]


def test_flush_and_reset(tmp_path: Path) -> None:
    body = """
import time
log = dftracer.get_instance()
made = log.get_time()
y = dft_fn("app", name="y")
time.sleep(0.02)
y.flush()                                      # since it was made
y.update(step=1)
time.sleep(0.01)
y.reset()
again = log.get_time()
y.flush()                                      # since the reset
y.flush()                                      # since the flush
y.disable()
y.flush()
y.log_metadata("made", made)
y.log_metadata("again", again)
y.log_metadata("text", "wert")
"""
    found = trace(body, tmp_path)
    times = dict(marks(found))
    first, second, third = found.named("y")
    assert [own(event) for event in (first, second, third)] == [{}, {"step": 1}, {"step": 1}]
    assert first["ts"] >= int(times["made"])
    assert first["dur"] >= 19_900
    # The ten milliseconds before the reset are in none of them.
    assert second["ts"] >= first["ts"] + first["dur"] + 9_900
    assert second["ts"] <= int(times["again"])
    assert second["ts"] + second["dur"] <= third["ts"] + third["dur"]
    assert times["text"] == "wert"


def test_provenance_is_accepted(tmp_path: Path) -> None:
    body = """
from dftracer.python import EntityRelation, EntityRole, EntityStore
assert x.uses("file", "a") == x.generates("file", key=3, store=EntityStore.MEMORY, uri="b") == 0
assert x.relate_entity(EntityRelation.USED, "file", "a") == 0
assert x.relate(EntityRelation.GENERATED, 1) is x
log = dftracer.get_instance()
assert log.declare_entity("file", "a", store=EntityStore.LOCAL_DISK, uri="b") == 0
log.declare_entity_type("file", role=EntityRole.INPUT, description="c")
log.relate_entities(EntityRelation.DERIVED_FROM, 1, 2)
log.mark_used("numpy")
log.set_app_metadata_int("k", 3)
log.set_app_metadata_string("s", "t")
with x: pass
"""
    found = trace(body, tmp_path)
    assert marks(found) == [("k", "3"), ("s", "t")]
    assert len(found.recorded) == 1


@pytest.mark.parametrize("enable", [True, False])
def test_bad_uses_of_a_dft_fn_do_not_raise(enable: bool, tmp_path: Path) -> None:
    body = """
class Bad:
    def __str__(self): raise RuntimeError
    __repr__ = __str__
for make in (
    lambda: dft_fn(None), lambda: dft_fn(3, name=4), lambda: dft_fn(Bad(), name=Bad()),
    lambda: dft_fn("", name=""),
    lambda: dft_fn("c", name="n", epoch="x", step=[], image_idx=1.5, image_size=object()),
    lambda: dft_fn("c", name="n", enable=None),
):
    with make() as y: y.update(args={1: 2}).update(args=None).update(args=[("a", 1)]).update(args=3)
    y.reset(); y.flush()
list(x.iter([1], name=None)); list(x.iter([1], name="n", iter_name=None))
x.log(name=3)(len)([])
x.log_metadata("k", Bad()); x.log_metadata(Bad(), "v"); x.log_metadata("k", None)
"""
    run_python(HEAD + body, cwd=tmp_path, enable=enable)

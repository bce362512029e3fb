"""Values as programs give them: every one is had back from the trace, or shown by its type; none
runs code of the program's, and none is kept alive."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from support.python_face import own, run_python, same
from support.traces import Trace, read_one

HEAD = """\
import sys
from dftracer.python import DFTracerAI, ai, dft_fn, dftracer
log = dftracer.initialize_log("t.pfw")
"""

# ---- One value, given in every way --------------------------------------------------------------

# An expression, and what stands in the trace; the same in a list unless a third says otherwise.
VALUES: list[tuple[Any, ...]] = [
    ("True", 1, True),
    ("False", 0, False),
    ("None", None),
    ("0", 0),
    ("-1", -1),
    ("2**63 - 1", 2**63 - 1),
    ("-2**63", -(2**63)),
    ("2**64 - 1", 2**64 - 1),
    ("2**64", str(2**64)),
    ("-2**63 - 1", str(-(2**63) - 1)),
    ("10**400", str(10**400)),
    # Newer Pythons refuse to write more than 4,300 digits.
    ("10**5000", (hex if hasattr(sys, "get_int_max_str_digits") else str)(10**5000)),
    ("0.1", 0.1),
    ("-0.0", -0.0),
    ("1e22", 1e22),
    ("5e-324", 5e-324),
    ("1.7976931348623157e308", 1.7976931348623157e308),
    ("float('nan')", None),
    ("float('inf')", None),
    ("-float('inf')", None),
    ("''", ""),
    ("'\\0\\x01\\x1f\\x7f'", "\0\x01\x1f\x7f"),
    ("'a\\n\\r\\t\"\\\\/b'", 'a\n\r\t"\\/b'),
    ("'\\u2028\\ufeff\\uffff\\U0001f600é'", "\u2028\ufeff\uffff\U0001f600é"),
    ("'lone \\ud800'", "lone \\ud800"),
    ("'byte \\udc80'", "byte \uef80"),
    ("b'text'", "text"),
    ("b'\\xff\\x00'", "\uefff\0"),
    ("(1, 'a', None)", [1, "a", None]),
    ("[]", []),
    ("{}", {}),
    ("{'a': {'b': [1, 2.5, True, {}]}}", {"a": {"b": [1, 2.5, True, {}]}}),
    ("{3}", [3]),
    ("frozenset({3})", [3]),
    ("{1: 'int', 2.5: 'float', None: 'none'}", {"1": "int", "2.5": "float", "null": "none"}),
    ("collections.OrderedDict(a=1)", {"a": 1}),
    ("collections.Counter('aab')", {"a": 2, "b": 1}),
    ("collections.namedtuple('P', 'x y')(1, 2)", [1, 2]),
    ("enum.IntEnum('E', 'A').A", 1),
    ("signal.SIGTERM", 15),
    ("pathlib.Path('/data/x')", "/data/x"),
    ("pathlib.PurePosixPath('y')", "y"),
    # Everything else is shown by its type.
    ("object()", "object"),
    ("1j", "complex"),
    ("bytearray(b'x')", "bytearray"),
    ("memoryview(b'x')", "memoryview"),
    ("range(3)", "range"),
    ("collections.deque([1])", "collections.deque"),
    ("decimal.Decimal('1.5')", "decimal.Decimal"),
    ("fractions.Fraction(1, 2)", "Fraction"),
    ("datetime.date(2020, 1, 1)", "datetime.date"),
    ("int", "type"),
    ("len", "builtin_function_or_method"),
    ("lambda: 0", "function"),
    ("sys", "module"),
    ("(i for i in 'a')", "generator"),
    ("Ellipsis", "ellipsis"),
    ("type('Own', (), {})()", "Own"),
]
EVERY_WAY = (
    HEAD
    + """
import collections, datetime, decimal, enum, fractions, json, pathlib, signal
node = ai.compute.forward
for number, expression in enumerate(json.load(open("values.json"))):
    value = eval(expression)
    with node(args={"v": value, "l": [value]}): pass
    @node(args={"v": value, "l": [value]})
    def decorated(): pass
    decorated()
    with DFTracerAI(cat="c", name="n", args={"v": value, "l": [value]}): pass
    with dft_fn("c", name="n") as block: block.update(args={"v": value, "l": [value]})
    log.log_event("e", "c", 1, 1, {"v": value, "l": [value]})
    log.log_event("e", "c", 1, 1, None, None, {"v": (0, value), "l": (0, [value])})
    with dft_fn("c", name="n") as block: block.update(v=value, l=[value])
"""
)


def check_values(table: list[tuple[Any, ...]], where: Path, head: str = "") -> None:
    (where / "values.json").write_text(json.dumps([row[0] for row in table]))
    run_python(head + EVERY_WAY, cwd=where)
    events = read_one(where).recorded
    assert len(events) == 7 * len(table)
    for number, row in enumerate(table):
        nested = row[2] if len(row) > 2 else row[1]
        for way, event in enumerate(events[7 * number : 7 * number + 7]):
            had = own(event)
            # By keyword, None is what was not given.
            if way == 6 and row[0] == "None":
                assert had == {"l": [None]}
                continue
            shown = (row[0], way, str(had)[:300])
            assert same(had["v"], row[1]), shown
            assert same(had["l"], [nested]), shown


def test_every_value_in_every_way(tmp_path: Path) -> None:
    check_values(VALUES, tmp_path)


def test_numpy_values(tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    whole = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 intc longlong ulonglong intp"
    table: list[tuple[Any, ...]] = [
        *[(f"np.{kind}(7)", 7) for kind in whole.split()],
        ("np.int64(-(2**63))", -(2**63)),
        ("np.uint64(2**64 - 1)", 2**64 - 1),
        ("np.float64(0.1)", 0.1),
        ("np.float32(0.5)", 0.5),
        ("np.float16(1.5)", 1.5),
        ("np.longdouble(1.5)", 1.5),
        ("np.float32('nan')", None),
        ("np.bool_(True)", 1, True),
        ("np.str_('s')", "s"),
        ("np.bytes_(b's')", "s"),
        ("np.array(4)", 4),
        ("np.array(0.25)", 0.25),
        ("np.array([1, 2])", "numpy.ndarray"),
        ("np.array(['a'], dtype=object)", "numpy.ndarray"),
        ("np.array(object())", "numpy.ndarray"),
        ("np.complex64(1)", "numpy.complex64"),
        ("np.datetime64('2020-01-01')", "numpy.datetime64"),
    ]
    check_values(table, tmp_path, head="import numpy as np\n")


def test_torch_values(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    table: list[tuple[Any, ...]] = [
        ("torch.tensor(3)", 3),
        ("torch.tensor(0.5)", 0.5),
        ("torch.tensor(True)", 1, True),
        ("torch.nn.Parameter(torch.tensor(0.5))", 0.5),
        ("torch.tensor([1, 2])", "Tensor"),
        ("torch.tensor(3, device='meta')", "Tensor"),
        ("torch.float32", "torch.dtype"),
    ]
    check_values(table, tmp_path, head="import torch\n")


# ---- Objects that do not want to be looked at ---------------------------------------------------

HOSTILE = (
    HEAD
    + """
called = []
def hostile(base, name="Hostile"):
    '''A class that notes, and refuses, every operation on its objects.'''
    body = {}
    for method in (
        "repr str eq ne lt hash index int float complex bool len iter next getitem contains format "
        "fspath bytes call enter exit array array_interface array_struct item keys items reduce "
        "reduce_ex getattr getattribute length_hint reversed sizeof abs round trunc"
    ).split():
        def refuse(self, *args, _method=method, **kwargs):
            called.append(_method)
            raise RuntimeError(_method)
        body[f"__{method}__"] = refuse
    for attribute in ("item", "plain", "ndim", "is_cpu", "keys", "items", "value", "name"):
        body[attribute] = property(lambda self, _a=attribute: called.append(_a) or 1 / 0)
    # Objects of the class are made and dropped as others.
    kind = type(name, (base,), body)
    return kind
nodes = ai.compute.forward, dft_fn("c", name="n")
def give(value):
    with ai.compute.forward(args={"v": value, "l": [value, {"k": value}]}): pass
    with dft_fn("c", name="n") as block: block.update(v=value, args={"w": (value,)})
    log.log_event("e", "c", 1, 1, {"v": value}); log.log_event("e", "c", 1, 1, {"v": (0, value)})
    log.log_event(value, value, value, value, value); log.log_metadata_event(value, value)
    ai.update(args={"gone": value})
    list(ai.dataloader.fetch.iter([value])); ai.compute.start(); ai.compute.stop()
    @dft_fn("c", name="n").log
    def taken(step, epoch=value): return step
    assert taken(value) is value
values = [hostile(object)()]
values += [hostile(object, name)() for name in (
    "Tensor", "Parameter", "TagValue", "PosixPath", "PurePosixPath", "numpy.int64", "numpy.ndarray",
    "", "x" * 5000, "quote\\"\\\\\\n", "\\u00e9")]
values += [hostile(int)(7), hostile(int)(2**80), hostile(float)(0.5), hostile(str)("text"),
           hostile(bytes)(b"raw"), hostile(list)([1]), hostile(tuple)((1,)), hostile(set)({1}),
           hostile(frozenset)({1}), hostile(dict)(a=1)]
called.clear()
for value in values:
    give(value)
    assert called == [], (type(value), called)
for value in values: ai.update(args=value)          # a mapping has to be asked for its keys

# Classes that refuse to be asked.
class Meta(type):
    def __getattribute__(cls, name): called.append(name); raise RuntimeError(name)
    __repr__ = __str__ = __hash__ = __eq__ = lambda *a: 1 / 0
    __instancecheck__ = __subclasscheck__ = lambda *a: 1 / 0
thing = Meta("Thing", (), {}).__call__ if False else type.__call__(Meta("Thing", (), {}))
called.clear()
give(thing)
assert called == [], called

# Keys: of other types, hostile, and those that a dict takes for different.
class Key(str):
    armed = False
    def __hash__(self): return 1 / 0 if Key.armed else str.__hash__(self)
    def __eq__(self, other): return 1 / 0 if Key.armed else str.__eq__(self, other)
    __str__ = __repr__ = lambda self: 1 / 0
class Other:
    armed = False
    def __hash__(self): return 1 / 0 if Other.armed else 1
    def __eq__(self, other): return 1 / 0 if Other.armed else self is other
    __str__ = __repr__ = lambda self: 1 / 0
keys = {Key("key"): 1, Other(): 2, 5: 3, None: 4, b"raw": 5, (1, 2): 6, 2.5: 7, True: 8, "": 9}
Key.armed = Other.armed = True
log.finalize(); log = dftracer.initialize_log("t.pfw")
with dft_fn("c", name="keys") as block: block.update(args=keys)
with ai.compute.forward(args=keys): pass
log.log_event("keys", "c", 1, 1, keys)
with dft_fn("c", name="nested") as block: block.update(args={"k": keys})

# Mappings of the program's own: asked, but not trusted.
import types
class Raising:
    def keys(self): raise RuntimeError
    def __getitem__(self, key): raise RuntimeError
class Endless(dict):
    def __iter__(self):
        while True: yield "x"
    def keys(self): return iter(self)
for mapping in (types.MappingProxyType({"proxied": 1}), Raising(), Endless(kept=2), [("a", 1)], 3):
    with dft_fn("c", name="mapping") as block: block.update(args=mapping)
    with ai.compute.forward(args=mapping): pass
Key.armed = Other.armed = False
"""
)


def test_no_code_of_the_programs_runs(tmp_path: Path) -> None:
    run_python(HOSTILE, cwd=tmp_path)
    trace = read_one(tmp_path)
    shown = [own(event)["v"] for event in trace.named("forward") if "v" in own(event)]
    assert shown[0] == "Hostile"
    assert shown[1:8] == [
        *["Tensor", "Parameter", "TagValue", "PosixPath", "PurePosixPath"],
        *["numpy.int64", "numpy.ndarray"],
    ]
    assert shown[12:] == [7, str(2**80), 0.5, "text", "raw", [1], [1], [1], [1], {"a": 1}, "Thing"]
    first, second = trace.named("keys")
    for had in (own(first), own(second)):
        assert had.pop("key") == 1
        assert had.pop("5") == 3
        assert set(had.values()) >= {2, 4, 5, 6, 7, 8, 9}
    nested = own(trace.one("nested"))["k"]
    assert sorted(nested.values()) == list(range(1, 10))
    mappings = [own(event) for event in trace.named("mapping")]
    assert mappings == [{"proxied": 1}, {}, {"kept": 2}, {}, {}]


# ---- Sizes and shapes ---------------------------------------------------------------------------

SIZES = (
    HEAD
    + """
def give(name, value):
    with dft_fn("c", name=name) as block: block.update(args={"v": value})
deep = leaf = []
for _ in range(14): leaf.append([]); leaf = leaf[0]
give("15 deep", deep)
for _ in range(3): leaf.append([]); leaf = leaf[0]
give("18 deep", deep)
for _ in range(100_000): leaf.append([]); leaf = leaf[0]
give("very deep", deep)
while deep: deep = deep.pop()                       # or the interpreter's own recursion frees it
a = []; a.append(a); give("cyclic list", a)
d = {}; d["d"] = d; give("cyclic dict", d)
b = []; b += [b] * 10; give("cyclic and wide", b)
t = ([],); t[0].append(t); give("cyclic tuple", t)
give("4096 items", list(range(4096)))
give("4097 items", list(range(4097)))
give("4097 keys", dict.fromkeys(map(str, range(4097)), 1))
give("4097 of a set", set(range(4097)))
give("wide", [[1] * 1000] * 1000)
give("long in a list", ["x" * 1_000_000])
give("longer in a list", ["x" * 1_100_000])
give("long", "x" * 1_000_000)
give("long bytes", b"\\xff" * 300_000)
with dft_fn("c", name="300 keys") as block: block.update(args={f"key {i}": i for i in range(300)})
with ai.compute.forward(args={f"other {i}": i for i in range(5000)}): pass
with dft_fn("c", name="long keys") as block: block.update(args={"k" * 70_000: 1, "k" * 70_001: 2})
with dft_fn("x" * 100_000, name="y" * 100_000): pass
with dft_fn("c", name="reserved") as block:
    block.update(args={"hhash": 1, "p_idx": 2, "level": 3, "level_": 4, "hhash_": 5, "hhash__": 6})
with dft_fn("c", name="reserved elsewhere") as block:
    block.update(args={"id": 1, "name": 2, "ts": 3, "ph": 4, "args": 5, "count": 6, "busy": 7})
for _ in ai.dataloader.fetch(args={"count": "mine"}).iter([1]): pass
with dft_fn("c", name="twice") as block:
    block.update(step=1, args={"step": 2}); block.update(args={"step": 3}, step=4)
with dft_fn("c", name="numbers") as block: block.update(args={1: "int", "1": "text"})
"""
)


@pytest.fixture(scope="module")
def sizes(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    where = tmp_path_factory.mktemp("sizes")
    run_python(SIZES, cwd=where)
    return read_one(where)


def test_sizes(sizes: Trace) -> None:
    trace = sizes
    had = {event["name"]: own(event) for event in trace.recorded if len(event["name"]) < 100}
    text = {name: json.dumps(args.get("v")) for name, args in had.items()}
    assert text["15 deep"] == "[" * 15 + "]" * 15
    assert text["18 deep"] == text["very deep"] == "[" * 16 + '"list"' + "]" * 16
    assert text["cyclic list"] == text["18 deep"]
    assert text["cyclic dict"] == '{"d": ' * 16 + '"dict"' + "}" * 16
    assert text["cyclic and wide"] == '"list"'
    assert text["cyclic tuple"].startswith("[[[[")
    assert had["4096 items"]["v"] == list(range(4096))
    assert [had[name]["v"] for name in ("4097 items", "4097 keys", "4097 of a set")] == [
        *["list", "dict", "set"]
    ]
    assert had["wide"]["v"] == "list"
    assert had["long in a list"]["v"] == ["x" * 1_000_000]
    assert had["longer in a list"]["v"] == "list"
    assert had["long"]["v"] == "x" * 1_000_000
    assert had["long bytes"]["v"] == "\uefff" * 300_000
    assert had["300 keys"] == {f"key {i}": i for i in range(300)}
    assert had["forward"] == {f"other {i}": i for i in range(5000)}
    assert sorted(map(len, had["long keys"])) == [70_000, 70_001]
    (long,) = (event for event in trace.recorded if len(event["name"]) >= 100)
    assert (len(long["cat"]), len(long["name"])) == (100_000, 100_000)


def test_keys_that_are_taken(sizes: Trace) -> None:
    trace = sizes
    # The tracer's own stay; what the program said is beside them, and nothing is lost.
    event = trace.one("reserved")
    assert event["args"]["level"] == 1
    assert event["args"]["p_idx"] == -1
    given = {
        key: value for key, value in event["args"].items() if key not in ("hhash", "p_idx", "level")
    }
    assert sorted(given.values()) == [1, 2, 3, 4, 5, 6]
    assert (given["level_"], given["hhash_"], given["hhash__"]) == (4, 5, 6)
    assert {key.rstrip("_") for key in given} == {"hhash", "p_idx", "level"}
    other = trace.one("reserved elsewhere")
    assert {**other["args"], "hhash": 0} == {
        **{"hhash": 0, "p_idx": -1, "level": 1},
        **{"id": 1, "name": 2, "ts": 3, "ph": 4, "args": 5, "count": 6, "busy": 7},
    }
    assert own(trace.one("fetch.block")) == {"count": 1}
    assert own(trace.one("twice"))["step"] in (3, 4)
    assert own(trace.one("numbers")) == {"1": "text"}


LEAKS = (
    HEAD
    + """
import gc, weakref
gc.disable()                                        # as training loops do
class Thing: pass
values = [Thing(), 2**80, 0.5, "some text", b"raw", [1, Thing()], (1, "x"), {1, 2}, {"a": Thing()}]
node, block = ai.compute.forward, dft_fn("c", name="n")
@block.log
def taken(step): pass
def use(value, key):
    with node(args={key: value}): pass
    block.update(args={key: value}, step=value)
    with block: pass
    ai.update(args={key: value})
    log.log_event("e", "c", 1, 1, {key: value}); log.log_metadata_event(key, value)
    taken(value)
for value in values:
    key = f"a key of its own {id(value)}"
    use(value, key)
    before = sys.getrefcount(value), sys.getrefcount(key)
    for _ in range(50): use(value, key)
    assert (sys.getrefcount(value), sys.getrefcount(key)) == before, value
thing = Thing()
ref = weakref.ref(thing)
use(thing, "k")
del thing
assert ref() is None                                # nothing of the program's is kept alive
one = node(args={"a": 1})
ref = weakref.ref(one)
with one: pass
del one
assert ref() is None
"""
)


def test_nothing_is_kept_alive(tmp_path: Path) -> None:
    run_python(LEAKS, cwd=tmp_path)


def test_more_names_than_the_table_of_names_takes(tmp_path: Path) -> None:
    body = """
for i in range(25_000):
    with dft_fn(f"category {i}", name=f"name {i}") as block: block.update(args={f"key {i}": i})
"""
    run_python(HEAD + body, cwd=tmp_path)
    events = read_one(tmp_path).recorded
    assert len(events) == 25_000
    for i, event in enumerate(events):
        assert (event["name"], event["cat"]) == (f"name {i}", f"category {i}")
        assert own(event) == {f"key {i}": i}

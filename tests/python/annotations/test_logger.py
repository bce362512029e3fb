"""The process's logger: its files, events by hand, and every way in which a program can end."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from support.limits import HANG
from support.python_face import marks, own, run_python, shapes
from support.run import run, start
from support.traces import Trace, files, read, read_directory, read_one, spools

HEAD = """\
import os, sys
from dftracer.python import dftracer, ai, dft_fn, TagValue, TagDType, TagType
"""
WORK = HEAD + 'log = dftracer.initialize_log("t.pfw")\n'


def everything(directory: Path) -> list[str]:
    """All files below but the program, hidden ones too."""
    found = (path for path in directory.rglob("*") if not path.is_dir())
    return sorted(str(path.relative_to(directory)) for path in found if path.name != "program.py")


def recover(directory: Path) -> None:
    run(sys.executable, "-m", "dftracer", "recover", directory, cwd=directory)


# ---- Files --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "env", "expected"),
    [
        ('"x.pfw", None, -1', {}, "x.pfw.gz"),
        ('"a/b/x.pfw", "/tmp/data", 3', {}, "a/b/x.pfw.gz"),
        ('logfile="a/x.pfw", data_dir="all", process_id=3', {}, "a/x.pfw.gz"),
        ('process_id=3, logfile="x.pfw"', {"DFTRACER_TRACE_COMPRESSION": "0"}, "x.pfw"),
        ('pathlib.Path("a") / "x.pfw", pathlib.Path("d"), 3', {}, "a/x.pfw.gz"),
        ('b"x\\xff.pfw", b"d:e", None', {}, "x\udcff.pfw.gz"),
        ('"x.pfw", ["d", pathlib.Path("e")]', {}, "x.pfw.gz"),
        ("", {"DFTRACER_LOG_FILE": "logs/run.pfw"}, "logs/run.pfw.gz"),
        ("None, None, None", {"DFTRACER_LOG_FILE": "run", "RANK": "5"}, "run-"),
    ],
)
def test_file_and_rank(call: str, env: dict[str, str], expected: str, tmp_path: Path) -> None:
    program = f"""\
        import pathlib
        from dftracer.python import dftracer, ai
        log = dftracer.initialize_log({call})
        assert log is dftracer.get_instance() is dftracer.initialize_log("another.pfw")
        with ai.compute: pass
        log.finalize()
    """
    run_python(program, cwd=tmp_path, env=env)
    found = everything(tmp_path)
    assert len(found) == 1, found
    assert found[0] == expected if "." in expected else found[0].startswith(expected)
    trace = read(tmp_path / found[0])
    assert [event["name"] for event in trace.recorded] == ["compute"]
    rank = "3" if "3" in call else env.get("RANK")
    assert trace.meta("PR", "rank") == ([rank] if rank else [])
    if rank:
        assert [r["args"]["name"] for r in trace.named("process_name")] == [f"rank {rank}"]


def test_wrong_arguments_of_initialize_log_are_one_line(tmp_path: Path) -> None:
    program = (
        HEAD
        + """
class Bad:
    def __fspath__(self): raise RuntimeError("own")
    def __int__(self): raise RuntimeError("own")
    __index__ = __str__ = __repr__ = __int__
for given in ((3,), ("a\\0b",), (Bad(),), (["t.pfw"],), ("t.pfw", 3.5), ("t.pfw", [3]),
              ("t.pfw", None, "abc"), ("t.pfw", None, 2**40), ("t.pfw", None, Bad())):
    print(file=sys.stderr)
    assert dftracer.initialize_log(*given) is dftracer.get_instance(), given
    with ai.compute: pass
"""
    )
    done = run_python(program, cwd=tmp_path, stderr=None)
    lines = done.stderr.split("\n\n")
    assert len(lines) == 9
    for line in lines:
        assert re.fullmatch(r"\n?dftracer: [^\n]+\n?", line), done.stderr


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    program = (
        HEAD
        + """
dftracer.initialize_log("file/t.pfw")
with ai.compute: pass
print("went on")
"""
    )
    done = run_python(program, cwd=tmp_path, stderr=re.compile(r"dftracer: [^\n]*/file: [^\n]*\n"))
    assert done.stdout == "went on\n"
    assert everything(tmp_path) == ["file"]


# ---- Time and events by hand --------------------------------------------------------------------

EVENTS = (
    HEAD
    + """
import time
log = dftracer.get_instance()
assert log.get_time() == 0
log.log_event("early", "c", 1, 1); log.enter_event(); log.exit_event(); log.exit_event()
log.log_metadata_event("early", "v"); log.finalize()
log = dftracer.initialize_log("t.pfw")
t = log.get_time()
assert type(t) is int and abs(t - time.time() * 1e6) < 60e6 and log.get_time() >= t
assert 0 < log.start_time <= t

# Arguments: with a role, plain, and the same key in several.
log.log_event("tags", "c", t, 5, {"a": TagValue(1, TagDType.INT).value()},
              {"b": TagValue(2, TagDType.FLOAT, TagType.VALUE).value()},
              {"c": TagValue(3, tag_type=TagType.IGNORE).value(), "d": TagValue(4, TagDType.INT)})
log.log_event("plain", "c", t, 5, int_args={"a": 3, "big": 2**40}, float_args={"b": 0.5},
              string_args={"c": "text"})
log.log_event("mixed", "c", t, 5, {"k": 1}, {"k": 2.5}, {"k": "last"})
log.log_event(name="named", cat="c", start_time=t, duration=5, relations=[])

# Times that are no whole numbers, or none at all.
log.log_event("floats", "c", float(t), 5.9)
log.log_event("negative", "c", t, -5)
for name, start, duration in (("text", "x", "y"), ("none", None, None), ("huge", t, 2**70),
                              ("nan", float("nan"), float("inf"))):
    log.log_event(name, "c", start, duration)
log.log_event(None, None, t, 1); log.log_event("args", "c", t, 1, 3, "x", [("a", 1)])
log.log_event("", "", t, 1); log.log_event(b"bytes", "c", t, 1)

# Levels.
def event(name): log.log_event(name, "c", log.get_time(), 0)
log.enter_event()
log.enter_event(); event("inner"); log.exit_event()
with ai.compute: event("in compute")
event("outer"); event("late"); log.exit_event()
event("top")
log.enter_event(); log.exit_event()                 # nothing was logged inside
log.exit_event(); log.exit_event()                  # one too many
event("after")
import threading
log.enter_event()
threads = [threading.Thread(target=event, args=("elsewhere",))]
for thread in threads: thread.start(); thread.join()
event("here")
log.exit_event()
print(t)
log.finalize()
log.finalize()
assert log.get_time() == 0
event("too late")
with ai.compute: pass
"""
)


@pytest.fixture(scope="module")
def by_hand(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trace, int]:
    where = tmp_path_factory.mktemp("by_hand")
    done = run_python(EVENTS, cwd=where)
    return read_one(where), int(done.stdout)


def test_arguments_of_log_event(by_hand: tuple[Trace, int]) -> None:
    trace, t = by_hand
    args = {event["name"]: own(event) for event in trace.recorded}
    assert repr(args["tags"]) == repr({"a": 1, "b": 2.0, "c": "3", "d": 4})
    assert repr(args["plain"]) == repr({"a": 3, "big": 2**40, "b": 0.5, "c": "text"})
    assert args["mixed"] == {"k": "last"}
    assert args["named"] == {}
    for name in ("tags", "plain", "mixed", "named", "floats"):
        assert (trace.one(name)["ts"], trace.one(name)["dur"]) == (t, 5)


def test_events_that_make_no_sense_are_there_without_a_length(by_hand: tuple[Trace, int]) -> None:
    trace, t = by_hand
    assert (trace.one("negative")["ts"], trace.one("negative")["dur"]) == (t, 0)
    for name in ("text", "none", "huge", "nan", "args", "bytes"):
        assert len(trace.named(name)) == 1, name
    categories = [event["cat"] for event in trace.recorded if event["ts"] == t]
    assert all(categories)  # never empty
    assert trace.named("early") == trace.named("too late") == []


def test_levels_of_events_by_hand(by_hand: tuple[Trace, int]) -> None:
    found = [path for cat, path, _ in shapes(by_hand[0]) if "/" in path or cat == "c"]
    levels = found[found.index("outer/inner") :]
    # A thread's levels are its own.
    assert levels.count("elsewhere") == 1
    levels.remove("elsewhere")
    assert levels == [
        *["outer/inner", "outer/compute/in compute", "outer/compute", "outer", "outer/late"],
        *["top", "after", "here"],
    ]


def test_units_of_time_and_arguments_without_metadata(tmp_path: Path) -> None:
    body = """
from dftracer.python import get_time_scale
assert get_time_scale() == 1_000_000_000
t = log.get_time()
log.log_event("e", "c", t, 1500, {"k": 1})
ai.update(step=3)
with ai.compute(args={"own": 1}): pass
print(t)
"""
    env = {"DFTRACER_TIME_METRIC": "NS", "DFTRACER_INC_METADATA": "0"}
    done = run_python(WORK + body, cwd=tmp_path, env=env)
    trace = read_one(tmp_path)
    event = trace.one("e")
    assert (event["ts"], event["dur"]) == (int(done.stdout), 1500)
    # What the program said of its events is never left out.
    assert [own(event) for event in trace.recorded] == [{"k": 1}, {"step": 3, "own": 1}]


METADATA = (
    WORK
    + """
class Bad:
    def __str__(self): raise RuntimeError
    __repr__ = __eq__ = __hash__ = __bool__ = __str__
for key, value in (("str", "text"), ("bytes", b"b"), ("int", 7), ("big", 2**70), ("float", 0.5),
                   ("true", True), ("none", None), ("list", [1, "a"]), ("dict", {"a": 1}),
                   ("object", Bad()), (5, "key"), ("", "empty"), ("quote", 'a"\\\\\\n\\0'),
                   ("nan", float("nan")), (Bad(), "bad key"), ("long", "x" * 100_000)):
    log.log_metadata_event(key, value)
log.log_metadata_event(key="k", value="v")
"""
)


def test_metadata_values(tmp_path: Path) -> None:
    run_python(METADATA, cwd=tmp_path)
    found = marks(read_one(tmp_path))
    assert len(found) == 17
    had = dict(found)
    assert had["str"] == "text"
    assert had["bytes"] == "b"
    assert had["int"] == "7"
    assert had["big"] == str(2**70)
    assert had["float"] == "0.5"
    assert had["none"] in ("null", "None")
    assert json.loads(had["list"]) == [1, "a"]
    assert json.loads(had["dict"]) == {"a": 1}
    assert had["object"] == "Bad"
    assert had["5"] == "key"
    assert had["Bad"] == "bad key"
    assert had["quote"] == 'a"\\\n\0'
    assert had["k"] == "v"
    assert len(had["long"]) == 100_000


# ---- Beginning again, and going on --------------------------------------------------------------


def test_started_again_after_finalize(tmp_path: Path) -> None:
    program = (
        WORK
        + """
def mark(name):
    with dft_fn("app", name=name): pass
@ai.compute.forward
def forward(): pass
mark("first"); forward()
log.finalize(); log.finalize()
mark("between"); forward()
assert dftracer.initialize_log("t.pfw") is log
mark("second"); forward()
log.finalize()
dftracer.initialize_log("other.pfw")
mark("third"); forward()
"""
    )
    run_python(program, cwd=tmp_path)
    names = {
        trace.path.name: [event["name"] for event in trace.recorded]
        for trace in read_directory(tmp_path)
    }
    assert names == {
        "t.pfw.gz": ["first", "forward", "second", "forward"],
        "other.pfw.gz": ["third", "forward"],
    }


def test_flush_brings_the_file_up_to_date(tmp_path: Path) -> None:
    program = (
        WORK
        + """
import gzip
with ai.compute.forward: pass
log.flush()
text = gzip.open("t.pfw.gz", "rt").read()
assert '"name":"forward"' in text, text
with ai.compute.backward: pass
"""
    )
    run_python(program, cwd=tmp_path)
    assert [event["name"] for event in read_one(tmp_path).recorded] == ["forward", "backward"]


def test_cells_of_a_notebook(tmp_path: Path) -> None:
    """Cells run one by one and again, in any order, in a process that is killed at the end."""
    program = """\
        import code, os, signal
        cells = {
            "init": "from dftracer.python import dftracer, ai; log = dftracer.initialize_log('t')",
            "define": "@ai.compute.forward\\ndef forward(step):\\n    ai.update(step=step)\\n",
            "call": "forward(number)",
            "wrong": "with ai.compute.backward:\\n    forward(number); 1 / 0",
            "end": "log.finalize()",
        }
        shell = code.InteractiveInterpreter()
        shell.write = lambda text: None
        order = "init define call call wrong init call define call end init call wrong"
        for number, name in enumerate(order.split()):
            shell.locals["number"] = number
            shell.runcode(compile(cells[name], f"<cell {number}>", "exec"))
        os.kill(os.getpid(), signal.SIGKILL)
    """
    run_python(program, cwd=tmp_path, expect=-9)
    recover(tmp_path)
    assert everything(tmp_path) == ["t.pfw.gz"]
    trace = read_one(tmp_path)
    found = [(path, args["step"]) for _, path, args in shapes(trace)]
    assert found == [
        *[("forward", 2), ("forward", 3), ("backward/forward", 4), ("backward", 4)],
        *[("forward", 6), ("forward", 8)],
        *[("forward", 11), ("backward/forward", 12), ("backward", 12)],
    ]


# ---- Ends ---------------------------------------------------------------------------------------

WITHOUT_FINALIZE = (
    WORK
    + """
import signal, threading, time
@ai.compute.forward
def forward(step): pass
with dft_fn("app", name="around"):
    for step in range(300):
        ai.update(step=step)
        forward(step)
thread = threading.Thread(target=lambda: [forward(0) for _ in range(100)])
thread.start(); thread.join()
sys.stdout.write("ready\\n"); sys.stdout.flush()
"""
)
ENDS: dict[str, tuple[str, int, str, bool]] = {
    # what the program does, its status, the last line of stderr, whether somebody must recover
    "normal": ("pass", 0, "", False),
    "exception": ("raise ValueError('own')", 1, "ValueError: own", False),
    "inside": ("with ai.compute.step: raise ValueError('own')", 1, "ValueError: own", False),
    "sys.exit": ("sys.exit(3)", 3, "", False),
    "daemon": (
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start(); sys.exit(3)",
        *(3, "", False),
    ),
    "os._exit": ("os._exit(4)", 4, "", True),
    "abort": ("signal.signal(signal.SIGABRT, signal.SIG_DFL); os.abort()", -6, "", True),
    "SIGTERM": ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(600)", -15, "", True),
    "SIGKILL": ("os.kill(os.getpid(), signal.SIGKILL)", -9, "", True),
    "exec": ("os.execv('/bin/true', ['true'])", 0, "", True),
}


@pytest.mark.parametrize("how", ENDS)
def test_nothing_is_missing_without_finalize(how: str, tmp_path: Path) -> None:
    code, status, last, by_others = ENDS[how]
    done = run_python(WITHOUT_FINALIZE + code, cwd=tmp_path, expect=status, stderr=None)
    assert done.stderr.strip().split("\n")[-1] == last
    if by_others:
        recover(tmp_path)
    assert spools(tmp_path) == []
    trace = read_one(tmp_path)
    steps = [event["args"]["step"] for event in trace.named("forward")]
    assert sorted(steps) == sorted([*range(300), *[299] * 100])
    assert len(trace.named("around")) == 1
    assert len(trace.named("step")) == (how == "inside")


def test_ctrl_c_is_the_programs_own(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(WITHOUT_FINALIZE + "time.sleep(600)\n")
    process = start(sys.executable, "program.py", cwd=tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(2)
    _, errors = process.communicate(timeout=HANG)
    assert process.returncode == -2  # as an untraced Python ends
    assert errors.strip().endswith(b"KeyboardInterrupt")
    assert [path.name for path in files(tmp_path)] == ["t.pfw.gz"]
    assert len(read_one(tmp_path).named("forward")) == 400


def test_a_handler_of_the_programs_own_stays(tmp_path: Path) -> None:
    program = (
        WORK
        + """
import signal
seen = []
signal.signal(signal.SIGTERM, lambda *_: seen.append(1))
dftracer.initialize_log("t.pfw")
with ai.compute: os.kill(os.getpid(), signal.SIGTERM)
assert seen == [1]
"""
    )
    run_python(program, cwd=tmp_path)
    assert len(read_one(tmp_path).recorded) == 1


def test_the_native_module_by_its_old_name(tmp_path: Path) -> None:
    program = """\
        import dftracer.dftracer as native
        native.initialize(log_file="t.pfw", data_dirs=None, process_id=2)
        t = native.get_time()
        native.enter_event()
        native.log_event("e", "c", t, 1, {"i": 1}, {"s": "x"}, {"f": 0.5})
        native.exit_event()
        native.log_metadata_event("k", "v")
        native.set_app_metadata_int("n", 1); native.set_app_metadata_string("m", "o")
        native.mark_used("x")
        assert native.get_config("DFTRACER_ENABLE") == "1" and native.get_config("NOPE") == ""
        native.finalize()
    """
    run_python(program, cwd=tmp_path)
    trace = read_one(tmp_path)
    assert shapes(trace) == [("c", "e", {"i": 1, "s": "x", "f": 0.5})]
    assert marks(trace) == [("k", "v"), ("n", "1"), ("m", "o")]


def test_numpy_times_and_values(tmp_path: Path) -> None:
    np: Any = pytest.importorskip("numpy")
    program = (
        WORK
        + """
import numpy as np
t = log.get_time()
log.log_event("np", "c", np.int64(t), np.int32(7), {"i": np.int64(3)}, {"f": np.float32(0.5)})
log.log_event("np", "c", np.float64(t), np.float32(7.0), {"i": np.uint8(3)}, {"f": np.float64(0.5)})
print(t)
"""
    )
    done = run_python(program, cwd=tmp_path)
    assert np is not None
    for event in read_one(tmp_path).recorded:
        assert (event["ts"], event["dur"]) == (int(done.stdout), 7)
        assert own(event) == {"i": 3, "f": 0.5}

"""The importer behind ui.perfetto.dev shows what was recorded: all of it, and nothing dropped."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import traces
from support.api_driver import Command, play
from support.build import ROOT, compile_c
from support.run import run
from support.traces import Trace

if TYPE_CHECKING:
    from support.perfetto_importer import Importer

PROGRAMS = Path(__file__).parent / "programs"
INIT: Command = ("init", "t.pfw", None, 3)
FINI: Command = ("fini",)
TEXT = 'quo"te \\ new\nline é 大 😀'
WORK: list[Command] = [
    INIT,
    ("begin", 0, "outer", "app"),
    ("string", 0, "text", TEXT),
    ("int", 0, "number", -5),
    ("int", 0, "large", 2**62),
    ("float", 0, "real", "0.25"),
    ("begin", 1, TEXT, "app"),
    ("end", 1),
    ("spans", 200, "span"),
    ("instant", "now", "app"),
    ("counter", "level", "app", 2.5),
    ("counter", "level", "app", 7),
    ("metadata", "key", "value"),
    ("end", 0),
    ("on", 1, "spans", 50, "thread"),
    FINI,
]


def slices(trace: Trace) -> int:
    """Spans and instants; counters are drawn elsewhere."""
    return sum(event["ph"] in "Xi" for event in trace.events)


def shown(perfetto: Importer, trace: Trace) -> None:
    loaded = perfetto.load(trace.path)
    assert loaded.errors == []
    assert loaded.problems == {}
    assert loaded.slices == slices(trace)


@pytest.mark.parametrize("compression", ["0", "1"])
def test_everything_is_shown(perfetto: Importer, tmp_path: Path, compression: str) -> None:
    play(*WORK, cwd=tmp_path, env={"DFTRACER_TRACE_COMPRESSION": compression})
    trace = traces.read_one(tmp_path)
    shown(perfetto, trace)
    outer = trace.one("outer")
    rows = perfetto.query(
        "select slice.id, ts, dur, category, depth, tid, pid, process.name as process from slice"
        " join thread_track on slice.track_id = thread_track.id join thread using (utid)"
        " join process using (upid) where slice.name = 'outer'"
    )
    assert len(rows) == 1
    assert rows[0]["dur"] == outer["dur"] * 1000
    assert rows[0]["category"] == "app"
    assert (rows[0]["tid"], rows[0]["pid"]) == (outer["tid"], outer["pid"])
    args = {
        row["key"].removeprefix("args."): row["display_value"]
        for row in perfetto.query(
            "select key, display_value from slice join args using (arg_set_id)"
            " where slice.name = 'outer'"
        )
    }
    assert args["text"] == TEXT
    assert args["number"] == "-5"
    assert args["large"] == str(2**62)
    assert float(args["real"]) == 0.25
    assert (args["level"], args["p_idx"]) == ("1", "-1")
    nested = perfetto.query("select name, depth from slice where depth = 1")
    assert {TEXT, "now", "span"} <= {row["name"] for row in nested}
    values = perfetto.query(
        "select value from counter join counter_track on track_id = counter_track.id"
        " where name like 'level%' order by ts, counter.id"
    )
    assert [row["value"] for row in values] == [2.5, 7.0]


def test_names_of_processes_and_threads(perfetto: Importer, tmp_path: Path) -> None:
    play(*WORK, cwd=tmp_path)
    trace = traces.read_one(tmp_path)
    shown(perfetto, trace)
    pid = trace.one("outer")["pid"]
    (process,) = perfetto.query(f"select name from process where pid = {pid}")
    assert process["name"] == "rank 3"
    tid = trace.named("thread")[0]["tid"]
    (thread,) = perfetto.query(f"select name from thread where tid = {tid}")
    assert thread["name"] == "worker 1"


@pytest.fixture(scope="session")
def random_spans() -> Path:
    return compile_c(PROGRAMS / "random_spans.c", None, "-O2", "-Wall", "-Wextra", "-Werror")


def test_a_hundred_thousand_nested_spans(
    perfetto: Importer, random_spans: Path, tmp_path: Path
) -> None:
    """Spans of less than a microsecond, rounded, must still lie inside each other."""
    count = 100_000
    run(random_spans, count, cwd=tmp_path)
    trace = traces.read_one(tmp_path)
    assert len(trace.recorded) == count
    assert traces.crossings(trace.events) == []
    # None needed a lane of its own.
    assert {event["tid"] for event in trace.recorded} == {trace.one("start")["pid"]}
    ids = trace.by_id()
    for event in trace.recorded:
        parent = ids.get(event["args"]["p_idx"])
        if parent is not None:
            assert parent["ts"] <= event["ts"]
            assert event["ts"] + event["dur"] <= parent["ts"] + parent["dur"]
    loaded = perfetto.load(trace.path)
    assert loaded.problems.get("slice_drop_overlapping_complete_event", 0) == 0
    assert loaded.clean
    assert loaded.slices == count + 2


def test_spans_in_nanoseconds(perfetto: Importer, random_spans: Path, tmp_path: Path) -> None:
    run(random_spans, 5000, cwd=tmp_path, env={"DFTRACER_TIME_METRIC": "NS"})
    trace = traces.read_one(tmp_path)
    assert traces.crossings(trace.events) == []
    assert perfetto.load(trace.path).slices == slices(trace)


@pytest.mark.parametrize("metric", ["MS", "SEC"])
def test_spans_of_one_clock_unit_get_no_invented_thread(
    perfetto: Importer, random_spans: Path, tmp_path: Path, metric: str
) -> None:
    run(random_spans, 5000, cwd=tmp_path, env={"DFTRACER_TIME_METRIC": metric})
    trace = traces.read_one(tmp_path)
    assert {event["tid"] for event in trace.events} == {trace.one("start")["pid"]}
    assert perfetto.load(trace.path).slices == slices(trace)


def test_crossing_spans_are_all_shown(
    perfetto: Importer, random_spans: Path, tmp_path: Path
) -> None:
    run(random_spans, 3000, "cross", cwd=tmp_path)
    trace = traces.read_one(tmp_path)
    assert len(trace.recorded) == 3000
    shown(perfetto, trace)


def test_spans_of_other_threads_are_all_shown(perfetto: Importer, tmp_path: Path) -> None:
    commands: list[Command] = []
    for i in range(40):
        commands += [
            ("begin", i % 8, "begun here", "app"),
            ("on", i % 3, "begin", 20 + i % 8, "begun there", "app"),
            ("on", (i + 1) % 3, "end", i % 8),
            ("end", 20 + i % 8),
        ]
    play(INIT, *commands, FINI, cwd=tmp_path)
    trace = traces.read_one(tmp_path)
    assert len(trace.recorded) == 80
    shown(perfetto, trace)


def test_files_of_a_run_together(perfetto: Importer, tmp_path: Path) -> None:
    """The lines of several files behind one opening bracket: the processes stand side by side."""
    play(INIT, ("spans", 10, "parent"), ("fork", "child"), ("fork", "child"), FINI, cwd=tmp_path)
    found = traces.read_directory(tmp_path)
    lines = [line for trace in found for line in trace.lines]
    loaded = perfetto.load(b"\n".join([b"[", *lines, b""]))
    assert loaded.clean, loaded
    assert loaded.slices == sum(map(slices, found))
    count = perfetto.query("select count(distinct pid) as n from process where pid > 0")
    assert count == [{"n": 3}]


def test_the_importer_does_complain(perfetto: Importer, tmp_path: Path) -> None:
    """A judge that never condemns is none: spans that cross on a thread are dropped by it."""
    lines = [
        f'{{"id":{i},"name":"s","cat":"c","pid":1,"tid":1,"ts":{5 * i},"dur":10,"ph":"X"}}'
        for i in (1, 2)
    ]
    loaded = perfetto.load("\n".join(["[", *lines, ""]).encode())
    assert loaded.problems == {"slice_drop_overlapping_complete_event": 1}
    assert not loaded.clean
    (tmp_path / "bad.pfw").write_text("[\n" + lines[0] + "\n" + lines[1])
    script = ROOT / "tests" / "support" / "perfetto_importer.py"
    done = subprocess.run(
        [sys.executable, script, tmp_path / "bad.pfw"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr

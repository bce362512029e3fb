"""torch.profiler's events in the trace: all of them, where and when they happened."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.pytorch.conftest import EXAMPLES, PROGRAMS, Program, accepted, run_in
from tests.support import traces
from tests.support.perfetto_importer import Importer

LANE = 1 << 22
PROFILED = PROGRAMS / "profiled.py"


Profiled = tuple[dict[str, Any], traces.Trace]


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> Profiled:
    """What the profiler told, and what is in the trace."""
    directory = tmp_path_factory.mktemp("profiled")
    told = json.loads(run_in(directory, PROFILED).stdout)
    return told, traces.read_one(directory)


def of_profiler(trace: traces.Trace) -> list[traces.Record]:
    return [event for event in trace.recorded if event["cat"] == "PP"]


def as_listed(events: list[traces.Record]) -> tuple[list[traces.Record], Counter[int]]:
    """The events that prof.events() lists, and how many children each has there: an operation that
    only calls another of its name is one with it, while the trace shows both, as exports do."""
    ids = {event["id"]: event for event in events}
    children = Counter(event["args"]["p_idx"] for event in events)
    again = {
        event["id"]
        for event in events
        if children[event["args"]["p_idx"]] == 1
        and ids.get(event["args"]["p_idx"], {}).get("name") == event["name"]
    }
    for event in reversed(events):
        if event["id"] in again:
            children[event["args"]["p_idx"]] = children[event["id"]]
    return [event for event in events if event["id"] not in again], children


def test_every_event_is_there_with_its_thread_shapes_and_memory(
    profiled: Profiled, perfetto: Importer
) -> None:
    told, trace = profiled
    events, _ = as_listed(of_profiler(trace))

    def key(name: str, tid: int, shapes: Any, memory: int) -> tuple[str, int, str, int]:
        return name, tid, json.dumps([shape for shape in shapes if shape]), memory

    wanted = Counter(
        key(e["name"], e["tid"], e["shapes"], e["memory"])
        for e in told["events"]
        if e["name"] != "[memory]"
    )
    found = Counter(
        key(e["name"], e["args"]["tid"], e["args"].get("shapes", []), e["args"]["cpu_memory"])
        for e in events
        if e["name"] != "[memory]"
    )
    assert found == wanted
    assert sum(wanted.values()) > 500
    assert any(event["args"]["cpu_memory"] > 0 for event in events)
    assert {event["pid"] for event in events} == {told["pid"]}
    # What is allocated outside of every operation has an event of its own.
    assert [e["args"]["cpu_memory"] for e in events if e["name"] == "[memory]"] == [
        e["memory"] for e in told["events"] if e["name"] == "[memory]"
    ]
    accepted(perfetto, [trace])


def test_nesting_is_the_profilers(profiled: Profiled) -> None:
    told, trace = profiled
    events, children = as_listed(of_profiler(trace))
    wanted = Counter((e["name"], e["children"]) for e in told["events"] if e["name"] != "[memory]")
    found = Counter((e["name"], children[e["id"]]) for e in events if e["name"] != "[memory]")
    assert found == wanted
    ids = trace.by_id()
    for event in events:
        outer = ids.get(event["args"]["p_idx"])
        if outer is not None:
            assert outer["tid"] == event["tid"]
            assert outer["ts"] <= event["ts"]
            assert event["ts"] + event["dur"] <= outer["ts"] + outer["dur"]


def test_each_thread_has_its_own_lane_beside_it(
    program: Program, tmp_path: Path, perfetto: Importer
) -> None:
    told = json.loads(program(PROFILED, "threads").stdout)
    trace = traces.read_one(tmp_path)
    events = of_profiler(trace)
    assert {event["args"]["tid"] for event in events} == {told["pid"], told["worker"]}
    for event in events:
        assert event["tid"] != event["args"]["tid"]
        assert event["tid"] % LANE == event["args"]["tid"]
    names = {r["tid"]: r["args"]["name"] for r in trace.metadata if r["name"] == "thread_name"}
    for event in events:
        assert names[event["tid"]] == f"{event['args']['tid']} torch.profiler"
    accepted(perfetto, [trace])


def test_both_clocks_agree(profiled: Profiled) -> None:
    _, trace = profiled
    ours = next(event for event in trace.named("<module>") if event["cat"] == "mine")
    theirs = trace.one("both")
    assert theirs["cat"] == "PP"
    # Ours is entered first and left last. A busy machine may put time in between, but not before.
    assert ours["ts"] - 100 <= theirs["ts"]
    assert theirs["ts"] + theirs["dur"] <= ours["ts"] + ours["dur"] + 100


def test_flat_profile_beside_the_trace(profiled: Profiled) -> None:
    text = profiled[1].path.with_name("t.profile.txt").read_text()
    assert "aten::addmm" in text
    assert "Self CPU" in text
    assert text.count("# process") == 1


def test_guide(program: Program, tmp_path: Path, perfetto: Importer) -> None:
    program(EXAMPLES / "profiler_side_by_side.py", tmp_path / "out")
    found = traces.read_directory(tmp_path / "out")
    assert [trace.path.name for trace in found] == ["trace-0-of-1.pfw.gz"]
    names = Counter((event["cat"], event["name"]) for event in found[0].recorded)
    assert names["DataLoader", "Images.read_data"] == 8
    assert names["DataLoader", "Images.preprocess"] == 8
    assert names["PP", "model_inference"] == 1
    assert names["PP", "aten::addmm"] == 2
    assert found[0].meta("PR", "rank") == ["0"]
    chrome = json.loads((tmp_path / "out" / "torch-trace-0-of-1.json").read_text())
    assert chrome["traceEvents"]
    accepted(perfetto, found)


def test_schedule_gives_each_cycle_once(
    program: Program, tmp_path: Path, perfetto: Importer
) -> None:
    program(EXAMPLES / "profiler_schedule.py", tmp_path / "out.pfw")
    trace = traces.read(tmp_path / "out.pfw.gz")
    steps = [event["args"]["step"] for event in trace.named("ProfilerStep*")]
    assert steps == [2, 3, 6, 7]
    assert (tmp_path / "out.profile.txt").read_text().count("# process") == 2
    accepted(perfetto, [trace])


def test_switched_off_nothing_is_profiled(program: Program, tmp_path: Path) -> None:
    program(EXAMPLES / "profiler_schedule.py", tmp_path / "out.pfw", enable=False)
    assert list(tmp_path.iterdir()) == []

"""Regions through the C functions: nesting, leaks, crossings, threads, wrong arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import traces
from support.api_driver import Command, play
from support.traces import Trace

INIT: Command = ("init", "t.pfw", None, None)
FINI: Command = ("fini",)


def record(directory: Path, *commands: Command, open_parents: bool = False) -> Trace:
    play(INIT, *commands, FINI, cwd=directory)
    return traces.read_one(directory, open_parents=open_parents)


def own(event: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in event["args"].items() if k not in ("hhash", "p_idx", "level")}


def parent(trace: Trace, name: str) -> str:
    index = trace.one(name)["args"]["p_idx"]
    return "" if index == -1 else trace.by_id()[index]["name"]


def test_nested_regions_know_their_parent_and_level(tmp_path: Path) -> None:
    trace = record(
        tmp_path,
        ("begin", 0, "train", "app"),
        ("begin", 1, "forward", "app"),
        ("begin", 2, "send", "app"),
        ("instant", "inside", "app"),
        ("metadata", "inside", "CM"),
        ("end", 2),
        ("end", 1),
        ("begin", 1, "backward", "app"),
        ("end", 1),
        ("end", 0),
        ("begin", 0, "next", "app"),
        ("end", 0),
    )
    seen = [(e["name"], e["id"], e["args"]["p_idx"], e["args"]["level"]) for e in trace.recorded]
    # Ids are taken at the begin, lines are written at the end.
    assert seen == [
        ("inside", 10, 9, 4),
        ("send", 9, 8, 3),
        ("forward", 8, 7, 2),
        ("backward", 11, 7, 2),
        ("train", 7, -1, 1),
        ("next", 12, -1, 1),
    ]
    # As the seeds have it: the record of a key and value carries the id of the region it is in.
    assert trace.one("CM")["id"] == 9
    assert traces.crossings(trace.events) == []


def test_deep_nesting(tmp_path: Path) -> None:
    depth = 60
    begins: list[Command] = [("begin", i, f"r{i}", "app") for i in range(depth)]
    ends: list[Command] = [("end", i) for i in reversed(range(depth))]
    trace = record(tmp_path, *begins, *ends)
    assert [trace.one(f"r{i}")["args"]["level"] for i in range(depth)] == list(range(1, depth + 1))


def test_argument_types(tmp_path: Path) -> None:
    trace = record(
        tmp_path,
        ("begin", 0, "r", "app"),
        ("int", 0, "least", -(2**63)),
        ("int", 0, "most", 2**63 - 1),
        ("float", 0, "tenth", "0.1"),
        ("float", 0, "whole", "3"),
        ("float", 0, "tiny", "4.9406564584124654e-324"),
        ("float", 0, "huge", "1.7976931348623157e308"),
        ("float", 0, "exact", "123456789.123"),
        ("float", 0, "nan", "nan"),
        ("float", 0, "inf", "inf"),
        ("float", 0, "minus_inf", "-inf"),
        ("string", 0, "text", "words with blanks"),
        ("string", 0, "empty", ""),
        ("bytes", 0, "nul", b"a\0b"),
        ("string", 0, "changed", "text"),
        ("int", 0, "changed", 1),
        ("end", 0),
        (
            *("complete", "c", "app", 1000, 5),
            *("i", "int", -1, "u", "uint", 2**64 - 1, "f", "float", 2.5),
            *("t", "bool", 1, "n", "bool", 0, "s", "string", "x y", "none", "string", None),
        ),
        ("instant", "now", "app", "k", "int", 1),
    )
    args = own(trace.one("r"))
    assert args == {
        "least": -(2**63),
        "most": 2**63 - 1,
        "tenth": 0.1,
        "whole": 3.0,
        "tiny": 5e-324,
        "huge": 1.7976931348623157e308,
        "exact": 123456789.123,
        "nan": None,
        "inf": None,
        "minus_inf": None,
        "text": "words with blanks",
        "empty": "",
        "nul": "a\0b",
        "changed": 1,
    }
    assert isinstance(args["whole"], float)
    complete = trace.one("c")
    assert (complete["ts"], complete["dur"], complete["ph"]) == (1000, 5, "X")
    assert own(complete) == {
        "i": -1,
        "u": 2**64 - 1,
        "f": 2.5,
        "t": True,
        "n": False,
        "s": "x y",
        "none": "",
    }
    assert own(complete)["t"] is True
    assert own(trace.one("now")) == {"k": 1}


def test_many_arguments_outgrow_the_region(tmp_path: Path) -> None:
    many: list[Command] = [("int", 0, f"key{i}", i) for i in range(500)]
    trace = record(tmp_path, ("begin", 0, "r", "app"), *many, ("end", 0))
    assert own(trace.one("r")) == {f"key{i}": i for i in range(500)}


def test_the_last_value_of_a_key_counts_also_when_the_key_is_long(tmp_path: Path) -> None:
    """Keys past the name table's limit travel with the event; a JSON object still has each once."""
    key = "k" * 3000
    trace = record(
        tmp_path,
        ("begin", 0, "r", "app"),
        ("int", 0, key, 1),
        ("int", 0, "between", 0),
        ("int", 0, key, 2),
        ("end", 0),
    )
    assert own(trace.one("r")) == {"between": 0, key: 2}


def test_arguments_cannot_hide_the_three_own_ones(tmp_path: Path) -> None:
    trace = record(
        tmp_path,
        ("begin", 0, "r", "app"),
        ("string", 0, "hhash", "mine"),
        ("int", 0, "p_idx", 77),
        ("int", 0, "level", 88),
        ("end", 0),
    )
    args = trace.one("r")["args"]
    assert args["p_idx"] == -1
    assert args["level"] == 1
    assert sorted(map(str, own(trace.one("r")).values())) == ["77", "88", "mine"]


def test_renamed_arguments_do_not_clash_with_others(tmp_path: Path) -> None:
    trace = record(
        tmp_path,
        ("begin", 0, "r", "app"),
        ("int", 0, "level", 1),
        ("int", 0, "level_", 2),
        ("end", 0),
    )
    assert sorted(own(trace.one("r")).values()) == [1, 2]


def test_a_region_that_never_ends_costs_only_itself(tmp_path: Path) -> None:
    trace = record(
        tmp_path,
        ("begin", 0, "before", "app"),
        ("end", 0),
        ("begin", 1, "leaked", "app"),
        ("begin", 2, "inside", "app"),
        ("end", 2),
        ("counter", "c", "app", 1),
        open_parents=True,
    )
    assert [event["name"] for event in trace.recorded] == ["before", "inside", "c"]
    assert trace.one("inside")["args"]["level"] == 2


def test_ending_the_outer_region_first_keeps_both(tmp_path: Path) -> None:
    """The stack is right again afterwards, and no two spans cross on what is shown as a thread."""
    trace = record(
        tmp_path,
        ("begin", 0, "outer", "app"),
        ("begin", 1, "crossing", "app"),
        ("end", 0),
        ("begin", 2, "between", "app"),
        ("end", 2),
        ("end", 1),
        ("begin", 3, "after", "app"),
        ("end", 3),
    )
    assert {e["name"] for e in trace.recorded} == {"outer", "crossing", "between", "after"}
    assert parent(trace, "crossing") == "outer"
    assert parent(trace, "after") == ""
    assert trace.one("after")["args"]["level"] == 1
    assert traces.crossings(trace.events) == []
    real = trace.one("outer")["tid"]
    lane = trace.one("crossing")["tid"]
    # The lane's number says whose it is; no record does, as DFTracer has none.
    assert lane == real + (1 << 22)
    assert [m["tid"] for m in trace.named("thread_name")] == [real]


def test_many_crossing_regions_share_as_few_lanes_as_they_can(tmp_path: Path) -> None:
    commands: list[Command] = []
    for i in range(20):
        commands += [
            ("begin", 0, f"outer{i}", "app"),
            ("begin", 1, f"crossing{i}", "app"),
            ("end", 0),
            ("end", 1),
        ]
    trace = record(tmp_path, *commands)
    assert len(trace.recorded) == 40
    assert traces.crossings(trace.events) == []
    # One crossing span's end may be the next one's start in microseconds, so two lanes suffice.
    assert len({event["tid"] for event in trace.recorded}) <= 3


def test_ended_on_another_thread(tmp_path: Path) -> None:
    trace = record(
        tmp_path,
        ("begin", 0, "travels", "app"),
        ("on", 1, "begin", 1, "at home", "app"),
        ("on", 1, "end", 0),
        ("on", 1, "end", 1),
        ("on", 2, "begin", 2, "there", "app"),
        ("end", 2),
        ("begin", 3, "after", "app"),
        ("end", 3),
        ("on", 1, "exit"),
        ("on", 2, "exit"),
    )
    assert {e["name"] for e in trace.recorded} == {"travels", "at home", "there", "after"}
    assert traces.crossings(trace.events) == []
    assert trace.one("at home")["args"]["level"] == 1


def test_handing_regions_to_other_threads_leaves_the_stack_as_it_was(tmp_path: Path) -> None:
    """As a queue does: begun by the one who puts it in, ended by the one who takes it out."""
    commands: list[Command] = []
    for i in range(30):
        commands += [("begin", i, "queued", "app"), ("on", 1, "end", i)]
    trace = record(tmp_path, *commands, ("begin", 40, "after", "app"), ("end", 40))
    assert len(trace.named("queued")) == 30
    # Nothing is open any more, so nothing is its parent.
    assert trace.one("after")["args"]["level"] == 1
    assert parent(trace, "after") == ""


def test_threads_have_their_own_stacks_ids_and_names(tmp_path: Path) -> None:
    trace = record(
        tmp_path,
        ("begin", 0, "main", "app"),
        ("on", 1, "begin", 1, "one", "app"),
        ("on", 2, "begin", 2, "two", "app"),
        ("on", 1, "begin", 3, "one inside", "app"),
        ("on", 1, "end", 3),
        ("on", 2, "end", 2),
        ("on", 1, "end", 1),
        ("end", 0),
        ("on", 1, "exit"),
        ("on", 2, "exit"),
    )
    assert parent(trace, "one") == parent(trace, "two") == parent(trace, "main") == ""
    assert parent(trace, "one inside") == "one"
    threads = {trace.one(name)["tid"] for name in ("main", "one", "two")}
    assert len(threads) == 3
    assert trace.one("main")["tid"] == trace.one("main")["pid"]
    named = {m["tid"]: m["args"]["name"] for m in trace.named("thread_name")}
    assert named[trace.one("one")["tid"]] == "worker 1"
    assert named[trace.one("two")["tid"]] == "worker 2"


def test_dropped_regions_are_not_recorded(tmp_path: Path) -> None:
    trace = record(
        tmp_path,
        ("begin", 0, "dropped", "app"),
        ("int", 0, "k", 1),
        ("drop", 0),
        ("drop", 0),
        ("end", 0),
        ("begin", 0, "kept", "app"),
        ("end", 0),
    )
    assert [event["name"] for event in trace.recorded] == ["kept"]
    assert trace.one("kept")["args"]["level"] == 1


NOTHING: list[Command] = [
    ("begin", None, "x", "y"),
    ("end", None),
    ("drop", None),
    ("int", None, "k", 1),
    ("float", None, "k", 1),
    ("string", None, "k", "v"),
    ("bytes", None, "k", "v"),
    # Never begun, and all zero.
    ("end", 40),
    ("drop", 40),
    ("int", 40, "k", 1),
    ("string", 40, None, None),
]


def test_null_and_empty_arguments(tmp_path: Path) -> None:
    trace = record(
        tmp_path,
        *NOTHING,
        ("begin", 0, None, None),
        ("int", 0, None, -1),
        ("end", 0),
        ("end", 0),
        ("begin", 0, "", ""),
        ("string", 0, "", None),
        ("bytes", 0, "null bytes", None),
        ("end", 0),
        ("instant", None, None),
        ("instant", "", "", None, "int", 3),
        ("instant", "odd", "app", "k", "what", 3),
        ("counter", None, None, -1),
        ("metadata", None, None),
        ("metadata", "", ""),
        ("complete", None, None, 0, 0),
        ("null_args",),
    )
    assert [(e["name"], e["cat"], e["ph"], own(e)) for e in trace.recorded] == [
        ("unnamed", "APP", "X", {"unnamed": -1}),
        ("unnamed", "APP", "X", {"unnamed": "", "null bytes": ""}),
        ("unnamed", "APP", "i", {}),
        ("unnamed", "APP", "i", {"unnamed": 3}),
        ("odd", "app", "i", {}),
        ("unnamed", "APP", "C", {"value": -1.0}),
        ("unnamed", "APP", "X", {}),
        ("null_args", "C_APP", "i", {}),
    ]
    assert [(m["args"]["name"], m["args"]["value"]) for m in trace.named("CM")] == [
        ("unnamed", ""),
        ("unnamed", ""),
    ]


@pytest.mark.parametrize("rank", [-1, -(2**31)])
def test_a_negative_rank_is_none(tmp_path: Path, rank: int) -> None:
    play(("init", "t.pfw", None, rank), FINI, cwd=tmp_path)
    assert traces.read_one(tmp_path).named("PR") == []


def test_complete_takes_any_times(tmp_path: Path) -> None:
    times = [(0, 0), (1, 2**63), (2**64 - 1, 0), (2**64 - 1, 2**64 - 1)]
    trace = record(
        tmp_path,
        *[("complete", f"c{i}", "app", start, dur) for i, (start, dur) in enumerate(times)],
    )
    for i, (start, dur) in enumerate(times):
        event = trace.one(f"c{i}")
        assert event["ts"] == start
        assert event["dur"] in (dur, 0)


def test_times_of_the_api_and_of_the_events_agree(tmp_path: Path) -> None:
    output = play(
        INIT,
        ("time",),
        ("begin", 0, "r", "app"),
        ("end", 0),
        ("instant", "now", "app"),
        ("time",),
        FINI,
        ("time",),
        cwd=tmp_path,
    ).stdout.split()
    before, after, off = map(int, output[1:])
    trace = traces.read_one(tmp_path)
    event = trace.one("r")
    # The clock's rate is measured while the program runs; a few microseconds of that may remain.
    assert before - 1000 <= event["ts"] <= event["ts"] + event["dur"] <= after + 1000
    assert event["ts"] + event["dur"] <= trace.one("now")["ts"]
    assert off == 0


def test_ids_are_unique_over_threads_and_blocks(tmp_path: Path) -> None:
    workers: list[Command] = [("on", i, "spans", 700, f"of {i}") for i in range(4)]
    trace = record(tmp_path, ("spans", 700, "main"), *workers, ("spans", 700, "main"))
    assert len(trace.recorded) == 700 * 6  # and the reader has found every id once
    assert [own(event)["i"] for event in trace.named("of 2")] == list(range(700))

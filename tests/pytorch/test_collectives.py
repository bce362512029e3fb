"""Collectives of real ranks: what is recorded can be matched, and shows who was late."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.pytorch.conftest import PROGRAMS, Program
from tests.support import traces

from dftracer import _libcore, reports
from dftracer.reports import Report

ON = {"DFTRACER_TORCH": "1"}
START = PROGRAMS / "start_ranks.py"


def report_of(program: Program, place: Path, *words: str | int) -> Report:
    program(START, 2, PROGRAMS / "late_rank.py", *words, env=ON)
    return reports.load(place)


def finding(report: Report) -> dict[str, Any] | None:
    return next((row for row in report.findings if row["rule"] == "unbalanced-rank"), None)


def check(report: Report, rank: int, reason: str) -> None:
    """The late rank is named, its reason, and the other one as the one that waited."""
    found = finding(report)
    assert found is not None
    assert found["title"].startswith(f"Rank {rank} comes late to collectives"), found["title"]
    assert found["severity"] in ("medium", "high")
    rows = {row["rank"]: row for row in report.arrivals}
    assert rows[rank]["reason"] == reason
    assert rows[rank]["given_ns"] == rows[1 - rank]["waited_ns"] > rows[rank]["waited_ns"]
    waited = [row for row in report.steps if row["rank"] == 1 - rank and row["waited_ns"]]
    assert all(row["waited_ns"] <= row["communication_ns"] for row in waited)
    causes = Counter(row["rank"] for row in report.slow_steps if row["straggler"] == rank)
    assert causes[1 - rank] > 0
    assert causes[rank] == 0


def test_a_rank_that_sleeps(program: Program, tmp_path: Path) -> None:
    report = report_of(program, tmp_path, "ddp", "sleep", 20)
    check(report, 1, "unattributed")
    (row,) = [row for row in report.collectives if row["operation"] == "all_reduce"]
    assert (row["ranks"], row["function"]) == ("0-1", "DistributedDataParallel")
    assert (row["count"], row["unmatched"], row["last_rank"]) == (20, 0, 1)
    assert row["bytes"] == 20 * 4 * (16 * 64 + 64 + 64 * 4 + 4)


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "how", "rank", "reason"),
    [
        ("ddp", "fetch", 1, "fetch"),
        ("ddp", "compute", 0, "compute"),
        ("fsdp", "sleep", 1, "unattributed"),
        ("fsdp", "fetch", 1, "fetch"),
    ],
)
def test_a_late_rank(
    program: Program, tmp_path: Path, kind: str, how: str, rank: int, reason: str
) -> None:
    check(report_of(program, tmp_path, kind, how, 20), rank, reason)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_ranks_of_which_none_is_late(program: Program, tmp_path: Path, kind: str) -> None:
    found = finding(report_of(program, tmp_path, kind, "nobody", 12))
    assert found is None or found["severity"] == "low"


def matched(place: Path) -> dict[tuple[str, str, int], dict[int, list[dict[str, Any]]]]:
    """The collectives by group and number, and rank."""
    # Threads of gloo may abort a rank that has done its work, at its exit: nothing is lost.
    _libcore.recover(place)
    found: dict[tuple[str, str, int], dict[int, list[dict[str, Any]]]] = {}
    for trace in traces.read_directory(place):
        for event in trace.recorded:
            says = event["args"]
            if event["cat"] == "comm" and "seq" in says:
                key = (says["group"], says["ranks"], says["seq"])
                found.setdefault(key, {}).setdefault(says["rank"], []).append(event)
    return found


@pytest.mark.long
def test_results_stay_what_they_were(program: Program) -> None:
    """Bit by bit: of all kinds of models, with unused layers, buffers, and fixed graphs."""
    bare = program(START, 3, PROGRAMS / "collectives.py", enable=False)
    traced = program(START, 3, PROGRAMS / "collectives.py", env=ON)
    assert sorted(traced.stdout.splitlines()) == sorted(bare.stdout.splitlines())


def test_every_collective_has_its_group_and_number(program: Program, tmp_path: Path) -> None:
    """Explicit ones, those of replicated and of sharded models."""
    program(START, 3, PROGRAMS / "collectives.py", env=ON)
    found = matched(tmp_path)
    assert {ranks for _, ranks, _ in found} == {"0-2", "0,2"}
    for (_, ranks, _), each in found.items():
        assert sorted(each) == ([0, 1, 2] if ranks == "0-2" else [0, 2])
        # All ranks did the same.
        did = {
            tuple((e["name"], e["args"]["function"]) for e in events) for events in each.values()
        }
        assert len(did) == 1, did
        for events in zip(*each.values()):
            assert len({e["args"].get("bytes") for e in events}) == 1
    for group in {key[:2] for key in found}:
        numbers = sorted(seq for *key, seq in found if tuple(key) == group)
        assert numbers == list(range(len(numbers)))
    world = {seq: each[0] for (_, ranks, seq), each in found.items() if ranks == "0-2"}
    names = [[(e["name"], e["args"]["function"]) for e in world[seq]] for seq in sorted(world)]
    ddp = [("all_reduce", "DistributedDataParallel")]
    buffers = [("bcast", "_broadcast_coalesced")]
    launched = ("all_reduce", "all_reduce")
    assert names[:8] == [
        [launched],
        [launched, ("wait", "all_reduce"), ("wait", "all_reduce")],
        [("all_gather", "all_gather_object")],
        [("all_gather", "all_gather")],
        [("reduce_scatter", "reduce_scatter")],
        [("bcast", "broadcast_object_list")],
        [("barrier", "barrier")],
        buffers,  # of the first model
    ]
    # A backward pass in no_sync() shares no gradients.
    assert names[8:11] == [ddp] * 3
    assert names.count(ddp) == 3 + 2 + 2
    assert [("all_gather", "all_gather")] in names[11:]  # FullyShardedDataParallel
    kinds = Counter(name for events in names for name, _ in events)
    assert kinds["reduce_scatter"] == 1 + 2 + 2
    (first,) = world[0]
    assert first["args"]["bytes"] == 4000
    assert [e["args"].get("async") for e in world[1]] == [1, None, None]
    # Gradients are waited for inside the backward pass.
    for trace in traces.read_directory(tmp_path):
        passes = {event["id"] for event in trace.named("backward")}
        for event in trace.named("all_reduce"):
            if event["args"]["function"] == "DistributedDataParallel":
                assert event["args"]["p_idx"] in passes


def test_collectives_that_fail_nest_or_are_never_waited_for(
    program: Program, tmp_path: Path
) -> None:
    done = program(PROGRAMS / "odd_collectives.py")
    assert done.stdout.split("\n")[:3] == ["no group yet", "no tensor", "done"]
    (trace,) = traces.read_directory(tmp_path)
    events = sorted((e for e in trace.events if e["cat"] == "comm"), key=lambda e: e["ts"])
    says = [(e["name"], e["args"]["function"], e["args"].get("seq")) for e in events]
    assert says[:3] == [
        ("all_reduce", "all_reduce", None),  # there is no group
        ("all_reduce", "all_reduce", 0),  # it raised
        ("all_to_all", "all_to_all_single", 1),  # and nothing inside it
    ]
    assert says[3:303] == [("all_reduce", "all_reduce", 2 + i) for i in range(300)]
    # A group that is made again by the same name goes on counting.
    assert says[303:] == [
        ("all_reduce", "all_reduce", 302),
        ("wait", "all_reduce", 302),
        ("all_reduce", "all_reduce", 303),
    ]
    assert [e["args"]["bytes"] for e in events[1:4]] == [0, 40, 40]
    assert [e["args"].get("async") for e in events[2:4]] == [None, 1]

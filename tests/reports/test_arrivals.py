"""Who comes late to collectives: arranged to the microsecond, and held against plain Python."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from support.simulated_ranks import Ranks, truth
from support.synthetic_program import Program

from dftracer import reports
from dftracer.reports import Report
from dftracer.reports.render.summary import summarise

US = 1000
TABLES = ("arrivals", "collectives", "steps", "epochs", "breakdown", "slow_steps", "findings")


def finding(report: Report) -> dict[str, Any] | None:
    return next((row for row in report.findings if row["rule"] == "unbalanced-rank"), None)


def late(rank: int, by: int) -> Any:
    return lambda which, step: by if which == rank else 0


def hold(report: Report, place: Path, ahead: dict[int, int] | None = None) -> None:
    """The tables against the events."""
    found = truth(place, ahead)
    arrivals = {row["rank"]: row for row in report.arrivals}
    every = [row for rows in found.values() for row in rows]
    for rank, row in arrivals.items():
        mine = [one for one in every if one.rank == rank]
        last = sorted(one.late for one in mine if one.last)
        assert row["collectives"] == len(mine)
        assert row["last"] == len(last)
        assert row["late_ns"] == sum(last) * US
        assert row["median_late_ns"] == (last[(len(last) - 1) // 2] * US if last else None)
        assert row["waited_ns"] == sum(one.waited for one in mine) * US
        given = [o for rows in found.values() for o in rows if rows[rank].last and o.rank != rank]
        assert row["given_ns"] == sum(one.waited for one in given) * US
    assert sum(row["count"] for row in report.collectives) == len(found)
    assert sum(row["waited_ns"] for row in report.collectives) == sum(o.waited for o in every) * US
    # A step has what its process waited in it.
    for rank in arrivals:
        steps = [row for row in report.steps if row["rank"] == rank]
        waits = {key[2]: rows[rank].waited for key, rows in found.items()}
        assert [row["waited_ns"] for row in steps] == [waits[row["step"]] * US for row in steps]
        parts = [r["time_ns"] for r in report.breakdown if r["rank"] == rank]
        (process,) = [row for row in report.processes if row["rank"] == rank]
        assert sum(parts) == process["life_ns"]


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("count", [3, 2, 5])
def test_arrivals_are_those_of_the_events(tmp_path: Path, count: int) -> None:
    chance = random.Random(count)
    work = {(rank, step): chance.randrange(9_000) for rank in range(count) for step in range(30)}
    Ranks(count, 30, sleep=lambda rank, step: work[rank, step]).write(tmp_path)
    report = reports.load(tmp_path)
    hold(report, tmp_path)
    assert {row["uncertainty_ns"] for row in report.arrivals} == {0}


def test_several_blocks(tmp_path: Path) -> None:
    Ranks(3, 12, sleep=late(1, 30_000)).write(tmp_path)
    alone, shared = reports.load(tmp_path), reports.load(tmp_path, cluster="local:2")
    for name in TABLES:
        assert alone.table(name).rows == shared.table(name).rows, name
    hold(shared, tmp_path)


@pytest.mark.long(keep=2)
@pytest.mark.parametrize(
    ("how", "reason", "words"),
    [
        ({"sleep": late(1, 30_000)}, "unattributed", "which it spends outside traced regions"),
        ({"fetch": late(1, 30_000)}, "fetch", "which it spends waiting for data"),
        ({"forward": late(1, 30_000)}, "compute", "which it spends computing"),
        ({"checkpoint": late(1, 30_000)}, "checkpoint", "which it spends in a checkpoint"),
        ({"read": late(1, 30_000)}, "io", "which it spends in I/O calls"),
    ],
)
def test_the_late_rank_and_its_reason(
    tmp_path: Path, how: dict[str, Any], reason: str, words: str
) -> None:
    Ranks(3, 20, **how).write(tmp_path)
    report = reports.load(tmp_path)
    hold(report, tmp_path)
    found = finding(report)
    assert found is not None
    assert found["title"].startswith(
        "Rank 1 comes late to collectives: the others wait 30 ms a step"
    )
    assert found["title"].endswith(words)
    assert found["severity"] == "high"
    assert found["concerns_ns"] == 20 * 30_000 * US
    assert (report.arrivals.dicts()[0]["rank"], report.arrivals.dicts()[0]["reason"]) == (1, reason)
    assert "came last to 20 of 20 collectives, 30 ms after the others" in found["evidence"]
    # Waiting is not communication.
    assert not any(row["rule"] == "communication" for row in report.findings)
    text = "\n".join(summarise(report))
    assert "waiting for others" in text
    assert "Ranks at collectives" in text


def test_steps_that_waited_for_a_rank(tmp_path: Path) -> None:
    """Now and then is no imbalance; the steps say who was late, and why."""
    Ranks(2, 20, sleep=lambda rank, step: 30_000 if (rank, step) == (1, 14) else 0).write(tmp_path)
    report = reports.load(tmp_path)
    (row,) = [row for row in report.slow_steps if row["cause"] == "a straggling rank"]
    assert (row["rank"], row["step"], row["straggler"]) == (0, 14, 1)
    assert row["late_ns"] == 30_000 * US
    assert row["chain"] == (
        "step 14 late by 30 ms: rank 1 came 30 ms late to all_reduce 14; before, it spent 30 ms "
        "more than the others outside traced regions"
    )
    assert finding(report) is None
    # Of the waiting rank, nothing else took longer.
    assert [r["rank"] for r in report.slow_steps if r["cause"] != "a straggling rank"] == [1]


def test_an_even_job_has_no_late_rank(tmp_path: Path) -> None:
    chance = random.Random(7)
    work = {(rank, step): chance.randrange(2_000) for rank in range(3) for step in range(60)}
    Ranks(3, 60, sleep=lambda rank, step: work[rank, step]).write(tmp_path)
    found = finding(reports.load(tmp_path))
    assert found is None or found["severity"] == "low"


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("overlap", [10_000, 40_000, 0])
def test_async_collectives_count_where_they_are_waited_for(tmp_path: Path, overlap: int) -> None:
    """A launch that comes late delays nobody who has other work until then."""
    once = lambda rank, step: 30_000 if (rank, step) == (1, 10) else 0  # noqa: E731
    Ranks(2, 20, sleep=once, launched=True, overlap=overlap).write(tmp_path)
    report = reports.load(tmp_path)
    hold(report, tmp_path)
    waited = max(30_000 - 20 - overlap, 0)
    rows = {row["rank"]: row for row in report.arrivals}
    assert (rows[0]["waited_ns"], rows[1]["waited_ns"]) == (waited * US, 0)
    told = [row["step"] for row in report.slow_steps if row["cause"] == "a straggling rank"]
    assert told == ([10] if waited else [])


def test_hosts_with_clocks_that_differ(tmp_path: Path) -> None:
    """An hour apart: collectives show it, and arrivals are compared on one clock."""
    hour = 3_600_000_000
    hosts = {1: "node2", 2: "node2"}
    Ranks(3, 20, sleep=late(1, 30_000), hosts=hosts, ahead={"node2": hour}).write(tmp_path)
    report = reports.load(tmp_path)
    assert "corrected" in report.overview.dicts()[0]["clock"]
    found = finding(report)
    assert found is not None
    assert found["title"].startswith("Rank 1 comes late")
    # Ranks leave together, so that their ends show how well the clocks agree.
    assert {row["uncertainty_ns"] for row in report.arrivals} == {0}
    hold(report, tmp_path, {1: hour, 2: hour})


def test_clocks_that_agree_less_well_than_ranks(tmp_path: Path) -> None:
    """Every rank comes in time, but the clock of one host is 3 ms ahead, and nothing proves it."""
    hosts = {1: "node2"}
    long = {"exchange": 8_000}  # within which either order is possible
    Ranks(2, 20, hosts=hosts, ahead={"node2": 3_000}, **long).write(tmp_path)
    report = reports.load(tmp_path)
    assert report.overview.dicts()[0]["clock"] is None
    assert {row["uncertainty_ns"] for row in report.arrivals} == {3_000 * US}
    assert {row["last"] for row in report.arrivals} == {0}
    assert sum(report.steps.column("waited_ns")) == 0
    assert finding(report) is None


def test_a_rank_that_was_not_recorded(tmp_path: Path) -> None:
    """Nobody can tell who was late if a rank is missing."""
    Ranks(3, 20, sleep=late(1, 30_000), lonely=(2,)).write(tmp_path)
    report = reports.load(tmp_path)
    assert len(report.arrivals) == 0
    (row,) = report.collectives.dicts()
    assert (row["count"], row["unmatched"], row["last_rank"]) == (0, 20, None)


def test_groups_and_operations_that_do_not_match(tmp_path: Path) -> None:
    """Each group counts for itself; what ranks do not do together is left out."""
    programs = [Program(pid=200 + rank, rank=rank, run="job") for rank in range(4)]
    for number in range(10):
        for rank, program in enumerate(programs):
            says = {"group": str(1 + rank % 2), "ranks": ("0,2", "1,3")[rank % 2], "rank": rank}
            at = 1_000 * number + (100 if rank == 2 else 40 if rank == 1 else 0)
            wrong = rank == 3 and number == 4
            name = "barrier" if wrong else "all_reduce"
            program.span("comm", name, 1_000 * number + 200 - at, at=at, seq=number, **says)
            program.now = at + 200
    for program in programs:
        program.write(tmp_path)
    report = reports.load(tmp_path)
    found = {(row["ranks"], row["operation"]): row for row in report.collectives}
    assert (found["0,2", "all_reduce"]["count"], found["0,2", "all_reduce"]["last_rank"]) == (10, 2)
    assert (found["1,3", "all_reduce"]["count"], found["1,3", "all_reduce"]["last_rank"]) == (9, 1)
    assert found["1,3", "all_reduce"]["unmatched"] == 1
    rows = {row["rank"]: row for row in report.arrivals}
    assert [rows[rank]["last"] for rank in range(4)] == [0, 9, 10, 0]
    assert [rows[rank]["waited_ns"] for rank in range(4)] == [1_000 * US, 0, 0, 9 * 40 * US]


def test_odd_arguments_are_no_arrivals(tmp_path: Path) -> None:
    programs = [Program(pid=200 + rank, rank=rank, run="job") for rank in range(2)]
    odd: list[dict[str, Any]] = [
        {"group": "0", "ranks": "0-1", "seq": "x"},
        {"group": "0", "ranks": "0-99999999999999999999", "seq": 1},
        {"group": "0", "ranks": "-", "seq": 2},
        {"group": "0", "ranks": "9-0", "seq": 3},
        {"group": 0, "ranks": [0, 1], "seq": 4},
        {"seq": 5},
    ]
    for program in programs:
        for says in odd:
            program.span("comm", "all_reduce", 10, **says)
        program.write(tmp_path)
    assert len(reports.load(tmp_path).arrivals) == 0

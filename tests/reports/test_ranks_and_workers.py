"""Ranks that wait for each other, and workers that are waited for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.synthetic_program import Program

from dftracer import reports
from dftracer.reports import Report
from dftracer.reports.render.summary import summarise

US = 1000


def rules(report: Report) -> dict[str, dict[str, Any]]:
    return {row["rule"]: row for row in report.findings}


def ddp(place: Path, fetch: int = 0, forward: int = 0, sleep: int = 0, barrier: int = 0) -> None:
    """Two ranks that share gradients in `backward`. Rank 1 does so much more a step, in
    microseconds, and rank 0 waits for it there; or, untraced, in a barrier."""
    more = fetch + forward + sleep
    for rank in range(2):
        slow = rank == 1
        program = Program(pid=200 + rank, rank=rank)
        for step in range(20):
            told = {"epoch": 0, "step": step}
            program.span("dataloader", "fetch", 1000 + fetch * slow, **told)
            program.span("compute", "forward", 21_000 + forward * slow, **told)
            program.now += sleep * slow
            waits = 0 if slow or barrier else more
            program.span("compute", "backward", 10_000 + waits, **told)
            program.span("compute", "step", 1000, **told)
            program.now += more if barrier and not slow else 0
        program.write(place)


@pytest.mark.parametrize(
    ("how", "measure"),
    [
        ({"sleep": 30_000}, "own time 2.30 times"),
        ({"fetch": 120_000}, "fetch time 121.00 times"),
        ({"forward": 61_000}, "compute time 3.77 times"),
    ],
)
def test_the_slow_rank_is_named_and_not_the_one_that_waits(
    tmp_path: Path, how: dict[str, int], measure: str
) -> None:
    ddp(tmp_path, **how)
    found = rules(reports.load(tmp_path))["unbalanced-rank"]
    assert str(found["title"]).startswith("Rank 1 is slower")
    assert measure in str(found["title"])
    (more,) = how.values()
    assert found["concerns_ns"] == 20 * more * US


def test_no_rank_is_blamed_where_waiting_cannot_be_told(tmp_path: Path) -> None:
    """A barrier that nothing records looks like work of one's own."""
    ddp(tmp_path, forward=61_000, barrier=1)
    assert "unbalanced-rank" not in rules(reports.load(tmp_path))


def fed(place: Path, starts: int = 2, start: int = 5000, epochs: int = 2, workers: int = 4) -> None:
    """Epochs of ten steps, and workers that are started anew for the first `starts` of them."""
    program = Program(pid=200)
    lives: list[list[int]] = []
    for epoch in range(epochs):
        first = epoch < starts
        if first:
            lives.append([program.now, program.now + start, 0])
        for step in range(10):
            wait = start + 200 if first and step == 0 else 10
            program.span("dataloader", "fetch", wait, epoch=epoch, step=10 * epoch + step)
            program.span("compute", "backward", 990, epoch=epoch, step=10 * epoch + step)
        lives[-1][2] = program.now
    program.write(place)
    for number, (begin, ready, end) in enumerate(lives):
        for index in range(workers):
            worker = Program(pid=300 + 10 * number + index, ppid=200)
            worker.span("POSIX", "open", 5, at=begin + 10, file="/lib/a.so", ret=3)
            for i in range(5):
                worker.span("data", "item", 100, at=ready + 200 * i)
            worker.now = end - 20
            worker.write(place)


def test_starting_workers_is_not_slow_data(tmp_path: Path) -> None:
    fed(tmp_path, starts=1, epochs=1)
    report = reports.load(tmp_path)
    found = rules(report)
    assert set(found) == {"worker-start"}
    assert found["worker-start"]["concerns_ns"] == 5000 * US
    assert "1 start of 4 workers" in str(found["worker-start"]["evidence"])
    assert "persistent_workers is off" not in str(found["worker-start"]["evidence"])
    assert "waiting for workers to start 33 %" in "\n".join(summarise(report)[:6])


def test_workers_that_are_started_for_every_epoch(tmp_path: Path) -> None:
    fed(tmp_path, starts=3, epochs=3)
    found = rules(reports.load(tmp_path))["worker-start"]
    assert found["concerns_ns"] == 3 * 5000 * US
    assert "3 starts of 4 workers" in str(found["evidence"])
    assert "persistent_workers is off" in str(found["evidence"])
    persistent = tmp_path / "persistent"
    persistent.mkdir()
    fed(persistent, starts=1, epochs=3)
    found = rules(reports.load(persistent))["worker-start"]
    assert found["concerns_ns"] == 5000 * US
    assert "persistent_workers is off" not in str(found["evidence"])


def test_workers_at_a_time(tmp_path: Path) -> None:
    fed(tmp_path, starts=2, start=100)
    for path in tmp_path.glob("*-200.pfw"):  # data that is slow in earnest
        path.unlink()
    program = Program(pid=200)
    for step in range(20):
        program.span("dataloader", "fetch", 300, epoch=step // 10, step=step)
        program.span("compute", "backward", 710, epoch=step // 10, step=step)
    program.write(tmp_path)
    evidence = str(rules(reports.load(tmp_path))["waiting-for-data"]["evidence"])
    assert "8 worker processes, 4 at a time, restarted" in evidence

"""Runs that are slow on purpose are told so, with numbers; a healthy one is left alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.planned import Program, training

from dftracer import reports
from dftracer.reports.findings import RULES
from dftracer.reports.summary import summarise

US = 1000


def findings(place: Path) -> dict[str, dict[str, object]]:
    report = reports.load(place)
    found = {row["rule"]: row for row in report.findings}
    for row in found.values():
        assert re.search(r"\d", row["evidence"]), "a finding without numbers"
        assert row["title"]
        assert row["advice"]
        assert row["severity"] in ("low", "medium", "high")
        assert 0 <= row["share"] <= 1
        assert row["concerns_ns"] >= 0
    order = [("high", "medium", "low").index(row["severity"]) for row in report.findings]
    assert order == sorted(order)
    text = "\n".join(summarise(report))
    assert all(str(row["title"]) in text for row in found.values())
    return found


def healthy(place: Path, ranks: int = 2, fetch: int = 100) -> None:
    """Compute-bound ranks, each with two workers that read small pieces, again and again."""
    for rank in range(ranks):
        program = training(pid=200 + rank, rank=rank, steps=40, fetch=fetch)
        program.span("checkpoint", "capture", 5000)
        program.write(place)
        for number in range(2):
            worker = Program(pid=300 + 10 * rank + number, ppid=200 + rank)
            for i in range(900):
                start = worker.span("data", "item", 400)
                worker.span("POSIX", "stat", 20, at=start, file=f"/d/{i % 7}")
                worker.read(f"/d/{i % 7}", 4096, 100, start + 20, name="pread",
                            offset=4096 * (i * 31 % 50))  # fmt: skip
                worker.now += 300
            worker.write(place)


def test_a_balanced_run_that_computes_has_none(tmp_path: Path) -> None:
    healthy(tmp_path)
    assert findings(tmp_path) == {}
    report = reports.load(tmp_path)
    assert "Nothing stands out" in "\n".join(summarise(report))


def test_training_that_waits_for_its_data(tmp_path: Path) -> None:
    healthy(tmp_path, fetch=6000)
    found = findings(tmp_path)
    wait = found["waiting-for-data"]
    assert wait["concerns_ns"] == 2 * 80 * 6000 * US
    # Of steps of 16,100 us; the last one of an epoch has no gap.
    assert wait["share"] == pytest.approx(6000 / 16_100, rel=0.01)
    assert wait["severity"] == "high"
    assert "160 steps" in str(wait["evidence"])
    assert "4 worker processes" in str(wait["evidence"])
    # Now that somebody waits, what the workers do is of interest.
    assert {"small-reads", "random-access"} <= set(found)


def test_small_reads(tmp_path: Path) -> None:
    program = Program()
    program.span("POSIX", "open", 5, file="/d/a", ret=3)
    for _ in range(5000):
        program.read("/d/a", 512, 10)
        program.now += 10
    program.read("/d/a", 1 << 20, 100)
    program.write(tmp_path)
    small = findings(tmp_path)["small-reads"]
    assert small["concerns_ns"] == 50_000 * US
    assert "5,000 reads" in str(small["evidence"])
    assert "512 B on average" in str(small["evidence"])


def test_large_reads_are_no_small_ones(tmp_path: Path) -> None:
    program = Program()
    for i in range(2000):
        program.read("/d/a", 1 << 20, 100, name="pread", offset=i << 20)
        program.now += 300
    program.write(tmp_path)
    assert findings(tmp_path) == {}


def test_rereads(tmp_path: Path) -> None:
    program = Program()
    for _ in range(4):
        program.span("POSIX", "open", 5, file="/d/a", ret=3)
        for _ in range(8):
            program.read("/d/a", 1 << 20, 1000)
    program.write(tmp_path)
    again = findings(tmp_path)["rereads"]
    assert again["concerns_ns"] == 24_000 * US
    assert "4.0 times over" in str(again["evidence"])


def test_metadata_storm(tmp_path: Path) -> None:
    program = Program()
    for i in range(1500):
        program.span("POSIX", "stat", 30, file=f"/d/{i}")
        program.span("POSIX", "open", 20, file=f"/d/{i}", ret=3)
        program.span("POSIX", "close", 10, file=f"/d/{i}")
        program.now += 100
    program.write(tmp_path)
    storm = findings(tmp_path)["metadata-storm"]
    assert storm["concerns_ns"] == 1500 * 60 * US
    assert "4,500 call" in str(storm["evidence"])
    assert "1,500 files" in str(storm["evidence"])


def test_random_access(tmp_path: Path) -> None:
    program = Program()
    for i in range(3000):
        program.read("/d/a", 1 << 16, 50, name="pread", offset=(i * 7919 % 3000) << 16)
        program.now += 50
        if i % 3 == 0:
            program.read("/d/a", 1 << 16, 50, name="pread", offset=(i * 7919 * i % 2999) << 16)
    program.write(tmp_path)
    assert "random-access" in findings(tmp_path)


def test_io_of_a_process_that_could_compute_meanwhile(tmp_path: Path) -> None:
    program = training(steps=20)
    for i in range(20):
        program.read("/d/a", 1 << 20, 4000, at=400_000 + 5000 * i)
    program.span("compute", "forward", 10, at=500_000)
    program.write(tmp_path)
    found = findings(tmp_path)["unhidden-io"]
    assert found["concerns_ns"] == pytest.approx(80_000 * US, rel=0.2)


def test_one_slow_worker(tmp_path: Path) -> None:
    training(pid=200, fetch=3000).write(tmp_path)
    for number in range(4):
        worker = Program(pid=300 + number, ppid=200)
        for _ in range(50):
            worker.span("data", "item", 4000 if number == 2 else 1000)
        worker.write(tmp_path)
    slow = findings(tmp_path)["slow-worker"]
    assert "4.0 times" in str(slow["title"])
    assert "process 302" in str(slow["evidence"])
    assert slow["concerns_ns"] == 50 * 3000 * US


def test_an_unbalanced_rank(tmp_path: Path) -> None:
    for rank in range(4):
        compute = 14_000 if rank == 3 else 10_000
        training(pid=200 + rank, rank=rank, compute=compute).write(tmp_path)
    found = findings(tmp_path)
    assert set(found) == {"unbalanced-rank"}
    assert "Rank 3" in str(found["unbalanced-rank"]["title"])
    assert found["unbalanced-rank"]["concerns_ns"] == 40 * 4000 * US


def test_checkpoints_that_stall(tmp_path: Path) -> None:
    program = training(steps=10, epochs=2)
    for _ in range(3):
        program.span("checkpoint", "capture", 20_000, epoch=1, step=19)
    program.write(tmp_path)
    found = findings(tmp_path)["checkpoint-stalls"]
    assert found["concerns_ns"] == 60_000 * US
    assert "3 checkpoints" in str(found["evidence"])


def test_lost_events(tmp_path: Path) -> None:
    program = training()
    program._line("lost", "dftracer", 0, 0, {"events": 123})
    program.write(tmp_path)
    found = findings(tmp_path)["lost-events"]
    assert "123 lost" in str(found["evidence"])


def test_every_rule_is_named_once_and_explained() -> None:
    names = [told.name for told in RULES]
    assert len(names) == len(set(names))
    docs = Path(__file__).parents[2] / "docs" / "report.md"
    text = docs.read_text()
    assert [name for name in names if f"`{name}`" not in text] == []

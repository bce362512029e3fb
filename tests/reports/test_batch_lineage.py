"""Batches from the worker to the step, and what of their making was waited for.

The numbers are compared with a plain count over the events."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.lineage_truth import Truth
from support.simulated_loader import Item, Loader
from support.synthetic_program import BEGIN, Program, training

from dftracer import reports
from dftracer.reports import Report

US = 1000
WORK = ("reading", "decoding", "collating", "gc", "other")
WAIT = (*WORK, "start", "dispatch", "turn", "queue", "pinning")
ACTIVITIES = {
    "garbage collection": "gc",
    "worker start-up": "start",
    "not yet begun": "dispatch",
    "waiting for its turn": "turn",
    "queue transfer": "queue",
    "unattributed": "other",
}


def random_loader(seed: int) -> Loader:
    chance = random.Random(seed)
    files = [f"/data/shard-{n}.tar" for n in range(5)]

    def item() -> Item:
        slow = 30 if chance.random() < 0.05 else 1
        decode = chance.randint(0, 400) * (1 if chance.random() < 0.95 else 20)
        return Item(
            read=chance.choice((0, chance.randint(1, 500))) * slow,
            decode=decode,
            file=chance.choice(files),
            size=chance.randint(1, 10**6),
            gc=decode // 2 if chance.random() < 0.1 else 0,
        )

    size = chance.choice((1, 4, 8))
    batches = [[item() for _ in range(size)] for _ in range(chance.randint(1, 40))]
    compute = chance.choice((100, 1_000, 3_000))
    return Loader(
        batches,
        workers=chance.choice((0, 1, 2, 3, 5)),
        prefetch=chance.choice((1, 2, 4)),
        in_order=chance.random() < 0.6,
        passes=chance.choice((1, 2, 3)),
        persistent=chance.random() < 0.5,
        start=chance.choice((0, 500, 20_000)),
        collate=(lambda batch: 80) if chance.random() < 0.5 else (lambda batch: 0),
        transfer=chance.choice((0, 30, 900)),
        pin=chance.choice((0, 0, 40, 700)),
        compute=lambda step: compute + step * 7919 % 900,
        main_gc=lambda step: 300 if step % 5 == 3 else 0,
    ).run()


def check_sums(report: Report, truth: Truth) -> None:
    pids = {row["process"]: row["pid"] for row in report.processes}
    rows = {(pids[b["process"]], b["loader"], b["pass"], b["batch"]): b for b in report.batches}
    assert rows.keys() == truth.tasks.keys()
    for key, row in rows.items():
        fetch, task = truth.fetches[key], truth.tasks[key]
        assert row["wanted_ns"] == fetch["ts"] * US
        assert row["wait_ns"] == fetch["dur"] * US
        assert row["work_ns"] == task["dur"] * US
        assert pids[row["worker_process"]] == task["pid"]
        waits = {part: row[f"waited_{part}_ns"] // US for part in WAIT if row[f"waited_{part}_ns"]}
        assert waits == +truth.waits[key], key
        work = {part: row[f"{part}_ns"] // US for part in WORK if row[f"{part}_ns"]}
        assert work == +truth.work[key], key
    check_totals(report, truth)


def check_totals(report: Report, truth: Truth) -> None:
    exposed, hidden, total = Counter(), Counter(), Counter()
    for row in report.input_overlap:
        assert row["total_ns"] == row["hidden_ns"] + row["exposed_ns"]
        assert row["hidden_ns"] >= 0
        name = ACTIVITIES.get(row["activity"], row["activity"])
        exposed[name] += row["exposed_ns"] // US
        hidden[name] += row["hidden_ns"] // US
        total[name] += row["total_ns"] // US
    assert +exposed == +truth.exposed()
    assert sum(exposed.values()) == sum(event["dur"] for event in truth.fetches.values())
    made = truth.total()
    for part in ("reading", "decoding", "collating"):
        assert total[part] == made[part]
    for process in {row["process"] for row in report.steps}:
        spent = sum(row["time_ns"] for row in report.breakdown if row["process"] == process)
        assert spent == report.processes.dicts()[process]["life_ns"]
        assert all(row["time_ns"] >= 0 for row in report.breakdown)


@pytest.mark.parametrize("seed", range(40))
def test_sums_of_random_loaders_close(tmp_path: Path, seed: int) -> None:
    random_loader(seed).write(tmp_path)
    check_sums(reports.load(tmp_path), Truth(tmp_path))


def test_large_batches_are_known_to_a_hundredth(tmp_path: Path) -> None:
    items = [Item(read=50 + n % 7, decode=20 + n % 3) for n in range(300)]
    Loader([items] * 12, workers=2, compute=lambda step: 500).run().write(tmp_path)
    report, truth = reports.load(tmp_path), Truth(tmp_path)
    for row in report.batches:
        waits = truth.waits[100, 0, 0, row["batch"]]
        parts = {part: row[f"waited_{part}_ns"] for part in WAIT}
        assert sum(parts.values()) == row["wait_ns"]
        for part, value in parts.items():
            assert abs(value - waits[part] * US) <= row["work_ns"] / 100
        assert row["reading_ns"] == truth.work[100, 0, 0, row["batch"]]["reading"] * US
    for row in report.input_overlap:
        assert row["hidden_ns"] >= 0


def two_hosts(directory: Path) -> None:
    """The same numbers of processes and loaders on each of them."""
    for number, host in enumerate(("node1", "node2")):
        loader = random_loader(3 + number)
        again = Loader(loader.batches, workers=3, passes=2, host=host, persistent=False)
        again.main.rank = number
        again.run().write(directory)


@pytest.mark.parametrize("cluster", ["local:2", "local:3"])
def test_many_processes_give_the_same_tables(tmp_path: Path, cluster: str) -> None:
    two_hosts(tmp_path)
    alone = reports.load(tmp_path, threads=1)
    shared = reports.load(tmp_path, cluster=cluster)
    assert len(alone.batches) > 40
    assert len(set(alone.batches.column("process"))) == 2
    assert all(row["worker_process"] is not None for row in alone.batches)
    for name in ("batches", "batch_files", "input_overlap", "breakdown", "slow_steps", "steps"):
        assert alone.table(name).rows == shared.table(name).rows, name


def test_two_loaders_at_once(tmp_path: Path) -> None:
    """The batches of each are its own, though their numbers are the same."""
    train = Loader([[Item()] * 4] * 10, workers=1).run()
    other = Loader([[Item(read=700)] * 2] * 10, workers=1, loader=1).run()
    for worker in other.made:
        worker.pid += 50
        worker.lines = [line.replace('"pid":101', '"pid":151') for line in worker.lines]
        worker.write(tmp_path)
    train.main.lines += other.main.lines
    train.write(tmp_path)
    report = reports.load(tmp_path)
    found = {(row["loader"], row["batch"]): row for row in report.batches}
    assert len(found) == len(report.batches) == 20
    assert {row["reading_ns"] for (loader, _), row in found.items() if loader == 0} == {400 * US}
    assert {row["reading_ns"] for (loader, _), row in found.items() if loader == 1} == {1400 * US}


def test_a_batch_that_is_never_used_is_hidden(tmp_path: Path) -> None:
    loader = Loader([[Item()] * 4] * 10, workers=2).run()
    kept = [line for line in loader.main.lines if '"batch":9' not in line]
    loader.main.lines[:] = kept
    loader.write(tmp_path)
    report = reports.load(tmp_path)
    (row,) = [row for row in report.batches if row["batch"] == 9]
    assert row["handed_ns"] is None
    assert row["wait_ns"] is None
    assert row["work_ns"] > 0
    reading = next(row for row in report.input_overlap if row["activity"] == "reading")
    assert reading["total_ns"] == 10 * 400 * US


def test_traces_without_lineage_have_none(tmp_path: Path) -> None:
    training(steps=20, epochs=2).write(tmp_path)
    worker = Program(pid=300, ppid=100)
    worker.span("data", "item", 50)
    worker.span("dataloader", "batch", 50, batch="x")  # of another program
    worker.write(tmp_path)
    report = reports.load(tmp_path)
    assert not report.batches.rows
    assert not report.batch_files.rows
    assert not report.input_overlap.rows
    assert report.steps.column("batch") == [None] * 40
    assert not report.slow_steps.rows
    parts = dict(zip(report.breakdown.column("part"), report.breakdown.column("time_ns")))
    assert parts["waiting for data"] == 40 * 100 * US
    assert sum(parts.values()) == report.processes.dicts()[0]["life_ns"]


def test_nonsense_does_not_break_the_sums(tmp_path: Path) -> None:
    """Events twice, in a wrong order, with wrong parents and huge numbers."""
    main, worker = Program(), Program(pid=200, ppid=100)
    some: dict[str, Any] = {"loader": 0, "pass": 0}
    for batch in range(8):
        main.span("dataloader", "fetch", 100, batch=batch, worker=0, step=batch, **some)
        main.span("compute", "forward", 50, step=batch)
    at = BEGIN * 0
    main.span("dataloader", "fetch", 70, batch=3, worker=0, step=3, **some)
    main.span("dataloader", "arrive", 0, at=at, batch=4, worker=0, **some)
    main.span("dataloader", "pin", 10_000, at=at, batch=5)
    main.span("python", "gc", 5_000, at=at, generation=2)
    worker.span("dataloader", "batch", 600, at=0, batch=3, parent=100, worker=0, **some)
    worker.span("dataloader", "batch", 600, at=100, batch=4, parent=100, worker=0, **some)
    worker.span("dataloader", "batch", 60, at=900, batch=5, parent=77, worker=0, **some)
    worker.span("dataloader", "batch", 60, at=990, batch=6, parent=100, worker=0, **some)
    worker.span("dataloader", "batch", 60, at=1990, batch=6, parent=100, worker=0, **some)
    worker.span("dataloader", "batch", 0, at=2990, batch=7, parent=100, worker=0, **some)
    worker.span("dataloader", "batch", 9, at=3000, batch=10**30, parent=-1, worker=0, **some)
    worker.span("data", "item", 10**12, at=0)
    main.write(tmp_path)
    worker.write(tmp_path)
    report = reports.load(tmp_path)
    for row in report.batches:
        if row["wait_ns"] is not None:
            assert row["wait_ns"] == sum(row[f"waited_{part}_ns"] for part in WAIT)
            assert all(row[f"waited_{part}_ns"] >= 0 for part in WAIT)
        if row["work_ns"] is not None:
            assert row["work_ns"] == sum(row[f"{part}_ns"] for part in WORK)
    assert all(row["hidden_ns"] >= 0 for row in report.input_overlap)
    for number in set(report.breakdown.column("process")):
        rows = [row for row in report.breakdown if row["process"] == number]
        assert sum(row["time_ns"] for row in rows) >= 0

"""Each cause of a slow step, in a trace whose every microsecond is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.lineage_truth import Truth
from support.simulated_loader import Item, Loader
from support.synthetic_program import Program

from dftracer import reports
from dftracer._format import duration
from dftracer.reports import Report

US = 1000
SHARD = "/data/shard-17.tar"


def batches(count: int = 40, item: Item | None = None, **odd: list[Item]) -> list[list[Item]]:
    """Equal ones, except those named b17 and so on."""
    made = [[item or Item()] * 4 for _ in range(count)]
    for name, items in odd.items():
        made[int(name[1:])] = items
    return made


def load(directory: Path, loader: Loader) -> tuple[Report, Truth]:
    loader.run().write(directory)
    return reports.load(directory), Truth(directory)


def waits(report: Report) -> dict[int, dict[str, Any]]:
    """Steps that waited, by number."""
    return {row["step"]: row for row in report.slow_steps if row["batch"] is not None}


def others(report: Report) -> dict[int, dict[str, Any]]:
    return {row["step"]: row for row in report.slow_steps if row["batch"] is None}


def told(truth: Truth, number: int, part: str, of: tuple[int, int] = (100, 0)) -> str:
    """A part of the wait for a batch, as the chain says it."""
    return duration(truth.waits[(*of, 0, number)][part] * US)


def test_reading_one_slow_file(tmp_path: Path) -> None:
    slow = [Item(read=90_000, decode=9_000, file=SHARD, size=1_080_000), Item(), Item(), Item()]
    report, truth = load(tmp_path, Loader(batches(b17=slow), compute=lambda step: 2_000))
    row = waits(report)[17]
    fetch, task = truth.fetches[100, 0, 0, 17], truth.tasks[100, 0, 0, 17]
    assert row["late_ns"] == fetch["dur"] * US
    assert (row["cause"], row["file"], row["batch"], row["worker"]) == ("reading", SHARD, 17, 1)
    ended = task["ts"] + task["dur"]
    ready = duration((ended - fetch["ts"]) * US)
    later = [other for key, other in truth.tasks.items() if key[3] > 17]
    kept = sum(other["ts"] + other["dur"] < ended for other in later)
    assert row["chain"] == (
        f"step 17 late by {duration(row['late_ns'])}: batch 17, worker 1, "
        f"{told(truth, 17, 'reading')} reading {SHARD} (12 MB/s, the median is 1 GB/s), "
        f"{told(truth, 17, 'decoding')} decoding; its batch was not ready until {ready} after "
        f"step 16 ended; making it took {duration(task['dur'] * US)}, usually 1.27 ms; "
        f"{kept} later batches were ready before it"
    )
    step = report.steps.dicts()[17]
    assert (step["loader"], step["pass"], step["batch"]) == (0, 0, 17)
    (file,) = [row for row in report.batch_files if row["batch"] == 17 and row["place"] == 1]
    assert (file["fname"], file["total_ns"], file["read_bytes"]) == (SHARD, 90_000 * US, 1_080_000)


@pytest.mark.parametrize(("speed", "cold"), [(100, True), (50, False)])
def test_a_read_is_cold_if_the_next_pass_is_faster(tmp_path: Path, speed: int, cold: bool) -> None:
    first = [Item(read=20_000, file=SHARD, size=240_000)]
    later = [Item(read=20_000 // speed, file=SHARD, size=240_000)]
    loader = Loader(
        batches(b17=first), again=batches(b17=later), passes=2, compute=lambda step: 2_000
    )
    report, _ = load(tmp_path, loader)
    found = waits(report)
    assert ("(cold, 12 MB/s)" in found[17]["chain"]) == cold
    assert not any("cold" in row["chain"] for step, row in found.items() if step != 17)


def test_decoding(tmp_path: Path) -> None:
    report, truth = load(
        tmp_path, Loader(batches(b9=[Item(decode=50_000)]), compute=lambda step: 2_000)
    )
    row = waits(report)[9]
    assert (row["cause"], row["file"]) == ("decoding", None)
    assert f"{told(truth, 9, 'decoding')} decoding" in row["chain"]


def test_collating(tmp_path: Path) -> None:
    loader = Loader(
        batches(),
        collate=lambda batch: 30_000 if batch == 8 else 50,
        compute=lambda step: 2_000,
    )
    report, truth = load(tmp_path, loader)
    assert waits(report)[8]["cause"] == "collating"
    assert f"{told(truth, 8, 'collating')} collating" in waits(report)[8]["chain"]


def test_collection_in_a_worker(tmp_path: Path) -> None:
    slow = [Item(decode=41_000, gc=40_000)]
    report, truth = load(tmp_path, Loader(batches(b8=slow), compute=lambda step: 2_000))
    assert waits(report)[8]["cause"] == "garbage collection"
    assert f"{told(truth, 8, 'gc')} collecting garbage" in waits(report)[8]["chain"]


def test_collection_while_a_batch_is_handed_over(tmp_path: Path) -> None:
    loader = Loader(
        batches(),
        compute=lambda step: 2_000,
        main_gc=lambda step: 30_000 if step == 12 else 0,
    )
    report, truth = load(tmp_path, loader)
    row = waits(report)[12]
    assert (row["cause"], row["batch"]) == ("garbage collection", 12)
    assert truth.waits[100, 0, 0, 12]["gc"] == 30_000
    assert "30 ms collecting garbage; its batch had been ready for " in row["chain"]


def test_a_batch_behind_a_slow_one_of_its_worker(tmp_path: Path) -> None:
    slow = [Item(read=90_000, file=SHARD, size=900_000)]
    loader = Loader(
        batches(20, Item(read=1_000, decode=1_500), b4=slow),
        compute=lambda step: 100 if step in (4, 5) else 8_000,
    )
    report, truth = load(tmp_path, loader)
    assert waits(report)[4]["cause"] == "reading"
    row = waits(report)[6]
    assert (row["cause"], row["file"], row["batch"]) == ("reading", SHARD, 6)
    took = duration(truth.tasks[100, 0, 0, 4]["dur"] * US)
    assert f"; worker 0 was late with batch 4, which took {took} (90 ms reading " in row["chain"]


def test_too_few_workers(tmp_path: Path) -> None:
    loader = Loader(batches(40, Item(read=500, decode=2_000)), compute=lambda step: 1_000)
    report, _ = load(tmp_path, loader)
    found = waits(report)
    # The two workers are in step, so that every second batch is ready with the one before it.
    assert len(found) == 20
    assert {row["cause"] for step, row in found.items() if step} == {"too few workers"}
    row = next(row for row in waits(report).values() if row["cause"] == "too few workers")
    assert row["chain"].endswith("; all 2 workers were busy")
    (finding,) = [row for row in report.findings if row["rule"] == "waiting-for-data"]
    assert ": 19 of them with too few workers that were decoding (" in finding["title"]
    assert "num_workers" in finding["advice"]


def test_enough_workers_are_no_cause(tmp_path: Path) -> None:
    """Workers that have filled the queue rest; a slow item is the cause, not their number."""
    slow = [Item(decode=3_000)]
    report, _ = load(
        tmp_path, Loader(batches(b20=slow), workers=4, prefetch=1, compute=lambda step: 400)
    )
    assert waits(report)[20]["cause"] == "decoding"


def test_first_batch_of_a_pass_and_start_of_workers(tmp_path: Path) -> None:
    report, truth = load(
        tmp_path, Loader(batches(10), passes=2, start=30_000, compute=lambda step: 3_000)
    )
    found = waits(report)
    assert set(found) == {0, 10}
    assert (found[0]["cause"], found[10]["cause"]) == ("worker start-up", "first batch")
    assert f"{told(truth, 0, 'start')} until the worker had started" in found[0]["chain"]
    assert found[10]["chain"].endswith("; nothing was made ahead at the beginning of pass 1")


def test_new_workers_for_each_pass(tmp_path: Path) -> None:
    loader = Loader(
        batches(10), passes=3, persistent=False, start=30_000, compute=lambda step: 3_000
    )
    report, _ = load(tmp_path, loader)
    assert {row["cause"] for row in waits(report).values()} == {"worker start-up"}
    assert set(waits(report)) == {0, 10, 20}
    rules = [row["rule"] for row in report.findings]
    assert "worker-start" in rules
    assert "waiting-for-data" not in rules


def test_behind_another_batch_in_the_queue(tmp_path: Path) -> None:
    """The first batch is ready late, when others are in the queue before it."""
    loader = Loader(
        batches(20, b0=[Item(decode=30_000)]), workers=4, prefetch=4, take=5_000, start=0
    )
    report, truth = load(tmp_path, loader)
    row = waits(report)[0]
    assert row["cause"] == "waiting for its turn"
    assert f"{told(truth, 0, 'turn')} behind another batch in the queue" in row["chain"]


def test_transfer_from_the_worker(tmp_path: Path) -> None:
    report, truth = load(tmp_path, Loader(batches(), prefetch=1, transfer=20_000))
    row = waits(report)[20]
    assert row["cause"] == "queue transfer"
    assert f"{told(truth, 20, 'queue')} moving it to the training process" in row["chain"]


def test_pinning(tmp_path: Path) -> None:
    report, truth = load(tmp_path, Loader(batches(), pin=20_000))
    row = waits(report)[20]
    assert row["cause"] in ("pinning", "waiting for its turn")
    assert f"{told(truth, 20, 'pinning')} pinning its memory" in row["chain"]
    (pinned,) = [row for row in report.input_overlap if row["activity"] == "pinning"]
    assert pinned["total_ns"] == 40 * 20_000 * US


def test_a_worker_that_is_sent_its_batch_late(tmp_path: Path) -> None:
    report, truth = load(tmp_path, Loader(batches(), workers=1, prefetch=1, reach=8_000))
    row = waits(report)[20]
    assert row["cause"] == "not yet begun"
    assert f"{told(truth, 20, 'dispatch')} until the worker began it" in row["chain"]


def test_without_workers_everything_is_exposed(tmp_path: Path) -> None:
    slow = [Item(read=50_000, file=SHARD)]
    report, truth = load(tmp_path, Loader(batches(b5=slow), workers=0))
    row = waits(report)[5]
    assert (row["cause"], row["file"], row["worker"]) == ("reading", SHARD, None)
    assert "batch 5, without workers, 50 ms reading" in row["chain"]
    assert all(row["hidden_ns"] == 0 for row in report.input_overlap)
    assert sum(truth.exposed().values()) * US == sum(report.input_overlap.column("exposed_ns"))
    # The same reads are no second finding.
    rules = [row["rule"] for row in report.findings]
    assert "waiting-for-data" in rules
    assert "unhidden-io" not in rules


def test_workers_that_are_not_traced(tmp_path: Path) -> None:
    slow = [Item(read=50_000, file=SHARD)]
    loader = Loader(batches(b5=slow), compute=lambda step: 2_000).run()
    loader.main.write(tmp_path)
    report = reports.load(tmp_path)
    row = waits(report)[5]
    assert (row["cause"], row["file"]) == ("unattributed", None)
    assert row["late_ns"] == report.batches.dicts()[5]["waited_other_ns"]
    (finding,) = [row for row in report.findings if row["rule"] == "waiting-for-data"]
    assert finding["title"].endswith("for reasons that are not traced")


def test_a_checkpoint_an_evaluation_and_longer_compute(tmp_path: Path) -> None:
    def after(main: Program, step: int) -> None:
        if step == 9:
            main.span("checkpoint", "capture", 70_000, epoch=0, step=step)
        if step == 14:
            main.span("python", "gc", 45_000, at=main.now - 48_000, generation=2, collected=1)
        if step == 16:
            main.now += 33_000
        if step == 18:
            main.span("pipeline", "evaluate", 25_000)

    spent = {5: 42_000, 14: 52_000}
    loader = Loader(batches(20), compute=lambda step: spent.get(step, 2_000), after=after)
    report, _ = load(tmp_path, loader)
    found = others(report)
    causes = {step: (row["cause"], row["late_ns"] // US) for step, row in found.items()}
    assert causes == {
        5: ("compute", 40_000),
        9: ("checkpoint", 70_000),
        14: ("garbage collection", 50_000),
        16: ("unattributed", 33_000),
        18: ("evaluation", 25_000),
    }
    assert found[5]["chain"] == "step 5 took 40 ms longer than usual: compute took 40 ms more"
    assert found[14]["chain"].endswith("50 ms more, 45 ms of it collecting garbage")
    assert found[18]["chain"] == "evaluation after step 18 took 25 ms"


def test_the_first_step_warms_up(tmp_path: Path) -> None:
    loader = Loader(batches(20), compute=lambda step: 2_000 if step else 90_000)
    report, _ = load(tmp_path, loader)
    assert others(report)[0]["cause"] == "first step"


def test_steps_that_are_just_so_are_not_slow(tmp_path: Path) -> None:
    """Waits of microseconds, and noise, are no rows, and no findings."""
    loader = Loader(batches(40), start=0, compute=lambda step: 2_000 + step * 7919 % 400)
    report, _ = load(tmp_path, loader)
    assert set(waits(report)) <= {0}  # 1.3 ms
    assert not others(report)
    assert not report.findings.rows


def test_a_finding_names_the_file_and_nothing_is_there_twice(tmp_path: Path) -> None:
    slow = [Item(read=90_000, file=SHARD, size=1_080_000)]
    odd = {f"b{number}": slow for number in (7, 13, 21, 30)} | {"b35": [Item(decode=30_000)]}
    report, _truth = load(tmp_path, Loader(batches(40, **odd), compute=lambda step: 2_000))
    found = {row["rule"]: row for row in report.findings}
    late = [row for row in waits(report).values() if row["cause"] != "worker start-up"]
    waited = duration(sum(row["late_ns"] for row in late))
    assert len(late) == 5
    finding = found["waiting-for-data"]
    reading = duration(sum(row["late_ns"] for row in late if row["cause"] == "reading"))
    assert finding["title"] == (
        f"5 of 40 steps waited {waited} for data: 4 of them reading {SHARD} ({reading})"
    )
    assert "late steps by cause: reading 4 (" in finding["evidence"]
    assert "decoding 1 (" in finding["evidence"]
    assert not {"uneven-steps", "slow-worker"} & set(found)
    # One base, which is stated.
    steps = sum(report.steps.column("dur_ns"))
    assert finding["base"] == f"of the {duration(steps)} that training steps took"
    assert finding["share"] == finding["concerns_ns"] / steps


def test_a_slow_sample_does_not_blame_its_worker(tmp_path: Path) -> None:
    """Its other batches are a little slower than those of the other worker, as they may be."""
    items = [[Item(decode=250 if number % 2 else 500)] for number in range(40)]
    items[20] = [Item(decode=300_000)]
    report, _ = load(tmp_path, Loader(items, compute=lambda step: 2_000))
    found = {row["rule"] for row in report.findings}
    assert "waiting-for-data" in found
    assert "slow-worker" not in found
    for number in range(0, 40, 2):
        items[number] = [Item(decode=20_000)]
    (tmp_path / "slow").mkdir()
    report, _ = load(tmp_path / "slow", Loader(items, compute=lambda step: 2_000))
    assert "slow-worker" in {row["rule"] for row in report.findings}


def test_start_up_and_shut_down_have_rows(tmp_path: Path) -> None:
    report, truth = load(tmp_path, Loader(batches(20)))
    parts = {row["part"]: row["time_ns"] // US for row in report.breakdown}
    first = min(event["ts"] for event in truth.fetches.values())
    last = max(e["ts"] + e["dur"] for e in truth.named("compute", "backward"))
    (process,) = [row for row in report.processes if row["pid"] == 100]
    assert parts["start-up"] == first - process["start_ns"] // US == 2_400
    assert parts["shut-down"] == process["end_ns"] // US - last == 1_500
    assert sum(parts.values()) == process["life_ns"] // US


def test_the_start_of_workers_is_not_found_twice(tmp_path: Path) -> None:
    """Also where it is only known from the first items of workers, not from their batches."""
    loader = Loader(batches(30), start=300_000, compute=lambda step: 2_000).run()
    for worker in loader.made:
        worker.lines = [line for line in worker.lines if '"name":"batch"' not in line]
    loader.write(tmp_path)
    report = reports.load(tmp_path)
    assert waits(report)[0]["cause"] == "unattributed"
    rules = [row["rule"] for row in report.findings]
    assert "worker-start" in rules
    assert "waiting-for-data" not in rules

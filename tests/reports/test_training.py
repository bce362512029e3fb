"""Steps, epochs and evaluation in the vocabularies of existing programs, and who waits for whom."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from support.synthetic_program import Program, training

from dftracer import reports
from dftracer.reports import Report
from dftracer.reports.render.summary import summarise
from dftracer.reports.store import Store

US = 1000


def rules(report: Report) -> dict[str, dict[str, Any]]:
    return {row["rule"]: row for row in report.findings}


def total(report: Report, column: str, table: str = "steps") -> int:
    """In microseconds."""
    return int(sum(report.table(table).column(column))) // US


def numbers(report: Report) -> list[tuple[int | None, int]]:
    return [(step["epoch"], step["step"]) for step in report.steps]


def closes(report: Report) -> None:
    """No time counts twice, or is lost."""
    parts = ("fetch", "compute", "transfer", "communication", "checkpoint", "unattributed")
    for table, more in (("steps", ()), ("epochs", ("evaluation",))):
        for row in report.table(table):
            assert row["dur_ns"] == sum(row[f"{part}_ns"] for part in (*parts, *more))
            assert all(row[f"{part}_ns"] >= 0 for part in (*parts, *more))


@pytest.mark.parametrize("cat", ["dataloader", "data_loader", "DataLoader"])
def test_the_body_of_a_loop_is_not_fetching(tmp_path: Path, cat: str) -> None:
    """`dft_fn("dataloader").iter(batches)`: loop.iter is the wait, loop.yield the body."""
    program = Program()
    for step in range(1, 11):
        program.span(cat, "loop.iter", 300, step=step)
        start = program.span(cat, "loop.yield", 700, step=step)
        program.span("compute", "forward", 600, at=start + 50)
    program.write(tmp_path)
    report = reports.load(tmp_path)
    assert len(report.steps) == 10
    assert total(report, "fetch_ns") == 10 * 300
    assert total(report, "compute_ns") == 10 * 600
    classes = {row["name"]: row["class"] for row in report.calls}
    assert classes == {"loop.iter": "fetch", "loop.yield": None, "forward": "compute"}
    closes(report)


def dlio_1(epochs: int = 5, steps: int = 5) -> Program:
    """A rank of DLIO, as DFTracer 1.x records it: numbers of steps that are not its own, and of the
    iteration in which the loop is left nothing but what is inside."""
    program = Program(rank=0)
    program.span("dlio_benchmark", "DLIOBenchmark.initialize", 5000, step="1")
    program.span("generator", "loop.iter", 400, step="1")
    program.span("generator", "loop.yield", 400, step="1")
    for _ in range(epochs):
        first = program.now
        program.span("data_loader", "TorchDataLoader.next", 0, epoch="valid", step="6")
        for step in range(1, steps + 1):
            begin = program.now
            if step < steps:
                program.span("dlio_benchmark", "loop.iter", 290, step=str(step))
            else:
                program.now += 290
            start = program.now
            program.span("ai_framework", "TorchFramework.trace_object", 1, epoch="0")
            program.span("ai_framework", "TorchFramework.compute", 620, epoch="0", image_size="3")
            if step < steps:
                program.span("dlio_benchmark", "loop.yield", 650, at=start, step=str(step))
            program.now = begin + 1000
            # A worker, which 1.x takes for another thread.
            program.span("reader", "NPZReader.get_sample", 900, at=begin, tid=7, image_idx="3")
        program.span("checkpoint", "PyTorchCheckpointing.checkpoint", 200)
        program.span(
            "dlio_benchmark", "DLIOBenchmark._train", program.now - first, at=first, step="5"
        )
        first = program.now
        program.span("dlio_benchmark", "loop.iter", 100, step="1")
        program.span("ai_framework", "TorchFramework.compute", 300, epoch="0", image_size="1")
        program.span("ai_framework", "TorchFramework.compute", 300, epoch="0", image_size="2")
        program.span(
            "dlio_benchmark", "DLIOBenchmark._eval", program.now - first, at=first, step="1"
        )
    return program


def test_dlio_by_dftracer_1(tmp_path: Path) -> None:
    dlio_1().write(tmp_path)
    report = reports.load(tmp_path)
    assert numbers(report) == [(epoch, step) for epoch in range(5) for step in range(1, 6)]
    # The wait of the last step of an epoch was not recorded.
    assert total(report, "fetch_ns") == 5 * 4 * 290
    assert total(report, "compute_ns") == 25 * 620
    assert total(report, "checkpoint_ns") == 5 * 200
    assert total(report, "evaluation_ns", "epochs") == 5 * 700
    assert [row["steps"] for row in report.epochs] == [5] * 5
    (process,) = report.processes
    assert process["role"] == "main"
    closes(report)


def dlio_now(pid: int = 100) -> Program:
    """DLIO with the ai vocabulary: a loader that is a generator, whose epochs are off by one."""
    program = Program(pid=pid, rank=0)
    known: dict[str, int] = {}
    for epoch in (1, 2):
        begin = program.now
        for step in range(1, 7):
            told = {**known, "step": step}
            program.span("dataloader", "fetch.iter", 70, count=step, **told)
            start = program.now
            program.span("compute", "compute", 900, **told)
            program.now += 30
            program.span("dataloader", "fetch.block", 930, at=start, count=step, **told)
        known = {"epoch": epoch + 1}
        last = {**known, "step": 6}
        program.span("data_loader", "TorchDataLoader.next", program.now - begin, at=begin,
                     tid=100 + 4194304, count=6, busy=500, **last)  # fmt: skip
        program.span("pipeline", "train", program.now - begin, at=begin, **last)
        start = program.now
        for step in (1, 2):
            told = {**known, "step": step}
            program.span("dataloader", "fetch.iter", 50, count=step, **told)
            program.span("compute", "compute", 200, **told)
        program.span("pipeline", "evaluate", program.now - start, at=start, **told)
        program.span("pipeline", "epoch.block", program.now - begin, at=begin, count=epoch, **told)
    return program


def test_current_dlio(tmp_path: Path) -> None:
    dlio_now().write(tmp_path)
    report = reports.load(tmp_path)
    assert numbers(report) == [(epoch, step) for epoch in (0, 1) for step in range(1, 7)]
    assert total(report, "fetch_ns") == 12 * 70
    assert (
        total(report, "dur_ns") == 12 * 1000 - 2 * 30
    )  # the last of an epoch ends with its compute
    assert total(report, "evaluation_ns", "epochs") == 2 * 500
    head = "\n".join(summarise(report))
    assert "12 steps in 2 epochs" in head
    assert "waiting for data 7 %" in head
    assert rules(report) == {}
    closes(report)


def test_epochs_that_a_loop_of_the_program_marks(tmp_path: Path) -> None:
    """`dft_fn("main").iter(range(2), name="epoch")`."""
    program = Program()
    for epoch in (1, 2):
        begin = program.now
        for _ in range(3):
            program.span("dataloader", "fetch", 10)
            program.span("compute", "forward", 100)
        program.span("main", "epoch.yield", program.now - begin, at=begin, step=epoch)
    program.write(tmp_path)
    assert numbers(reports.load(tmp_path)) == [(0, 0), (0, 1), (0, 2), (1, 3), (1, 4), (1, 5)]


@pytest.mark.parametrize(("cat", "name"), [("dataloader", "fetch"), ("data", "item")])
def test_the_life_of_a_generator_is_not_fetching(tmp_path: Path, cat: str, name: str) -> None:
    """`@ai.dataloader.fetch def batches(): yield ...` lives until the loop over it ends."""
    program = Program()
    program.span(cat, name, 10_000, at=0, tid=100 + 4194304, count=10, busy=2000)
    for _ in range(10):
        program.span("dataloader", "fetch.iter", 200)
        program.span("compute", "forward", 500)
        program.now += 300
    program.write(tmp_path)
    report = reports.load(tmp_path)
    assert len(report.steps) == 10
    assert total(report, "fetch_ns") == 10 * 200
    assert total(report, "unattributed_ns") == 9 * 300
    calls = {row["name"]: row["class"] for row in report.calls}
    assert calls[name] is None
    closes(report)


def test_a_thread_that_reads_ahead_is_not_waited_for(tmp_path: Path) -> None:
    program = Program()
    for step in range(10):
        told = {"epoch": 0, "step": step}
        program.span("dataloader", "fetch", 100, **told)
        program.span("data", "item", 900, at=program.now, tid=7, **told)
        program.span("compute", "backward", 500, **told)
        program.now += 400
    program.write(tmp_path)
    report = reports.load(tmp_path)
    assert total(report, "fetch_ns") == 10 * 100
    # Without a wait of the training thread, that it reads is all that is known.
    other = Program(pid=200)
    for step in range(10):
        other.span("data", "item", 100, tid=7, step=step, epoch=0)
        other.span("compute", "backward", 500, step=step, epoch=0)
    place = tmp_path / "other"
    place.mkdir()
    other.write(place)
    assert total(reports.load(place), "fetch_ns") == 9 * 100


def test_step_numbers_that_restart_without_an_epoch(tmp_path: Path) -> None:
    program = Program()
    for _ in range(2):
        for step in range(20):
            program.span("dataloader", "fetch", 100, step=step)
            program.span("compute", "forward", 400, step=step)
            program.span("compute", "backward", 500, step=step)
    program.write(tmp_path)
    report = reports.load(tmp_path)
    assert numbers(report) == [(epoch, step) for epoch in (0, 1) for step in range(20)]
    assert {step["dur_ns"] for step in report.steps} == {1000 * US}


def test_steps_without_fetches_and_epochs(tmp_path: Path) -> None:
    """A batch that is used for several updates, and numbers alone that tell of steps."""
    program = Program()
    for step in range(6):
        if step == 0:
            program.span("dataloader", "fetch", 100, step=step)
        program.span("compute", "forward", 400, step=step)
        program.span("compute", "backward", 500, step=step)
    program.write(tmp_path)
    report = reports.load(tmp_path)
    assert numbers(report) == [(None, step) for step in range(6)]
    assert "epoch" not in "\n".join(summarise(report)[:3])


@pytest.mark.parametrize("epochs", [True, False])
def test_evaluation_that_numbers_its_steps(tmp_path: Path, epochs: bool) -> None:
    program = Program()
    for epoch in range(2):
        told = {"epoch": epoch} if epochs else {}
        for step in range(10):
            program.span("dataloader", "fetch", 100, step=step, **told)
            program.span("compute", "forward", 400, step=step, **told)
            program.span("compute", "backward", 500, step=step, **told)
        for step in range(4):
            program.span("dataloader", "fetch", 100, step=step, **told)
            program.span("compute", "forward", 400, step=step, **told)
    program.write(tmp_path)
    report = reports.load(tmp_path)
    assert numbers(report) == [(epoch, step) for epoch in (0, 1) for step in range(10)]
    assert {step["dur_ns"] for step in report.steps} == {1000 * US}
    assert [row["evaluation_ns"] // US for row in report.epochs] == [2000, 2000]
    assert [row["dur_ns"] // US for row in report.epochs] == [12_000, 12_000]
    closes(report)


def evaluates_now_and_then(program: Program, marked: bool) -> None:
    """As `dftracer run --torch` records Hugging Face's trainer: evaluation carries the number of
    the step before, or, with the trainer's callback, of the next one."""
    for step in range(32):
        told = {"epoch": step // 16, "step": step}
        program.span("dataloader", "fetch", 10, **told)
        program.span("compute", "forward", 400, training=1, **told)
        program.span("compute", "backward", 500, **told)
        program.span("compute", "step", 90, **told)
        if step % 10 == 9:
            told["step"] += int(marked)
            program.span("dataloader", "fetch", 10, **told)  # ahead
            begin = program.now
            for _ in range(20):
                program.span("dataloader", "fetch", 10, **told)
                program.span("compute", "forward", 190, training=0, **told)
            if marked:  # from the first batch on that was predicted
                program.span("pipeline", "evaluate", program.now - begin - 200, at=begin + 200)
            program.now += 40


@pytest.mark.parametrize("marked", [False, True])
def test_evaluation_is_no_part_of_a_step(tmp_path: Path, marked: bool) -> None:
    program = Program()
    evaluates_now_and_then(program, marked)
    program.write(tmp_path)
    report = reports.load(tmp_path)
    assert numbers(report) == [(step // 16, step) for step in range(32)]
    assert {step["dur_ns"] for step in report.steps} == {1000 * US}
    assert set(rules(report)) == {"evaluation"}  # a quarter of the time, and no slow step
    # Where the program does not mark it, it goes on until the next step begins.
    each = 4010 if marked else 4050
    assert [row["evaluation_ns"] // US for row in report.epochs] == [each, 2 * each]
    assert re.search(r"plus 12(\.\d)? ms of evaluation", "\n".join(summarise(report)))
    closes(report)


def test_accumulated_and_skipped_batches_are_one_step(tmp_path: Path) -> None:
    program = Program()
    for step in range(4):
        for batch in range(3):
            # A new data set for each epoch is known by its first backward pass.
            epoch = 0 if step < 2 or (step, batch) == (2, 0) else 1
            program.span("dataloader", "fetch", 100, epoch=epoch, step=step)
            program.span("compute", "forward", 100, epoch=epoch, step=step, training=1)
            if (step, batch) != (3, 0):
                program.span("compute", "backward", 100, epoch=int(step >= 2), step=step)
        program.span("compute", "step", 100, epoch=int(step >= 2), step=step)
    program.write(tmp_path)
    report = reports.load(tmp_path)
    assert numbers(report) == [(0, 0), (0, 1), (1, 2), (1, 3)]
    assert [step["dur_ns"] // US for step in report.steps] == [1000, 1000, 1000, 900]
    assert total(report, "evaluation_ns", "epochs") == 0


def test_an_update_ends_a_step_whatever_its_number(tmp_path: Path) -> None:
    """A program that sets its numbers once, or epochs of one step without a number of their own."""
    program = Program()
    for _ in range(3):
        program.span("dataloader", "fetch", 100, step=70)
        program.span("compute", "backward", 400, step=70)
        program.span("compute", "step", 100, step=70)
    program.write(tmp_path)
    report = reports.load(tmp_path)
    assert [step["dur_ns"] // US for step in report.steps] == [600, 600, 600]


def test_inference_is_no_training(tmp_path: Path) -> None:
    program = Program()
    for _ in range(5):
        program.span("dataloader", "fetch", 100)
        program.span("compute", "forward", 400, training=0)
    program.write(tmp_path)
    assert reports.load(tmp_path).steps.rows == []


def test_evaluation_before_training(tmp_path: Path) -> None:
    program = Program()
    program.span("dataloader", "fetch", 100)
    program.span("compute", "forward", 400, training=0)
    for step in range(3):
        program.span("dataloader", "fetch", 100, epoch=0, step=step)
        program.span("compute", "backward", 400, epoch=0, step=step)
    program.write(tmp_path)
    report = reports.load(tmp_path)
    assert numbers(report) == [(0, 0), (0, 1), (0, 2)]
    (epoch,) = report.epochs
    assert (epoch["evaluation_ns"], epoch["dur_ns"]) == (500 * US, 2000 * US)
    closes(report)


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Everything above in one job, each in a file of its own."""
    dlio_1().write(tmp_path)
    dlio_now(pid=101).write(tmp_path)
    program = Program(pid=102)
    evaluates_now_and_then(program, marked=True)
    program.write(tmp_path)
    training(pid=103).write(tmp_path)
    worker = Program(pid=300, ppid=103)
    worker.span("data", "item", 400, at=200)
    worker.write(tmp_path)
    return tmp_path


def test_blocks_give_the_same_steps(mixed: Path) -> None:
    files = sorted(mixed.glob("*.pfw"))
    alone = reports.load(mixed, threads=1)
    with Store(1) as store:
        for first in range(len(files)):
            with Store(1) as part:
                part.add_block(files[first : first + 1], first, files)
                store.load(part.export())
        rows = store.tables()
    for name, found in rows.items():
        if name != "overview":  # says what is not traced only in the end
            assert found == alone.table(name).rows, name
    closes(alone)

"""What a run is bound by, of runs whose every moment was arranged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.synthetic_program import Program, training

from dftracer import reports
from dftracer.reports.bounds import bound
from dftracer.reports.render.page import page
from dftracer.reports.render.summary import summarise

S = 1_000_000  # microseconds


def transfers(place: Path, name: str) -> None:
    """6 s of transfers, 1 s of opening, 3 s on the processor."""
    program = Program()
    program.span("POSIX", "open", S, file="/d/a", ret=3)
    for _ in range(6):
        program.read("/d/a", 1 << 30, S, name=name)
    program.now += 3 * S
    program.write(place, cpu_us=10 * S)


def both_at_once(place: Path) -> None:
    """A read of 6 s and, on another thread, a write of 8 s that begins 2 s before its end: no
    moment counts twice, and reading has it first."""
    program = Program()
    program.read("/d/a", 1 << 30, 6 * S)
    program.read("/d/b", 1 << 30, 8 * S, at=4 * S, name="write", tid=7)
    program.now = 12 * S
    program.write(place)


def metadata(place: Path) -> None:
    program = Program()
    for number in range(8):
        program.span("POSIX", "stat", S, file=f"/d/{number}")
    program.now += 2 * S
    program.write(place)


def computes(place: Path) -> None:
    program = Program()
    program.read("/d/a", 1 << 20, 2 * S)
    program.now += 8 * S
    program.write(place, cpu_us=10 * S)


def untraced(place: Path) -> None:
    program = Program()
    program.read("/d/a", 1 << 20, 2 * S)
    program.now += 8 * S
    program.write(place, cpu_us=2 * S)


def sleeps(place: Path) -> None:
    program = Program()
    program.read("/d/a", 1 << 20, 2 * S)
    program.now += 8 * S
    program.write(place, cpu_us=S // 100)


def waits_for_a_processor(place: Path) -> None:
    """A second of work that took eight, because others had the processors."""
    program = Program()
    program.read("/d/a", 1 << 20, 2 * S)
    program.now += 8 * S
    program.write(place, cpu_us=5 * S // 10, cpu_wait_us=7 * S)


def sleeps_and_waits(place: Path) -> None:
    """It sleeps most of the time; when it wakes up, it waits for a processor."""
    program = Program()
    program.read("/d/a", 1 << 20, S)
    program.now += 9 * S
    program.write(place, cpu_us=S // 100, cpu_wait_us=2 * S)


def waits_on_a_socket(place: Path) -> None:
    program = Program()
    program.read("socket:[7]", 100, 7 * S)
    program.read("/d/a", 1 << 20, 3 * S)
    program.write(place)


def waits_for_locks(place: Path) -> None:
    program = Program()
    program.span("POSIX", "flock", 7 * S, file="/d/lock", ret=0)
    program.read("/d/a", 1 << 20, 3 * S)
    program.write(place)


def of_a_training(place: Path, **how: int) -> None:
    training(**how).write(place)


def writes_between_steps(place: Path) -> None:
    """Steps of 10 ms of compute, and 30 ms of which 20 are a write."""
    program = Program()
    for step in range(10):
        told = {"epoch": 0, "step": step}
        program.span("dataloader", "fetch", 100, **told)
        program.span("compute", "backward", 10_000, **told)
        program.read("/d/log", 100, 20_000, name="write")
        program.now += 10_000
    program.span("compute", "backward", 1, epoch=0, step=9)
    program.write(place)


def starts_slowly(place: Path, seconds: int) -> None:
    program = Program(begin=-seconds * S)
    for step in range(10):
        program.span("compute", "backward", 100_000, epoch=0, step=step)
    program.write(place)


WRITES = {"name": "write"}
RUNS: dict[str, tuple[Callable[..., None], dict[str, object], str, str]] = {
    "reads": (transfers, {"name": "read"}, "reading", "reading 60 %, compute 30 %, metadata 10 %"),
    "writes": (transfers, WRITES, "writing", "writing 60 %, compute 30 %, metadata 10 %"),
    "syncs": (transfers, {"name": "fsync"}, "writing", "writing 60 %"),
    "both": (both_at_once, {}, "reading", "reading 50 %, writing 50 %, of the 12 s"),
    "metadata": (metadata, {}, "metadata", "metadata 80 %"),
    "computes": (computes, {}, "compute", "compute 80 %, reading 20 %"),
    "untraced": (untraced, {}, "work outside traced calls", "work outside traced calls 80 %"),
    "sleeps": (sleeps, {}, "idle", "idle 80 %, reading 20 %"),
    "socket": (
        waits_on_a_socket,
        {},
        "waiting for another process",
        "waiting for another process 70 %, reading 30 %",
    ),
    "locks": (waits_for_locks, {}, "waiting for another process", "process 70 %, reading 30 %"),
    "training": (of_a_training, {}, "compute", "compute 98 %"),
    "waits": (of_a_training, {"fetch": 30_000}, "waiting for data", "waiting for data 75 %"),
    "talks": (of_a_training, {"comm": 30_000}, "communication", "communication 75 %"),
    "logs": (writes_between_steps, {}, "writing", "writing 50 %, compute 25 %"),
    "processor": (
        waits_for_a_processor,
        {},
        "waiting for a processor",
        "waiting for a processor 70 %, reading 20 %",
    ),
    "sleeps and waits": (sleeps_and_waits, {}, "idle", "idle 70 %, waiting for a processor 20 %"),
    "start": (
        starts_slowly,
        {"seconds": 31},
        "compute",
        "first to the last step of the training process, after 31 s of start-up",
    ),
    "short start": (starts_slowly, {"seconds": 0}, "compute", "step of the training process"),
}


@pytest.mark.parametrize("run", RUNS)
def test_a_run_is_bound_by_what_it_did_most(tmp_path: Path, run: str) -> None:
    make, how, word, line = RUNS[run]
    make(tmp_path, **how)
    report = reports.load(tmp_path)
    assert report.overview.column("bound") == [word]
    told = bound(report.tables)
    assert told is not None
    assert line in told[1]
    text = " ".join(" ".join(summarise(report)).split())
    assert f"bound by {word}" in text
    assert f"Bound by {word}" in page(report)


def test_nothing_is_said_of_a_trace_without_time(tmp_path: Path) -> None:
    program = Program()
    program.span("POSIX", "stat", 0, file="/d/a")
    program.write(tmp_path)
    report = reports.load(tmp_path)
    assert report.overview.column("bound") == [None]
    assert "bound by" not in "\n".join(summarise(report))


def test_reading_and_writing_are_parts_of_io(tmp_path: Path) -> None:
    both_at_once(tmp_path)
    row = reports.load(tmp_path).overview.dicts()[0]
    # 0 to 6 s reading, 6 to 12 s writing; the write alone took 8 s.
    assert row["io_ns"] == 12 * S * 1000
    assert row["reading_ns"] == 6 * S * 1000
    assert row["writing_ns"] == 6 * S * 1000

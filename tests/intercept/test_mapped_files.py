"""Mapped files: page faults by file, thread and time, and how much of a mapping was touched, held
against what the kernel counts for the program itself."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import intercept, traces

MIB = 1 << 20
SIZE = 64 * MIB


def need_perf() -> None:
    try:
        level = int(Path("/proc/sys/kernel/perf_event_paranoid").read_text())
    except OSError:
        pytest.skip("the kernel samples no page faults (no perf_event_paranoid)")
    if level > 2 and os.geteuid() != 0:
        pytest.skip(f"the kernel permits no sampling of page faults (perf_event_paranoid {level})")


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Path]:
    """In memory, where a fault brings few pages: many faults, and no disk."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as name:
        place = Path(name) / "work"
        place.mkdir()
        (place / "data").write_bytes(os.urandom(MIB) * (SIZE // MIB))
        yield place


def run(work: Path, how: str, mode: str = intercept.PRELOAD, **more: object) -> intercept.Run:
    program = intercept.program("mapped", mode, "-pthread")
    return intercept.traced(program, work / "data", how, mode=mode, cwd=work, **more)  # type: ignore[arg-type]


def of_maps(process: intercept.Process, name: str) -> list[traces.Record]:
    """Its records about mappings, each on the file."""
    paths = intercept.hashes(process.trace)
    found = [r for r in process.trace.recorded if r["cat"] == "MMAP" and r["name"] == name]
    for record in found:
        assert paths[record["args"]["fhash"]].endswith("/work/data")
    return found


def touched(process: intercept.Process) -> int:
    return sum(record["args"]["touched"] for record in of_maps(process, "touched"))


def faults(process: intercept.Process) -> int:
    return sum(record["args"]["faults"] for record in of_maps(process, "page_faults"))


def said(run: intercept.Run, key: str) -> int:
    return next(int(line.split()[1]) for line in run.result.stdout.splitlines() if key in line)


def check_faults(process: intercept.Process, counted: int) -> None:
    """What was recorded is what the kernel counted, but for a few pages that are not the file's."""
    found = faults(process)
    unseen = sum(r["args"].get("unseen", 0) for r in of_maps(process, "page_faults"))
    assert counted - 64 <= found + unseen <= counted + unseen
    for record in of_maps(process, "page_faults"):
        assert 0 <= record["args"]["offset"] < SIZE
        assert 0 <= record["args"]["last_offset"] < SIZE


@intercept.IN_EACH_MODE
def test_every_page_fault_on_a_mapped_file_is_recorded(work: Path, mode: str) -> None:
    need_perf()
    done = run(work, "all", mode)
    check_faults(done.one, said(done, "faults"))
    first = min(of_maps(done.one, "page_faults"), key=lambda record: record["ts"])
    assert first["args"]["offset"] == 0


@intercept.IN_EACH_MODE
def test_what_was_touched_is_known_at_the_end(work: Path, mode: str) -> None:
    assert touched(run(work, "all", mode).one) == SIZE


def test_a_few_pages_are_not_the_whole_file(work: Path) -> None:
    found = run(work, "some").one
    assert 4 * 4096 <= touched(found) < SIZE
    (record,) = of_maps(found, "touched")
    assert record["args"]["length"] == SIZE


def test_threads_have_faults_of_their_own(work: Path) -> None:
    need_perf()
    done = run(work, "threads")
    records = of_maps(done.one, "page_faults")
    threads = {record["tid"] % (1 << 22) for record in records}
    assert done.one.pid not in threads
    assert 1 <= len(threads) <= 4
    assert faults(done.one) <= said(done, "all")


def test_a_child_has_the_faults_that_it_makes(work: Path) -> None:
    need_perf()
    done = run(work, "child")
    pids = {process.pid for process in done.processes}
    child = next(process for process in done.processes if process.ppid in pids)
    assert touched(child) == SIZE
    assert faults(child) > 0
    parent = next(process for process in done.processes if process is not child)
    assert faults(parent) == 0


def test_program_that_closes_every_descriptor_keeps_its_faults(work: Path) -> None:
    need_perf()
    done = run(work, "close")
    check_faults(done.one, said(done, "faults"))


def test_a_part_that_was_unmapped_counts_once(work: Path) -> None:
    found = of_maps(run(work, "hole").one, "touched")
    # The kernel brings neighbors of the last page that was touched.
    assert SIZE // 2 <= sum(record["args"]["touched"] for record in found) < SIZE // 2 + MIB
    assert sum(record["args"]["length"] for record in found) == SIZE


def test_stores_into_a_mapping_are_touches(work: Path) -> None:
    assert touched(run(work, "write").one) >= SIZE // 2


def test_exec_keeps_what_was_touched(work: Path) -> None:
    found = run(work, "exec").processes
    assert touched(found[0]) == SIZE


def test_process_whose_first_thread_has_ended_ends(work: Path) -> None:
    """The tracer's thread watches for page faults, but does not keep the process alive."""
    done = run(work, "late")
    assert touched(done.one) == SIZE


def test_killed_process_keeps_its_page_faults(work: Path) -> None:
    need_perf()
    done = run(work, "killed", expect=-9, ended=False)
    assert 0 < faults(done.one) <= said(done, "faults")


def test_switch_turns_page_faults_off(work: Path) -> None:
    done = run(work, "all", env={"DFTRACER_PAGE_FAULTS": "0"})
    assert [r for r in done.one.trace.recorded if r["cat"] == "MMAP"] == []


def test_results_are_those_of_the_bare_program(work: Path) -> None:
    """Nor does a program that maps nothing get a thread."""
    program = intercept.program("mapped", intercept.PRELOAD, "-pthread")
    for how in ("all", "some", "threads", "write", "hole"):
        done = intercept.traced(program, work / "data", how, cwd=work, out=work / how)
        assert done.result.stdout.startswith(("faults", "all"))
        assert done.one.end.get("lost", 0) == 0

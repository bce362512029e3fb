"""The gap meter: bytes that went through intercepted calls against what the kernel counted; and
each byte once, whether or not a buffer of libc lies between."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import intercept

BYTES = 8 << 20
READS = ("read", "pread", "readv", "preadv", "fread", "fgetc", "fgets", "getline")
WRITES = ("write", "pwrite", "writev", "pwritev", "fwrite", "fputs", "fprintf", "putc", "dprintf")
BOTH = ("sendfile", "copy_file_range")
RECORDED = ("read", "write", "fread", "fwrite", "sendfile")
SIXTEENTH = ("fgetc", "putc")  # by single bytes, which are many events


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    work = tmp_path / "work"
    work.mkdir()
    (work / "in").write_bytes((b"x" * 63 + b"\n") * (BYTES // 64))
    yield work
    shutil.rmtree(work)


def ends(place: Path, mode: str, way: str, directories: str) -> dict[str, int]:
    program = intercept.program("cov_bytes", mode, *intercept.ODD)
    env = {"DFTRACER_DATA_DIR": directories}
    run = intercept.traced(program, way, mode=mode, cwd=place, env=env)
    return run.one.end


@intercept.IN_EACH_MODE
@pytest.mark.parametrize(
    ("way", "directories"),
    # A hundred thousand events say no more than these.
    [*((way, "seen") for way in [*READS, *WRITES, *BOTH]), *((way, "all") for way in RECORDED)],
)
def test_bytes_seen_are_bytes_moved(place: Path, mode: str, way: str, directories: str) -> None:
    """Whether a call is recorded or filtered makes no difference."""
    end = ends(place, mode, way, directories)
    moved = BYTES // 16 if way in SIXTEENTH else BYTES
    if way in READS or way in BOTH:
        assert end["read_seen"] == moved
        # The kernel's number has the loader's share, and what is read ahead into a buffer.
        assert abs(end["read_total"] - moved) <= max(moved // 1000, 8192), end
    else:
        assert end["read_seen"] == 0
        assert end["read_total"] <= 8192, end
    if way in WRITES or way in BOTH:
        assert end["write_seen"] == moved
        # A buffer that exit() writes may come after the count.
        assert abs(end["write_total"] - moved) <= max(moved // 1000, 8192), end
    else:
        assert end["write_seen"] == 0
        assert end["write_total"] <= 100, end


@intercept.IN_EACH_MODE
@pytest.mark.parametrize("way", ["inlined getc", "fgetws", "fputws"])
def test_bytes_that_bypass_the_calls_are_counted_with_the_buffer(
    place: Path, mode: str, way: str
) -> None:
    """Characters that inlined code takes from a buffer; wide characters."""
    end = ends(place, mode, way, "seen")
    what = "read" if "get" in way else "write"
    assert abs(end[f"{what}_seen"] - BYTES) <= 8192, end
    assert abs(end[f"{what}_total"] - BYTES) <= 8192, end


@intercept.IN_EACH_MODE
def test_what_was_not_seen_shows(place: Path, mode: str) -> None:
    end = ends(place, mode, "unseen", "all")
    assert end["write_seen"] == 0
    assert abs(end["write_total"] - BYTES) <= BYTES // 1000


@intercept.IN_EACH_MODE
def test_mapped_bytes_are_not_read(place: Path, mode: str) -> None:
    end = ends(place, mode, "map", "all")
    assert end["read_seen"] == 0
    assert end["read_total"] <= 8192


@intercept.IN_EACH_MODE
def test_totals_of_a_process_that_waited_hold_ended_threads_and_no_children(
    tmp_path: Path, mode: str
) -> None:
    """Threads that end before and after a fork; a child whose bytes the kernel adds to ours."""
    work = tmp_path / "work"
    work.mkdir()
    program = intercept.program("cov_gap", mode, "-pthread")
    run = intercept.traced(program, mode=mode, cwd=work, env={"DFTRACER_DATA_DIR": "all"})
    pids = {process.pid for process in run.processes}
    (own,) = (process for process in run.processes if process.ppid not in pids)
    (child,) = (process for process in run.processes if process is not own)
    # Two threads before, the main thread, two threads after: 100,000 bytes each.
    assert own.end["write_seen"] == 500_000
    assert own.end["write_total"] == 500_000
    assert child.end["write_seen"] == child.end["write_total"] == 200_000

"""SIGKILL at any instant: the file is a valid prefix; recovery loses and doubles nothing."""

from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path

import pytest
from support import faults
from support.faults import left_in, program, recover
from support.limits import HANG
from support.run import environment, run

KILLS = 25  # in each of the tests below, of which there are nine


def kill_at_random(
    directory: Path, seed: int, threads: int, size: int, pause: int, **env: str
) -> int:
    """One run, one death, one recovery. Returns how many events were saved."""
    trace = directory / "t.pfw"
    counted = directory.with_suffix(".counters")
    process = subprocess.Popen(
        [program("workers"), trace, counted, *map(str, (threads, size, 0, pause)), "forever"],
        env=environment(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    # Every fourth is killed at some time of its start; the others once they record, however slow
    # the machine is.
    if seed % 4 != 0:
        deadline = time.monotonic() + HANG
        while sum(faults.counters(counted)) == 0 and time.monotonic() < deadline:
            time.sleep(0.0005)
    time.sleep(random.Random(seed).uniform(0, 0.012))
    faults.kill(process)
    counts = faults.counters(counted)
    before = left_in(directory, whole=False)
    for who, numbers in before.numbers.items():
        assert len(set(numbers)) == len(numbers), f"of {who}, some are there twice before recovery"
    found = recover(directory) if directory.exists() else None
    after = left_in(directory)
    faults.assert_committed(after, counts)
    for who, numbers in before.numbers.items():
        assert set(numbers) <= set(after.numbers[who])
    faults.nothing_hidden(directory, unborn=True)
    if found is not None and found.recovered:
        assert recover(directory).spools == 0
    return after.total()


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("part", range(3))
def test_short_events(tmp_path: Path, part: int) -> None:
    saved = sum(
        kill_at_random(tmp_path / str(n), part * 1000 + n, threads=3, size=0, pause=400)
        for n in range(KILLS)
    )
    assert saved > 0


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("part", range(3))
def test_long_events_fill_chunk_after_chunk(tmp_path: Path, part: int) -> None:
    saved = sum(
        kill_at_random(tmp_path / str(n), part * 1000 + n, threads=4, size=1200, pause=2000)
        for n in range(KILLS)
    )
    assert saved > 0


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("part", range(2))
def test_a_block_for_every_chunk(tmp_path: Path, part: int) -> None:
    saved = sum(
        kill_at_random(
            tmp_path / str(n),
            part * 1000 + n,
            threads=2,
            size=3000,
            pause=3000,
            DFTRACER_WRITE_BUFFER_SIZE="0",
        )
        for n in range(KILLS)
    )
    assert saved > 0


def test_uncompressed(tmp_path: Path) -> None:
    saved = sum(
        kill_at_random(
            tmp_path / str(n),
            n,
            threads=2,
            size=1200,
            pause=4000,
            DFTRACER_TRACE_COMPRESSION="0",
        )
        for n in range(KILLS)
    )
    assert saved > 0


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("part", range(2))
def test_at_every_system_call_of_a_short_run(tmp_path: Path, part: int) -> None:
    """From the start through the drains of a full spool to the end of the process."""
    number = part + 1
    while True:
        directory = tmp_path / str(number)
        counted = tmp_path / f"{number}.counters"
        words = (program("workers"), directory / "t.pfw", counted, 1, 1000, 150, 0, "join")
        done = run(program("killat"), number, "ftruncate", *words, expect=None)
        if done.rc == 2:
            pytest.skip("ptrace is not permitted here")
        before = left_in(directory, whole=False)
        if directory.exists():
            recover(directory)
        after = left_in(directory)
        faults.assert_committed(after, faults.counters(counted))
        assert before.total() <= after.total()
        faults.nothing_hidden(directory, unborn=True)
        if done.rc != 0:
            assert done.rc == 1, "it did not end well by itself"
            assert after.total() == 150
            break
        number += 2
    assert number > 50, "the program made hardly any system calls"

"""Threads that come, go, are cancelled, are interrupted; and a program's very last moments."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support import faults
from support.build import command, prefix
from support.faults import PROGRAMS, assert_exactly, left_in, program, recover
from support.run import run


def threads(tmp_path: Path, *words: str | int | Path) -> faults.Left:
    run(program("threads"), tmp_path / "d" / "t.pfw", *words)
    faults.nothing_hidden(tmp_path / "d")
    left = left_in(tmp_path / "d")
    assert left.lost == 0
    assert len(left.files) == 1
    return left


def test_a_thousand_threads(tmp_path: Path) -> None:
    left = threads(tmp_path, "waves", 1000, 100)
    assert_exactly(left, dict.fromkeys(range(1000), 100))


def test_two_hundred_threads_alive_at_once(tmp_path: Path) -> None:
    left = threads(tmp_path, "alive", 200, 300)
    assert_exactly(left, dict.fromkeys(range(200), 300))


def test_a_thousand_threads_alive_at_once(tmp_path: Path) -> None:
    left = threads(tmp_path, "alive", 1000, 20)
    assert_exactly(left, dict.fromkeys(range(1000), 20))


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("how", ["cancel", "cancel_now"])
def test_cancelled_threads(tmp_path: Path, how: str) -> None:
    counted = tmp_path / "counters"
    left = threads(tmp_path, how, 20, 0, counted)
    faults.assert_committed(left, faults.counters(counted))


def test_destructors_of_thread_specific_data(tmp_path: Path) -> None:
    left = threads(tmp_path, "keys", 50, 20)
    wanted = dict.fromkeys(range(50), 20)
    wanted.update(dict.fromkeys(range(100000, 100050), 1))
    wanted.update(dict.fromkeys(range(200000, 200050), 4))
    assert_exactly(left, wanted)


def test_exit_handlers_and_destructors(tmp_path: Path) -> None:
    run(program("endings"), tmp_path / "d" / "t.pfw")
    faults.nothing_hidden(tmp_path / "d")
    assert_exactly(left_in(tmp_path / "d"), dict.fromkeys(range(6), 1))


def test_exit_handlers_after_finalize(tmp_path: Path) -> None:
    run(program("endings"), tmp_path / "d" / "t.pfw", "finalize")
    faults.nothing_hidden(tmp_path / "d")
    assert_exactly(left_in(tmp_path / "d"), {0: 1})


@pytest.mark.parametrize("order", ["before", "after"])
def test_end_of_another_library(tmp_path: Path, order: str) -> None:
    """A library whose end comes after ours: what it records is kept for whoever reads."""
    library = tmp_path / "libend.so"
    command("cc", "-shared", "-fPIC", "-o", library, PROGRAMS / "library_end.c")
    ours = ["-ldftracer_core"] if order == "after" else []
    tree = prefix()
    made = tmp_path / "endings"
    words: list[str | Path] = ["cc", "-DWITH_LIBRARY", f"-I{tree}/include", "-Wl,--no-as-needed"]
    for place in (tmp_path, tree / "lib"):
        words += [f"-L{place}", f"-Wl,-rpath,{place}"]
    words += [PROGRAMS / "endings.c", "-o", made, *ours, "-lend", "-ldftracer_core"]
    command(*words)
    run(made, tmp_path / "d" / "t.pfw")
    recover(tmp_path / "d")
    faults.nothing_hidden(tmp_path / "d")
    assert_exactly(left_in(tmp_path / "d"), dict.fromkeys(range(7), 1))


def test_a_library_that_ends_after_python_leaves_no_second_trace(tmp_path: Path) -> None:
    """PyTorch's closes pipes then: the process was said to have ended suddenly."""
    library = tmp_path / "libclose.so"
    command("cc", "-shared", "-fPIC", "-o", library, PROGRAMS / "library_close.c")
    words = f"""
import ctypes
from dftracer.python import dftracer
dftracer.initialize_log({str(tmp_path / "d" / "t.pfw")!r}, "all", -1)
ctypes.CDLL({str(library)!r})
"""
    done = run(sys.executable, "-c", words, env={"DFTRACER_DISABLE_IO": "0"}, stderr=None)
    assert done.stdout == "closed\n"
    faults.nothing_hidden(tmp_path / "d")
    assert len(left_in(tmp_path / "d").files) == 1


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("microseconds", [1000, 300, 100])
def test_handlers_that_record(tmp_path: Path, microseconds: int) -> None:
    words = (tmp_path / "d" / "t.pfw", "plain", 200000, microseconds)
    _, events, handled, _, _ = map(int, run(program("handlers"), *words).stdout.split())
    assert events == 200000
    assert handled > 0
    left = left_in(tmp_path / "d")
    assert_exactly(left, {0: events, 1: handled})
    assert left.lost == 0


def test_handlers_that_jump_out(tmp_path: Path) -> None:
    """The event that a jump cuts off may be missing, and no other."""
    words = (tmp_path / "d" / "t.pfw", "jump", 100000, 150)
    numbers = run(program("handlers"), *words).stdout.split()
    attempts, done, handled, jumps, _ = map(int, numbers)
    assert jumps > 3
    left = left_in(tmp_path / "d")
    assert left.of(1) == list(range(handled))
    main = left.of(0)
    assert len(main) == len(set(main))
    assert set(main) <= set(range(attempts))
    assert done <= len(main) <= done + jumps
    faults.nothing_hidden(tmp_path / "d")

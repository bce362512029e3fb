"""Every way to die: the program behaves as if it were not traced, and its events are recovered."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from support import faults, traces
from support.faults import assert_committed, assert_exactly, left_in, program, recover, steps
from support.run import environment, run

SIGNALS = ["TERM", "INT", "SEGV", "ABRT", "XCPU", "BUS", "HUP", "QUIT", "FPE", "ILL", "KILL"]


def compare(tmp_path: Path, *words: str) -> faults.Ended:
    """Runs it with tracing off and on: status, core dump and output must be the same."""
    seen = []
    for enable in (False, True):
        cwd = tmp_path / ("traced" if enable else "untraced")
        cwd.mkdir()
        # Without a trace, init says -1; with one it says 0. Everything else is compared.
        ended = faults.run_raw(program("steps"), "init=d/t.pfw", *words, cwd=cwd, enable=enable)
        first = b"init 0\n" if enable else b"init -1\n"
        assert ended.stdout.startswith(first)
        seen.append(faults.Ended(ended.status, ended.stdout.removeprefix(first), ended.stderr))
    untraced, traced = seen
    assert traced == untraced
    assert traced.stderr == b""
    return traced


def finish(tmp_path: Path, wanted: dict[int, int]) -> None:
    directory = tmp_path / "traced" / "d"
    recover(directory)
    assert_exactly(left_in(directory), wanted)
    faults.nothing_hidden(directory)


@pytest.mark.parametrize("name", SIGNALS)
def test_signal_with_its_default_action(tmp_path: Path, name: str) -> None:
    ended = compare(
        tmp_path, "limit=core:none", "log=300", "dispositions", f"raise={name}", "say=no"
    )
    assert ended.signal == signal.Signals[f"SIG{name}"]
    assert ended.stdout == b"dispositions 0\n"
    finish(tmp_path, {0: 300})


def test_core_is_dumped_as_without_us(tmp_path: Path) -> None:
    ended = compare(tmp_path, "limit=core:none", "big=300", "abort")
    if not ended.core:
        pytest.skip("this system dumps no cores, with or without us")
    finish(tmp_path, {0: 300})


@pytest.mark.parametrize("crash", ["crash=0", "past_end=file"])
def test_a_real_fault_of_the_processor(tmp_path: Path, crash: str) -> None:
    ended = compare(tmp_path, "log=300", crash, "say=no")
    assert ended.signal in (signal.SIGSEGV, signal.SIGBUS)
    finish(tmp_path, {0: 300})


@pytest.mark.parametrize("name", [name for name in SIGNALS if name != "KILL"])
@pytest.mark.parametrize("order", ["before", "after"])
def test_the_programs_own_handler(tmp_path: Path, name: str, order: str) -> None:
    seen = []
    for enable in (False, True):
        cwd = tmp_path / str(enable)
        cwd.mkdir()
        install = [f"handler={name}:exit"]
        words = [*install, "init=d/t.pfw"] if order == "before" else ["init=d/t.pfw", *install]
        ended = faults.run_raw(
            program("steps"),
            *words,
            "log=100",
            "dispositions",
            f"raise={name}",
            "say=no",
            cwd=cwd,
            enable=enable,
        )
        seen.append((ended.status, ended.stdout.replace(b"init -1", b"init 0"), ended.stderr))
    assert seen[0] == seen[1]
    assert os.waitstatus_to_exitcode(seen[1][0]) == 42
    assert b"\nhandler %d\n" % signal.Signals[f"SIG{name}"] in seen[1][1]
    recover(tmp_path / "True" / "d")
    assert_exactly(left_in(tmp_path / "True" / "d"), {0: 100})


def test_a_handler_that_returns_and_an_ignored_signal(tmp_path: Path) -> None:
    compare(
        tmp_path,
        "handler=USR1:return",
        "handler=TERM:ignore",
        "log=50",
        "raise=USR1",
        "raise=TERM",
        "log=50",
        "dispositions",
        "exit=5",
    )
    finish(tmp_path, {0: 100})


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        ("say=returns", 0),
        ("exit=6", 6),
        ("_exit=6", 6),
        ("quick_exit=6", 6),
        ("exit_group=6", 6),
        ("exec=exit 6", 6),
    ],
)
@pytest.mark.parametrize("amount", [7, 5000])
def test_leaving(tmp_path: Path, ending: str, status: int, amount: int) -> None:
    ended = compare(tmp_path, f"log={amount}", ending)
    assert os.waitstatus_to_exitcode(ended.status) == status
    if ending.startswith(("say", "exit=", "quick_exit")):
        # These run our end: nobody has to finish anything.
        faults.nothing_hidden(tmp_path / "traced" / "d")
        assert_exactly(left_in(tmp_path / "traced" / "d"), {0: amount})
    finish(tmp_path, {0: amount})


def test_abort(tmp_path: Path) -> None:
    assert compare(tmp_path, "log=400", "abort").signal == signal.SIGABRT
    finish(tmp_path, {0: 400})


def test_exec_into_a_program_that_runs_on(tmp_path: Path) -> None:
    """The image that recorded is gone although its pid and start time live."""
    process = subprocess.Popen(
        [program("steps"), "init=d/t.pfw", "log=500", "exec=echo replaced; exec sleep 1000"],
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"init 0\n"
        assert process.stdout.readline() == b"replaced\n"
        found = recover(tmp_path / "d")
        assert (found.recovered, found.alive) == (1, 0)
        assert_exactly(left_in(tmp_path / "d"), {0: 500})
        assert process.poll() is None
    finally:
        faults.kill(process)


@pytest.mark.parametrize("name", ["d/t.pfw", ""])
def test_exec_of_itself_twenty_times(tmp_path: Path, name: str) -> None:
    words = []
    for image in range(21):
        words += [f"init={name}", f"who={image}", f"log={40 + image}", "again"]
    env = {"DFTRACER_LOG_FILE": "d/t"}
    steps(*words[:-1], cwd=tmp_path, env=env)
    recover(tmp_path / "d")
    left = left_in(tmp_path / "d")
    assert_exactly(left, {image: 40 + image for image in range(21)})
    faults.nothing_hidden(tmp_path / "d")
    # One process to a reader, however many images it had.
    starts = [
        start
        for path in traces.files(tmp_path / "d")
        for start in traces.read(path, open_parents=True).named("start")
    ]
    assert len(starts) == 21
    assert len({start["args"]["proc"] for start in starts}) == 1
    if name:
        assert [path.name for path in left.files] == ["t.pfw.gz"]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("ending", ["exit", "return", "quick_exit", "_exit", "abort", "exec"])
def test_leaving_while_sixteen_threads_record(tmp_path: Path, ending: str) -> None:
    wanted = -signal.SIGABRT if ending == "abort" else 3
    for n in range(20 if ending == "exit" else 5):
        directory = tmp_path / str(n)
        counted = tmp_path / f"{n}.counters"
        words = (directory / "t.pfw", counted, 16, 100, 0, 15000, ending)
        run(program("workers"), *words, expect=wanted)
        recover(directory)
        assert_committed(left_in(directory), faults.counters(counted))
        faults.nothing_hidden(directory, unborn=True)


def test_finalize_while_sixteen_threads_record(tmp_path: Path) -> None:
    """What was recorded before it is in the file; what came after is not, and nothing breaks."""
    for n in range(10):
        directory = tmp_path / str(n)
        counted = tmp_path / f"{n}.counters"
        words = (directory / "t.pfw", counted, 16, 100, 0, 15000, "finalize")
        run(program("workers"), *words, expect=3)
        left = left_in(directory)
        faults.nothing_hidden(directory)
        for who in range(16):
            numbers = left.of(who)
            assert len(numbers) >= 50
            assert numbers == list(range(len(numbers)))


def test_exit_from_a_thread(tmp_path: Path) -> None:
    counted = tmp_path / "counters"
    words = (tmp_path / "d" / "t.pfw", counted, 4, 0, 2000, 0, "exit_from_thread")
    run(program("workers"), *words, expect=7)
    recover(tmp_path / "d")
    assert_committed(left_in(tmp_path / "d"), faults.counters(counted))
    assert faults.counters(counted)[0] == 2000


def test_main_thread_ends_before_the_others(tmp_path: Path) -> None:
    counted = tmp_path / "counters"
    words = (tmp_path / "d" / "t.pfw", counted, 4, 0, 20000, 100, "main_ends")
    run(program("workers"), *words)
    assert_exactly(left_in(tmp_path / "d"), dict.fromkeys(range(4), 20000))
    faults.nothing_hidden(tmp_path / "d")


def test_recover_while_only_other_threads_live(tmp_path: Path) -> None:
    """The process looks like a zombie then, and is none."""
    counted = tmp_path / "counters"
    process = subprocess.Popen(
        [program("workers"), tmp_path / "d" / "t.pfw", counted, "2", "0", "0", "3000", "main_ends"],
        env=environment(),
        stdin=subprocess.DEVNULL,
    )
    try:
        while len(counts := faults.counters(counted)) < 2 or min(counts) < 1000:
            assert process.poll() is None
        for _ in range(5):
            found = recover(tmp_path / "d")
            assert (found.spools, found.alive) == (1, 1)
    finally:
        faults.kill(process)
    recover(tmp_path / "d")
    assert_committed(left_in(tmp_path / "d"), faults.counters(counted))

"""Every way to start a process and to leave it: each has its file with its calls, its parent is
known, nothing is there twice and nothing is lost."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support import compare_runs, intercept
from support.compare_runs import assert_marks, marks, nothing_else, one_run, ppid
from support.processes import place, steps
from support.run import run

CHILDREN = ["fork", "_fork", "clone", "clone3"]
STARTED = ["vforkexec", "spawn", "spawnp", "system", "popen"]


# ---- Children that go on in the same program -----------------------------------------------------


@intercept.IN_EACH_MODE
@pytest.mark.parametrize("kind", CHILDREN)
@pytest.mark.parametrize("leave", ["exit=0", "_exit=3", "_Exit=3", "quick_exit=3"])
def test_child(tmp_path: Path, kind: str, leave: str, mode: str) -> None:
    done = steps(
        *(tmp_path, "who=parent", "marks=1000:50", f"{kind}{{", "who=child", "marks=1001:70"),
        *(leave, "}", "marks=1002:30"),
        mode=mode,
    )
    done.check({1000: 50, 1001: 70, 1002: 30})
    assert done.marks_of("parent") == {1000, 1002}
    assert done.marks_of("child") == {1001}
    assert len(done.processes) == 2


@intercept.IN_EACH_MODE
@pytest.mark.parametrize("kind", CHILDREN)
@pytest.mark.parametrize("amount", [10, 5000])
def test_child_that_is_killed_is_finished_by_its_parent(
    tmp_path: Path, kind: str, amount: int, mode: str
) -> None:
    done = steps(
        *(tmp_path, "who=parent", "marks=1000:5", f"{kind}{{", "who=child"),
        *(f"marks=1001:{amount}", "raise=9", "}", "marks=1002:5"),
        mode=mode,
    )
    done.check({1000: 5, 1001: amount, 1002: 5})
    assert done.marks_of("child") == {1001}


@intercept.IN_EACH_MODE
@pytest.mark.parametrize("kind", ["vfork", "vm"])
def test_child_that_shares_its_parents_memory(tmp_path: Path, kind: str, mode: str) -> None:
    """What it does is recorded once, and its parent goes on as if nothing had been."""
    words = ["who=parent"]
    wanted = {}
    for n in range(12):
        own, child = 1000 + 2 * n, 1001 + 2 * n
        words += [f"marks={own}:400", f"{kind}{{", f"marks={child}:600"]
        words += [*(["noexec"] if n % 2 else []), f"_exit={n + 1}", "}"]
        wanted.update({own: 400, child: 600})
    done = steps(tmp_path, *words, mode=mode)
    nothing_else(done.directory)
    statuses = [line for line in done.result.stdout.splitlines() if line.startswith("child")]
    assert statuses == [f"child {(n + 1) << 8}" for n in range(12)]
    assert_marks(marks(*done.processes), wanted)
    # The parent's are in its file, with its pid.
    assert set(range(1000, 1024, 2)) <= done.marks_of("parent")


@intercept.IN_EACH_MODE
@pytest.mark.parametrize("kind", ["vfork", "vm"])
def test_parent_ends_soon_after_such_a_child(tmp_path: Path, kind: str, mode: str) -> None:
    """Many short runs: whatever the child began must not be found half done."""
    words = ("marks=1000:400", f"{kind}{{", "marks=1001:600", "_exit=3", "}", "marks=1002:400")
    last = (f"{kind}{{", "marks=1003:5", "_exit=4", "}", "marks=1004:5")
    for n in range(20):
        place = tmp_path / str(n)
        place.mkdir()
        done = steps(place, *words, *last, mode=mode)
        nothing_else(done.directory)
        wanted = {1000: 400, 1001: 600, 1002: 400, 1003: 5, 1004: 5}
        assert_marks(marks(*done.processes), wanted)


@intercept.IN_EACH_MODE
@pytest.mark.parametrize("leave", ["exit=0", "_exit=0"])
def test_five_generations(tmp_path: Path, leave: str, mode: str) -> None:
    words = []
    for depth in range(6):
        words += [f"who={depth}", f"marks={1000 + depth}:20", *(["fork{"] if depth < 5 else [])]
    for depth in reversed(range(5)):
        words += [leave, "}", f"marks={1100 + depth}:10"]
    done = steps(tmp_path, *words, mode=mode)
    done.check(
        {**{1000 + depth: 20 for depth in range(6)}, **{1100 + depth: 10 for depth in range(5)}}
    )
    for depth in range(6):
        assert done.marks_of(str(depth)) == {1000 + depth} | ({1100 + depth} - {1105})
    parents = {name: parent for name, _, parent in done.people}
    for depth in range(1, 6):
        assert parents[str(depth)] == done.pid(str(depth - 1))


def test_child_that_does_nothing_leaves_no_file(tmp_path: Path) -> None:
    words = ("who=parent", "marks=1000:10", "fork{", "raise=9", "}", "marks=1001:10")
    done = steps(tmp_path, *words)
    done.check({1000: 10, 1001: 10})
    assert [process.pid for process in done.processes] == [done.pid("parent")]


@intercept.IN_EACH_MODE
def test_fork_calls_are_recorded(tmp_path: Path, mode: str) -> None:
    done = steps(tmp_path, "who=parent", "fork{", "who=child", "_exit=3", "}", mode=mode)
    (parent,) = done.files_of(done.pid("parent"))
    (child,) = done.files_of(done.pid("child"))
    assert [event.args["ret"] for event in parent.named("fork")] == [child.pid]
    waits = parent.named("waitpid")
    assert [event.args["ret"] for event in waits] == [child.pid]
    assert child.named("fork") == []
    assert len(child.named("_exit")) == 1


# ---- The daemon and others that outlive ----------------------------------------------------------


@intercept.IN_EACH_MODE
@pytest.mark.parametrize("leave", ["exit=0", "_exit=0"])
def test_daemon(tmp_path: Path, leave: str, mode: str) -> None:
    done = steps(
        *(tmp_path, "who=parent", "marks=1000:20", "daemon{", "who=daemon", "marks=1001:3000"),
        *(leave, "}", "marks=1002:20"),
        mode=mode,
    )
    nothing_else(done.directory)
    one_run(done.processes)
    assert_marks(marks(*done.processes), {1000: 20, 1001: 3000, 1002: 20})
    assert done.marks_of("parent") == {1000, 1002}
    assert done.marks_of("daemon") == {1001}
    # Its parent has left: the process that forked it, or the one that took it over.
    (daemon,) = done.files_of(done.pid("daemon"))
    (adopter,) = [parent for name, _, parent in done.people if name == "daemon"]
    between = {process.pid for process in done.processes} | {
        event.args["ret"] for process in done.processes for event in process.named("fork")
    }
    assert ppid(daemon) in between | {adopter}


@intercept.IN_EACH_MODE
def test_child_that_outlives_its_parent(tmp_path: Path, mode: str) -> None:
    done = steps(
        *(tmp_path, "who=main", "fork{", "who=middle", "marks=1000:10", "leave{", "who=late"),
        *("marks=1001:10", "}", "_exit=0", "}", "marks=1002:10"),
        mode=mode,
    )
    nothing_else(done.directory)
    assert_marks(marks(*done.processes), {1000: 10, 1001: 10, 1002: 10})
    assert done.marks_of("late") == {1001}


# ---- Children that become other programs ---------------------------------------------------------


@intercept.IN_EACH_MODE
@pytest.mark.parametrize("kind", STARTED)
@pytest.mark.parametrize("leave", ["exit=0", "_exit=4", "abort"])
def test_started_program(tmp_path: Path, kind: str, leave: str, mode: str) -> None:
    done = steps(
        *(tmp_path, "who=parent", "marks=1000:50", f"{kind}=who=child marks=1001:70 {leave}"),
        "marks=1002:50",
        mode=mode,
    )
    nothing_else(done.directory)
    one_run(done.processes)
    assert_marks(marks(*done.processes), {1000: 50, 1001: 70, 1002: 50})
    assert done.marks_of("parent") == {1000, 1002}
    assert done.marks_of("child") == {1001}
    # The shell of system and popen execs the program in its own place.
    for process in done.files_of(done.pid("child")):
        assert ppid(process) == done.pid("parent")


@intercept.IN_EACH_MODE
@pytest.mark.parametrize("times", [3, 100])
def test_exec_of_itself(tmp_path: Path, times: int, mode: str) -> None:
    done = steps(tmp_path, "who=me", f"again={times}:1000:10", mode=mode)
    nothing_else(done.directory)
    assert_marks(marks(*done.processes), {1000 + image: 10 for image in range(times + 1)})
    if mode == intercept.PRELOAD:
        # Only then it is known before the exec that the next program is traced as well.
        one_run(done.processes)
    # One process to a reader, whatever the number of its files.
    starts = [start for process in done.processes for start in compare_runs.starts(process)]
    assert len({start["args"]["proc"] for start in starts}) == 1
    assert {process.pid for process in done.processes} == {done.pid("me")}
    execs = [event for event in done.events if event.name == "execl"]
    assert len(execs) == times


@intercept.IN_EACH_MODE
def test_exec_that_fails_changes_nothing(tmp_path: Path, mode: str) -> None:
    done = steps(
        tmp_path, "who=me", "marks=1000:700", *["noexec"] * 5, "marks=1001:700", "noexec", mode=mode
    )
    done.check({1000: 700, 1001: 700})
    (me,) = done.processes
    assert [event.args["errno"] for event in me.named("execl")] == [2] * 6


@intercept.IN_EACH_MODE
def test_exec_after_fork_in_a_pipeline(tmp_path: Path, mode: str) -> None:
    words = ("who=parent", "fork{", "marks=1001:300", "exec=who=child marks=1002:300 exit=0", "}")
    done = steps(tmp_path, *words, "marks=1003:10", mode=mode)
    done.check({1001: 300, 1002: 300, 1003: 10})
    assert done.marks_of("child") == {1001, 1002}


@intercept.IN_EACH_MODE
def test_exec_by_another_thread(tmp_path: Path, mode: str) -> None:
    words = ("who=me", "marks=1000:300", "threadexec=who=me marks=1001:300 exit=0")
    # What a third thread does between the end of the trace and the exec is left for a reader; under
    # preload the next program is one.
    function = mode == intercept.FUNCTION
    done = steps(tmp_path, *words, mode=mode, recover=function)
    done.check({1000: 300, 1001: 300}, runs=function)
    assert {process.pid for process in done.processes} == {done.pid("me")}


@intercept.IN_EACH_MODE
def test_handlers_of_fork(tmp_path: Path, mode: str) -> None:
    """They make calls on both sides of it; the child's are in the child's file."""
    words = ("who=parent", "atfork=1000", "fork{", "who=child", "marks=1010:5", "_exit=0", "}")
    done = steps(tmp_path, *words, mode=mode)
    done.check({1000: 5, 1001: 5, 1002: 5, 1010: 5})
    assert done.marks_of("parent") == {1000, 1001}
    assert done.marks_of("child") == {1002, 1010}


def test_subprocesses_of_many_threads(tmp_path: Path) -> None:
    cwd, out = place(tmp_path)
    script = tmp_path / "script.py"
    script.write_text(
        "import os, subprocess, sys, threading\n"
        "def work(number):\n"
        "    for i in range(10):\n"
        "        words = [sys.argv[1], f'marks={1000 + 10 * number + i}:20']\n"
        "        subprocess.run(words, check=True)\n"
        "        os.pread(fd, 2000 + number, i)\n"
        "fd = os.open('data', os.O_RDONLY)\n"
        "threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
    )
    run(
        sys.executable,
        script,
        compare_runs.program("harm_steps"),
        cwd=cwd,
        env=intercept.settings(out),
    )
    nothing_else(out)
    found = intercept.read(out)
    one_run(found)
    wanted = {**{1000 + n: 20 for n in range(40)}, **{2000 + n: 10 for n in range(4)}}
    assert_marks(marks(*found), wanted)
    assert len(found) == 41

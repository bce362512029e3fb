"""Every way to start a process and to leave it: each has its file with its calls, its parent is
known, nothing is there twice and nothing is lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from support import faults, harm, intercept
from support.harm import DATA, assert_marks, marks, nothing_else, one_run, ppid
from support.intercept import PROGRAMS, Process, Run
from support.run import Result, environment, run

CHILDREN = ["fork", "_fork", "clone", "clone3"]
# By preload, and by changing the import tables of a running program.
WAYS = pytest.mark.parametrize("mode", intercept.MODES)
STARTED = ["vforkexec", "spawn", "spawnp", "system", "popen"]


@dataclass(frozen=True)
class Told(Run):
    """A run whose processes said who they are: name, pid and parent."""

    people: tuple[tuple[str, int, int], ...] = ()

    def pid(self, name: str) -> int:
        return {who: pid for who, pid, _ in self.people}[name]

    def files_of(self, pid: int) -> list[Process]:
        return [process for process in self.processes if process.pid == pid]

    def check(self, wanted: dict[int, int], *, runs: bool = False) -> None:
        """The marks are those, each process has one file, and its parent is the one that it saw.
        `runs`: a program that exec made may have begun a run of its own."""
        nothing_else(self.directory)
        if not runs:
            one_run(self.processes)
        assert_marks(marks(*self.processes), wanted)
        for name, pid, parent in self.people:
            found = self.files_of(pid)
            assert found, f"{name} has no file"
            assert {ppid(process) for process in found} == {parent}, name
            procs = {s["args"]["proc"] for process in found for s in harm.starts(process)}
            assert len(procs) == 1, f"{name} is {procs}"
        assert {pid for _, pid, _ in self.people} <= {process.pid for process in self.processes}

    def marks_of(self, name: str) -> set[int]:
        """Whose marks are in this process's files."""
        return set(marks(*self.files_of(self.pid(name))))


def told(result: Result, directory: Path, text: str, *, ended: bool = True) -> Told:
    lines = [line.split() for line in text.splitlines()]
    people = tuple(
        (words[0], int(words[1]), int(words[2]))
        for words in lines
        if len(words) == 3 and words[1].isdigit() and words[0] != "made"
    )
    return Told(result, directory, intercept.read(directory, ended=ended), people)


def place(tmp_path: Path) -> tuple[Path, Path]:
    cwd, out = tmp_path / "w", tmp_path / "d"
    cwd.mkdir()
    out.mkdir()
    (cwd / "data").write_bytes(DATA)
    return cwd, out


def steps(
    tmp_path: Path,
    *words: str,
    expect: int = 0,
    mode: str = intercept.PRELOAD,
    env: dict[str, str] | None = None,
    timeout: float = 60,
    recover: bool = False,
) -> Told:
    """programs/harm_steps.c, traced. `recover`: it was killed, and somebody finishes for it."""
    cwd, out = place(tmp_path)
    settings = {**harm.settings(out, mode), **(env or {})}
    done = run(
        harm.program("harm_steps"), *words, cwd=cwd, env=settings, expect=expect, timeout=timeout
    )
    if recover:
        faults.recover(out)
    return told(done, out, done.stdout)


# ---- Children that go on in the same program -----------------------------------------------------


@WAYS
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


@WAYS
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


@WAYS
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


@WAYS
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


@WAYS
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


@WAYS
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


@WAYS
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


@WAYS
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


@WAYS
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


@WAYS
@pytest.mark.parametrize("times", [3, 100])
def test_exec_of_itself(tmp_path: Path, times: int, mode: str) -> None:
    done = steps(tmp_path, "who=me", f"again={times}:1000:10", timeout=120, mode=mode)
    nothing_else(done.directory)
    assert_marks(marks(*done.processes), {1000 + image: 10 for image in range(times + 1)})
    if mode == intercept.PRELOAD:
        # Only then it is known before the exec that the next program is traced as well.
        one_run(done.processes)
    # One process to a reader, whatever the number of its files.
    starts = [start for process in done.processes for start in harm.starts(process)]
    assert len({start["args"]["proc"] for start in starts}) == 1
    assert {process.pid for process in done.processes} == {done.pid("me")}
    execs = [event for event in done.events if event.name == "execl"]
    assert len(execs) == times


@WAYS
def test_exec_that_fails_changes_nothing(tmp_path: Path, mode: str) -> None:
    done = steps(
        tmp_path, "who=me", "marks=1000:700", *["noexec"] * 5, "marks=1001:700", "noexec", mode=mode
    )
    done.check({1000: 700, 1001: 700})
    (me,) = done.processes
    assert [event.args["errno"] for event in me.named("execl")] == [2] * 6


@WAYS
def test_exec_after_fork_in_a_pipeline(tmp_path: Path, mode: str) -> None:
    words = ("who=parent", "fork{", "marks=1001:300", "exec=who=child marks=1002:300 exit=0", "}")
    done = steps(tmp_path, *words, "marks=1003:10", mode=mode)
    done.check({1001: 300, 1002: 300, 1003: 10})
    assert done.marks_of("child") == {1001, 1002}


@WAYS
def test_exec_by_another_thread(tmp_path: Path, mode: str) -> None:
    words = ("who=me", "marks=1000:300", "threadexec=who=me marks=1001:300 exit=0")
    # What a third thread does between the end of the trace and the exec is left for a reader; under
    # preload the next program is one.
    function = mode == intercept.FUNCTION
    done = steps(tmp_path, *words, mode=mode, recover=function)
    done.check({1000: 300, 1001: 300}, runs=function)
    assert {process.pid for process in done.processes} == {done.pid("me")}


@WAYS
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
    run(sys.executable, script, harm.program("harm_steps"), cwd=cwd, env=intercept.settings(out))
    nothing_else(out)
    found = intercept.read(out)
    one_run(found)
    wanted = {**{1000 + n: 20 for n in range(40)}, **{2000 + n: 10 for n in range(4)}}
    assert_marks(marks(*found), wanted)
    assert len(found) == 41


# ---- Leaving -------------------------------------------------------------------------------------


@WAYS
@pytest.mark.parametrize(
    ("leave", "status"),
    [
        ("exit=6", 6),
        ("_exit=6", 6),
        ("_Exit=6", 6),
        ("quick_exit=6", 6),
        ("thread_exit", 0),
        ("abort", -6),
        ("raise=15", -15),
        ("raise=9", -9),
    ],
)
@pytest.mark.parametrize("amount", [7, 5000])
def test_leaving(tmp_path: Path, leave: str, status: int, amount: int, mode: str) -> None:
    words = ("who=me", f"marks=1000:{amount}", leave)
    done = steps(tmp_path, *words, expect=status, recover=status < 0, mode=mode)
    done.check({1000: amount})
    assert len(done.processes) == 1


@pytest.mark.parametrize(
    ("how", "status"),
    [
        ("return", 0),
        ("exit", 3),
        ("_exit", 3),
        ("abort", -6),
        ("kill", -9),
        ("raise", 1),
        ("thread", 0),
        ("execv", 0),
        ("fork", 0),
        ("subprocess", 0),
    ],
)
def test_python_leaves(tmp_path: Path, how: str, status: int) -> None:
    cwd, out = place(tmp_path)
    run(
        *(sys.executable, PROGRAMS / "harm_leave.py", how),
        cwd=cwd,
        env=intercept.settings(out),
        expect=status,
        stderr=None,
    )
    if status < 0:
        faults.recover(out)
    nothing_else(out)
    found = intercept.read(out)
    one_run(found)
    if how == "execv":
        # The second image makes the same marks as the first.
        (process,) = found
        assert marks(process) == {1000: Counter(dict.fromkeys(range(500), 2))}
    elif how == "subprocess":
        have = marks(*found)
        assert have.pop(1001) == {0: 2}
        assert_marks(have, {1000: 500})
        started = [process for process in found if 1001 in marks(process)]
        assert len(started) == 2
        (parent,) = {ppid(process) for process in started}
        assert [process.pid for process in found if 1000 in marks(process)] == [parent]
    else:
        assert_marks(
            marks(*found), {1000: 500, **({1001: 100} if how in ("thread", "fork") else {})}
        )


# ---- Python's pools ------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", intercept.MODES)
@pytest.mark.parametrize("how", ["close", "with"])
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_pool(tmp_path: Path, method: str, how: str, mode: str) -> None:
    """`with` ends its workers by SIGTERM. In FUNCTION mode only the parent starts the trace."""
    cwd, out = place(tmp_path)
    words: list[str | Path] = [PROGRAMS / "harm_pool.py", method, how]
    env = {"DFTRACER_SUMMARY": "0", "DFTRACER_DISABLE_IO": "0"}
    if mode == intercept.PRELOAD:
        env = intercept.settings(out)
    else:
        words.append(out / "t.pfw")
    done = run(sys.executable, *words, cwd=cwd, env=env, timeout=120)
    said = json.loads(done.stdout)
    nothing_else(out)
    found = intercept.read(out)
    one_run(found)
    assert_marks(marks(*found), {**{1000 + n: 100 for n in range(4)}, 2000: 50})
    by_pid = {process.pid: process for process in found}
    assert len(by_pid) == len(found)
    assert len({pid for _, pid, _ in said["workers"]}) == 4
    for number, pid, parent in said["workers"]:
        assert set(marks(by_pid[pid])) == {1000 + number}
        assert ppid(by_pid[pid]) == parent
    assert set(marks(by_pid[said["pid"]])) == {2000}
    if mode == intercept.FUNCTION:
        assert by_pid[said["pid"]].trace.path.name == "t.pfw.gz"


@pytest.mark.parametrize("end", ["", "raise SystemExit(0)", "import os; os._exit(0)"])
def test_process_pool_executor_without_a_word_about_tracing(tmp_path: Path, end: str) -> None:
    cwd, out = place(tmp_path)
    script = tmp_path / "script.py"
    script.write_text(
        "import os\n"
        "from concurrent.futures import ProcessPoolExecutor\n"
        "import multiprocessing\n"
        "def work(number):\n"
        "    fd = os.open('data', os.O_RDONLY)\n"
        "    for i in range(100):\n"
        "        os.pread(fd, 1000 + number, i)\n"
        "    return number\n"
        "if __name__ == '__main__':\n"
        "    context = multiprocessing.get_context('spawn')\n"
        "    with ProcessPoolExecutor(2, mp_context=context) as pool:\n"
        "        assert list(pool.map(work, range(6))) == list(range(6))\n"
        f"    {end or 'pass'}\n"
    )
    run(sys.executable, script, cwd=cwd, env=intercept.settings(out))
    nothing_else(out)
    assert_marks(marks(*intercept.read(out)), {1000 + n: 100 for n in range(6)})


# ---- Trees ---------------------------------------------------------------------------------------


def test_five_deep_of_five_kinds(tmp_path: Path) -> None:
    """main -> multiprocessing's spawn -> fork -> subprocess -> bash -> cat"""
    cwd, out = place(tmp_path)
    settings = intercept.settings(out)
    done = run(sys.executable, PROGRAMS / "harm_nested.py", cwd=cwd, env=settings)
    tree = told(done, out, (cwd / "tree").read_text())
    names = ["main", "spawn", "fork", "python", "bash", "cat"]
    assert sorted(name for name, _, _ in tree.people) == sorted(names)
    tree.check({1000 + depth: 20 for depth in range(4)})
    parents = {name: parent for name, _, parent in tree.people}
    for above, below in zip(names, names[1:]):
        assert parents[below] == tree.pid(above)
    for depth, name in enumerate(names[:4]):
        assert tree.marks_of(name) == {1000 + depth}
    (cat,) = tree.files_of(tree.pid("cat"))
    assert harm.command(cat) == ["cat", "data"]
    read = [
        event.args["ret"]
        for event in cat.below(cwd)
        if event.path == str(cwd / "data") and event.name in ("read", "copy_file_range")
    ]
    assert sum(read) == len(DATA)
    assert (cwd / "copy").read_bytes() == DATA


BASH = """
set -e
exec 3>three 4>four
echo to three >&3
echo to four >&4
exec 3>&- 4<&-
cat <(echo one) <(echo two; echo three) | tee copy | wc -l
for i in 1 2 3 4 5; do (echo $i; exit $i) || echo status $?; done | sort -r | head -n 3
while read -r line; do echo "line: $line"; done < copy
text=$(< copy)
printf '%s|' $text; echo
cat > here <<< "a here string"
{ echo out; echo err >&2; } 2>&1 | cat
coproc cat; echo through >&${COPROC[1]}; exec {COPROC[1]}>&-; cat <&${COPROC[0]}; wait
( sleep 0.01 & wait ); echo done $?
trap 'echo bye' EXIT
ls | sort
"""


@pytest.mark.parametrize("setting", [{}, {"DFTRACER_DATA_DIR": "/nothing/there"},
                                     {"DFTRACER_DISABLE_IO": "1"}, {"DFTRACER_DATA_DIR": "all"},
                                     {"DFTRACER_DISABLE_STDIO": "1"}])  # fmt: skip
def test_bash_with_pipes_and_redirections(tmp_path: Path, setting: dict[str, str]) -> None:
    done = harm.both(tmp_path, "bash", "-c", BASH, traced_env=setting)
    if not setting:
        one_run(done.processes)
        # Through descriptor 3, which bash makes its standard output meanwhile.
        three = [event for event in done.events if event.path == str(tmp_path / "w" / "three")]
        assert {"open", "dup2", "printf", "putc", "fflush", "close"} <= {one.name for one in three}


@WAYS
def test_fork_while_eight_threads_make_calls(tmp_path: Path, mode: str) -> None:
    forks = 400
    done = steps(tmp_path, "threads=1000:8", f"forks=2000:{forks}", "stop", timeout=120, mode=mode)
    nothing_else(done.directory)
    lines = [line.split() for line in done.result.stdout.splitlines()]
    wanted = {int(who): int(count) for word, who, count in lines if word == "made"}
    assert len(wanted) == 8
    wanted.update({2000 + n: 3 for n in range(forks)})
    assert_marks(marks(*done.processes), wanted)
    one_run(done.processes)
    assert len(done.processes) == forks + 1
    for process in done.processes:
        kinds = {who // 1000 for who in marks(process)}
        assert len(kinds) == 1, f"{process.trace.path} holds calls of two processes"


# ---- Other places --------------------------------------------------------------------------------


def can(*words: str) -> bool:
    if shutil.which(words[0]) is None:
        return False
    done = subprocess.run(words, capture_output=True, check=False, timeout=60)
    return done.returncode == 0


def test_two_pid_namespaces_share_a_directory(tmp_path: Path) -> None:
    """The same pids in both, at the same time."""
    inside = ("unshare", "--pid", "--fork", "--mount-proc")
    if not can(*inside, "true"):
        pytest.skip("namespaces cannot be made here (needs root)")
    cwd, out = place(tmp_path)
    words = ("who=a", "marks={}:2000", "fork{{", "who=b", "marks={}:2000", "_exit=0", "}}")
    env = environment(intercept.settings(out))
    running = [
        subprocess.Popen(
            [*inside, harm.program("harm_steps"), *(word.format(1000 + n) for word in words)],
            cwd=cwd,
            env=env,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(3)
    ]
    try:
        said = [process.communicate(timeout=60)[0] for process in running]
    finally:
        for process in running:
            if process.poll() is None:
                process.kill()
                process.wait()
    assert [process.returncode for process in running] == [0, 0, 0]
    # Pids repeat: that is what this is about.
    assert len({line for text in said for line in text.splitlines() if line[0] == "a"}) == 1
    nothing_else(out)
    found = intercept.read(out)
    have = marks(*found)
    assert {who: sum(times.values()) for who, times in have.items()} == {
        1000 + n: 4000 for n in range(3)
    }
    assert all(set(times.values()) == {2} for times in have.values())
    for one in found:
        assert len(marks(one)) <= 1, f"{one.trace.path} holds two processes"


@pytest.mark.parametrize("amount", [10, 5000])
def test_process_that_changes_its_directory(tmp_path: Path, amount: int) -> None:
    """A relative name of the trace is meant from where the process began."""
    words = (f"marks=1000:{amount}", "chdir=sub", f"marks=1001:{amount}", "fork{", "marks=1002:9")
    cwd, out = place(tmp_path)
    (cwd / "sub").mkdir()
    settings = {**intercept.settings(out), "DFTRACER_LOG_FILE": "../d/t"}
    run(harm.program("harm_steps"), *words, "_exit=0", "}", cwd=cwd, env=settings)
    nothing_else(out)
    assert_marks(marks(*intercept.read(out)), {1000: amount, 1001: amount, 1002: 9})
    assert list((cwd / "sub").iterdir()) == []


@pytest.mark.parametrize("amount", [10, 5000])
def test_process_that_shuts_itself_in(tmp_path: Path, amount: int) -> None:
    """After chroot the trace cannot be reached by its name: whoever can finishes it."""
    if os.getuid() != 0:
        pytest.skip("needs root")
    words = ("marks=1000:5", "chroot=.", f"marks=1001:{amount}", "fork{", "marks=1002:3", "_exit=0")
    cwd, out = place(tmp_path)
    env = intercept.settings(out)
    done = run(
        harm.program("harm_steps"), *words, "}", "marks=1003:3", cwd=cwd, env=env, stderr=None
    )
    assert done.stdout == "chroot(rest) = 0, errno 77\nchild 0\n"
    assert all(line.startswith("dftracer: ") for line in done.stderr.splitlines())
    assert len(done.stderr.splitlines()) <= 2
    assert [path.name for path in cwd.iterdir()] == ["data"]
    faults.recover(out)
    nothing_else(out)
    processes = intercept.read(out)
    lost = sum(harm.end(process, "lost") for process in processes)
    have = marks(*processes)
    assert sum(len(offsets) for offsets in have.values()) + lost >= 5 + amount + 3
    assert all(set(offsets.values()) == {1} for offsets in have.values())


@pytest.mark.parametrize("mode", [0o777, 0o755])
def test_process_that_gives_up_its_rights(tmp_path: Path, mode: int) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root")
    words = ("marks=1000:50", "setuid=65534", "marks=1001:5000", "fork{", "marks=1002:3", "_exit=0")
    cwd, out = place(tmp_path)
    out.chmod(mode)
    env = intercept.settings(out)
    done = run(harm.program("harm_steps"), *words, "}", cwd=cwd, env=env, stderr=None)
    assert done.stdout.splitlines()[-1] == "child 0"
    assert all(line.startswith("dftracer: ") for line in done.stderr.splitlines())
    assert len(done.stderr.splitlines()) <= 2
    faults.recover(out)
    nothing_else(out)
    processes = intercept.read(out)
    lost = sum(harm.end(process, "lost") for process in processes)
    have = marks(*processes)
    assert sum(len(offsets) for offsets in have.values()) + lost >= 5050
    assert all(set(offsets.values()) == {1} for offsets in have.values())


def test_child_without_an_environment_runs_as_it_should(tmp_path: Path) -> None:
    done = harm.both(tmp_path, "env", "-i", "/bin/cat", "data")
    assert [harm.command(process)[0] for process in done.processes] == ["env"]

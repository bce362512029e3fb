"""Every way to leave a process, and processes in pools, trees and other places: nothing is there
twice and nothing is lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from support import compare_runs, faults, intercept
from support.compare_runs import DATA, assert_marks, marks, nothing_else, one_run, ppid
from support.intercept import PROGRAMS
from support.limits import HANG
from support.processes import place, steps, told
from support.run import environment, run

# ---- Leaving -------------------------------------------------------------------------------------


@intercept.IN_EACH_MODE
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


@intercept.IN_EACH_MODE
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
    done = run(sys.executable, *words, cwd=cwd, env=env)
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
    assert compare_runs.command(cat) == ["cat", "data"]
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
    done = compare_runs.both(tmp_path, "bash", "-c", BASH, traced_env=setting)
    if not setting:
        one_run(done.processes)
        # Through descriptor 3, which bash makes its standard output meanwhile.
        three = [event for event in done.events if event.path == str(tmp_path / "w" / "three")]
        assert {"open", "dup2", "printf", "putc", "fflush", "close"} <= {one.name for one in three}


@intercept.IN_EACH_MODE
def test_fork_while_eight_threads_make_calls(tmp_path: Path, mode: str) -> None:
    forks = 400
    done = steps(tmp_path, "threads=1000:8", f"forks=2000:{forks}", "stop", mode=mode)
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
    done = subprocess.run(words, capture_output=True, check=False, timeout=HANG)
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
            [
                *inside,
                compare_runs.program("harm_steps"),
                *(word.format(1000 + n) for word in words),
            ],
            cwd=cwd,
            env=env,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(3)
    ]
    try:
        said = [process.communicate(timeout=HANG)[0] for process in running]
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
    run(compare_runs.program("harm_steps"), *words, "_exit=0", "}", cwd=cwd, env=settings)
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
        compare_runs.program("harm_steps"),
        *words,
        "}",
        "marks=1003:3",
        cwd=cwd,
        env=env,
        stderr=None,
    )
    assert done.stdout == "chroot(rest) = 0, errno 77\nchild 0\n"
    assert all(line.startswith("dftracer: ") for line in done.stderr.splitlines())
    assert len(done.stderr.splitlines()) <= 2
    assert [path.name for path in cwd.iterdir()] == ["data"]
    faults.recover(out)
    nothing_else(out)
    processes = intercept.read(out)
    lost = sum(compare_runs.end(process, "lost") for process in processes)
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
    done = run(compare_runs.program("harm_steps"), *words, "}", cwd=cwd, env=env, stderr=None)
    assert done.stdout.splitlines()[-1] == "child 0"
    assert all(line.startswith("dftracer: ") for line in done.stderr.splitlines())
    assert len(done.stderr.splitlines()) <= 2
    faults.recover(out)
    nothing_else(out)
    processes = intercept.read(out)
    lost = sum(compare_runs.end(process, "lost") for process in processes)
    have = marks(*processes)
    assert sum(len(offsets) for offsets in have.values()) + lost >= 5050
    assert all(set(offsets.values()) == {1} for offsets in have.values())


def test_child_without_an_environment_runs_as_it_should(tmp_path: Path) -> None:
    done = compare_runs.both(tmp_path, "env", "-i", "/bin/cat", "data")
    assert [compare_runs.command(process)[0] for process in done.processes] == ["env"]

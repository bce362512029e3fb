"""Limits, and things that are not there: descriptors, memory, threads, /proc, stderr, the cwd."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from support import faults, traces
from support.faults import (
    AT_MOST_ONE,
    ONE_LINE,
    assert_exactly,
    in_namespace,
    left_in,
    program,
    recover,
    steps,
)
from support.limits import HANG
from support.run import environment, run

# ---- Descriptors ---------------------------------------------------------------------------------


def test_no_free_descriptor_at_the_start(tmp_path: Path) -> None:
    words = (
        "limit=nofile:3",
        "init=d/t.pfw",
        "active",
        "log=5",
        "fini",
        "limit=nofile:none",
        "open=x",
        "exit=4",
    )
    done = steps(*words, cwd=tmp_path, expect=4, stderr=ONE_LINE)
    assert "Too many open files" in done.stderr
    assert done.stdout == "init -1\nactive 0\nopen 3\n"


def test_no_free_descriptor_later(tmp_path: Path) -> None:
    """Whatever cannot be written then stays in the spool, or is counted."""
    words = ("init=d/t.pfw", "log=50", "limit=nofile:3", "log=3000", "open=x", "fini", "exit=4")
    done = steps(*words, cwd=tmp_path, expect=4, stderr=AT_MOST_ONE)
    assert done.stdout == "init 0\nopen -1\n"
    recover(tmp_path / "d")
    left = left_in(tmp_path / "d")
    assert left.total() + left.lost == 3050
    faults.nothing_hidden(tmp_path / "d")


def test_descriptors_run_out_and_come_back(tmp_path: Path) -> None:
    words = (
        "init=d/t.pfw",
        "big=50",
        "limit=nofile:3",
        "big=20000",
        "limit=nofile:none",
        "big=50",
        "fini",
        "exit=4",
    )
    steps(*words, cwd=tmp_path, expect=4, stderr=AT_MOST_ONE)
    left = left_in(tmp_path / "d")
    assert left.total() + left.lost == 20100
    assert left.of(0)[:50] == list(range(50))
    assert left.of(0)[-50:] == list(range(20050, 20100))


@pytest.mark.parametrize(
    ("threads", "size", "rounds"), [(0, 3000, 2000), (2, 0, 2000), (3, 2000, 2000), (3, 4000, 2000)]
)
def test_programs_that_know_their_numbers(
    tmp_path: Path, threads: int, size: int, rounds: int
) -> None:
    """close(0) and open give 0, the next one gives 3, all others are closed: never a difference."""
    counted = tmp_path / "counters"
    words = (tmp_path / "d" / "t.pfw", counted, threads, size, rounds)
    done = run(program("descriptors"), *words, stdin=b"")
    assert done.stdout == "0 0\n"
    recover(tmp_path / "d")
    left = left_in(tmp_path / "d")
    counts = faults.counters(counted)
    assert left.lost == 0
    assert_exactly(left, dict(enumerate(counts)))


def test_closing_all_descriptors(tmp_path: Path) -> None:
    words = ["init=d/t.pfw"]
    for _ in range(5):
        words += ["big=300", "closeall=3", "open=x", "count"]
    done = steps(*words, "fini", cwd=tmp_path)
    assert done.stdout.splitlines() == ["init 0", *["open 3", "descriptors 4"] * 5]
    assert_exactly(left_in(tmp_path / "d"), {0: 1500})
    faults.nothing_hidden(tmp_path / "d")


def test_closing_the_standard_ones_too(tmp_path: Path) -> None:
    """Then a file of the program's is descriptor 0, 1 and 2, and gets nothing of ours into it."""
    words = ("init=d/t.pfw", "big=300", "closeall=0", "open=a", "big=300", "_exit=4")
    # `open=a` prints into the file itself: it is the only descriptor, number 0, so 1 is closed.
    run(program("steps"), *words, cwd=tmp_path, expect=92)
    assert (tmp_path / "a").read_bytes() == b""
    recover(tmp_path / "d")
    assert_exactly(left_in(tmp_path / "d"), {0: 300})


def test_standard_error_closed(tmp_path: Path) -> None:
    """A line that cannot be said is not said; above all not into a file that has the number now."""
    (tmp_path / "file").write_text("mine")
    script = "$steps init=file/t.pfw log=5 open=data close=9 exit=4 2>&-"
    done = run("sh", "-c", script, cwd=tmp_path, env={"steps": str(program("steps"))}, expect=4)
    assert done.stdout == "init -1\nopen 2\n"
    assert (tmp_path / "data").read_bytes() == b""


def test_standard_error_closed_and_its_number_reused(tmp_path: Path) -> None:
    words = "close=2 open=data init=d/t.pfw log=5 flush rmtree=d big=3000 fini exit=4"
    done = run(
        "sh", "-c", f"$steps {words}", cwd=tmp_path, env={"steps": str(program("steps"))}, expect=4
    )
    assert done.stdout == "open 2\ninit 0\n"
    assert (tmp_path / "data").read_bytes() == b"", "our line went into the program's own file"


# ---- Memory and threads --------------------------------------------------------------------------


@pytest.mark.parametrize("extra", [0, 100_000, 200_000, 400_000, 1_000_000, 3_000_000])
def test_little_address_space_at_the_start(tmp_path: Path, extra: int) -> None:
    words = (f"limit=as:{extra}", "init=d/t.pfw", "log=3000", "say=done", "fini", "exit=4")
    done = steps(*words, cwd=tmp_path, expect=4, stderr=AT_MOST_ONE)
    assert done.stdout in ("init -1\ndone\n", "init 0\ndone\n")
    if done.stdout.startswith("init 0"):
        recover(tmp_path / "d")
        left = left_in(tmp_path / "d")
        assert left.total() + left.lost == 3000
    else:
        assert done.stderr != "", "untraced without a word"


@pytest.mark.parametrize("extra", [0, 300_000, 1_000_000])
def test_little_address_space_later(tmp_path: Path, extra: int) -> None:
    words = (
        "init=d/t.pfw",
        "log=10",
        f"limit=as:{extra}",
        "big=3000",
        "say=done",
        "fini",
        "exit=4",
    )
    done = steps(*words, cwd=tmp_path, expect=4, stderr=AT_MOST_ONE)
    assert done.stdout == "init 0\ndone\n"
    recover(tmp_path / "d")
    left = left_in(tmp_path / "d")
    assert left.total() + left.lost == 3010


def test_no_thread_to_be_had(tmp_path: Path) -> None:
    """Then the threads that need room write by themselves."""
    directory = tmp_path / "d"
    directory.mkdir()
    directory.chmod(0o777)
    words = "limit=nproc:1 init=/mnt/d/t.pfw big=20000 fini exit=4"
    assert faults.as_nobody(directory, words, expect=4).stdout == "init 0\n"
    left = left_in(tmp_path / "d")
    assert_exactly(left, {0: 20000})
    assert left.lost == 0


# ---- What is not there ---------------------------------------------------------------------------


def test_no_dev_shm(tmp_path: Path) -> None:
    script = "mount -t tmpfs -o ro,mode=000 none /dev/shm; $steps init=d/t.pfw big=3000 fini exit=4"
    in_namespace(script, cwd=tmp_path, expect=4)
    assert_exactly(left_in(tmp_path / "d"), {0: 3000})


def test_no_proc(tmp_path: Path) -> None:
    script = """
    mount -t tmpfs none /proc
    $steps init=d/t.pfw big=3000 'fork{' who=1 log=5 _exit=0 '}' fini
    $steps init=e/t.pfw log=5 _exit=0
    $recover e
    """
    done = in_namespace(script, cwd=tmp_path)
    assert done.stdout.splitlines()[-1] == "0 1 1 5 0 0 0"
    assert_exactly(left_in(tmp_path / "d"), {0: 3000, 1: 5})
    faults.nothing_hidden(tmp_path / "d")
    assert_exactly(left_in(tmp_path / "e"), {0: 5})


def test_no_proc_and_a_living_process(tmp_path: Path) -> None:
    script = """
    mount -t tmpfs none /proc
    mkfifo gate
    $steps init=d/t.pfw log=20 say=ready wait log=10 fini < gate > out &
    exec 9> gate
    until grep -q ready out; do sleep 0.01; done
    $recover d
    echo go >&9
    wait
    """
    done = in_namespace(script, cwd=tmp_path)
    assert done.stdout == "0 1 0 0 1 0 0\n"
    assert_exactly(left_in(tmp_path / "d"), {0: 30})


def test_working_directory_removed(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    absolute = (
        "chdir=gone",
        f"rmtree={tmp_path}/gone",
        f"init={tmp_path}/d/t.pfw",
        "log=50",
        "fini",
    )
    steps(*absolute, cwd=tmp_path)
    assert_exactly(left_in(tmp_path / "d"), {0: 50})


def test_relative_name_in_a_removed_directory(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    words = ("chdir=gone", f"rmtree={tmp_path}/gone", "init=t.pfw", "log=50", "fini", "exit=4")
    done = steps(*words, cwd=tmp_path, expect=4, stderr=ONE_LINE)
    assert done.stdout == "init -1\n"
    assert list(tmp_path.iterdir()) == []


def test_changing_directory_moves_no_trace(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    child = ("fork{", "who=1", "log=5", "exit=0", "}")
    steps("init=d/t.pfw", "log=5", "chdir=other", "big=1000", *child, "fini", cwd=tmp_path)
    assert_exactly(left_in(tmp_path / "d"), {0: 1005, 1: 5})
    assert list((tmp_path / "other").iterdir()) == []


def test_huge_environment(tmp_path: Path) -> None:
    env = {f"FILLER_{n}": "x" * 100_000 for n in range(12)}
    steps("init=d/t.pfw", "log=50", "fini", cwd=tmp_path, env=env)
    assert_exactly(left_in(tmp_path / "d"), {0: 50})


def test_huge_setting(tmp_path: Path) -> None:
    """A name longer than any file system takes: one line says what is used instead."""
    env = {"DFTRACER_LOG_FILE": "x" * 120_000}
    words = ("init=", "log=50", "fini", "exit=4")
    done = steps(*words, cwd=tmp_path, env=env, expect=4, stderr=ONE_LINE)
    assert "DFTRACER_LOG_FILE" in done.stderr
    assert done.stdout == "init 0\n"
    assert_exactly(left_in(tmp_path), {0: 50})


def test_long_name_that_just_fits(tmp_path: Path) -> None:
    name = "n" * 195
    child = ("fork{", "who=1", "log=5", "_exit=0", "}")
    steps(f"init=d/{name}.pfw", "log=5", *child, "fini", cwd=tmp_path)
    assert_exactly(left_in(tmp_path / "d"), {0: 5, 1: 5})
    faults.nothing_hidden(tmp_path / "d")


# ---- Pid namespaces ------------------------------------------------------------------------------


@pytest.mark.parametrize("mount", ["", "--mount-proc"])
def test_same_pid_in_two_namespaces(tmp_path: Path, mount: str) -> None:
    """Both are process 1, both write to one name in one directory, at the same time."""
    faults.need_pid_namespaces()
    namespace = ["unshare", "-pf", *mount.split()]
    words = ["log=500", "say=ready", "wait", "big=1000", "fini"]
    processes = [
        subprocess.Popen(
            [*namespace, program("steps"), "init=d/t.pfw", f"who={who}", *words],
            cwd=tmp_path,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for who in (1, 2)
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert [process.stdout.readline() for _ in range(2)] == [b"init 0\n", b"ready\n"]
        # From here both look as if they might live: neither is touched.
        assert recover(tmp_path / "d")[1:] == (2, 0, 0, 0, 2, 0)
        for process in processes:
            _, errors = process.communicate(b"x", timeout=HANG)
            assert (process.returncode, errors) == (0, b"")
    finally:
        for process in processes:
            faults.kill(process)
    left = left_in(tmp_path / "d")
    assert_exactly(left, {1: 1500, 2: 1500})
    assert len(left.files) == 2
    assert {pid for _, pid in left.by_process} == {1}
    keys = {
        traces.read(path, open_parents=True).one("start")["args"]["proc"] for path in left.files
    }
    assert len(keys) == 2
    faults.nothing_hidden(tmp_path / "d")


def test_death_in_another_namespace(tmp_path: Path) -> None:
    faults.need_pid_namespaces()
    for who in (1, 2):
        run(
            "unshare",
            "-pf",
            program("steps"),
            f"init=d/t{who}.pfw",
            f"who={who}",
            "log=500",
            "_exit=0",
            cwd=tmp_path,
        )
    found = recover(tmp_path / "d")
    assert (found.unknown, found.recovered) == (2, 0)
    found = recover(tmp_path / "d", force=True)
    assert (found.unknown, found.recovered) == (0, 2)
    assert_exactly(left_in(tmp_path / "d"), {1: 500, 2: 500})
    faults.nothing_hidden(tmp_path / "d")

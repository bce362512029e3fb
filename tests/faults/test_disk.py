"""Directories and disks that do not take what we write: the program runs as if untraced."""

from __future__ import annotations

import os
import re
import signal
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


def lines_of(trace: traces.Trace) -> tuple[list[int], int]:
    """The numbers that are there, and how many the trace says were lost."""
    numbers = sorted(event["args"]["i"] for event in trace.recorded)
    assert len(set(numbers)) == len(numbers)
    told = sum(event["args"]["events"] for event in trace.named("lost"))
    lost = trace.one("end")["args"].get("lost", 0)
    assert told == lost
    return numbers, lost


# ---- Before the run ------------------------------------------------------------------------------


def test_missing_directories_are_made(tmp_path: Path) -> None:
    steps("init=a/b/c/t.pfw", "log=5", "fini", cwd=tmp_path)
    assert_exactly(left_in(tmp_path / "a" / "b" / "c"), {0: 5})


@pytest.mark.parametrize(
    "path", ["file/t.pfw", "file/x/y/t.pfw", "/proc/none/t.pfw", "/dev/null/t.pfw"]
)
def test_directory_that_cannot_be(tmp_path: Path, path: str) -> None:
    (tmp_path / "file").write_text("mine")
    done = steps(
        f"init={path}", "active", "log=5", "fini", "exit=4", cwd=tmp_path, expect=4, stderr=ONE_LINE
    )
    assert done.stdout == "init -1\nactive 0\n"
    assert (tmp_path / "file").read_text() == "mine"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_unwritable_directory(tmp_path: Path) -> None:
    directory = tmp_path / "d"
    directory.mkdir(mode=0o755)
    words = "init=/mnt/d/t.pfw active log=5 fini exit=4"
    done = faults.as_nobody(directory, words, expect=4, stderr=ONE_LINE)
    assert "Permission denied" in done.stderr
    assert done.stdout == "init -1\nactive 0\n"
    assert list(directory.iterdir()) == []


def test_another_users_spool(tmp_path: Path) -> None:
    """Whoever may not read or remove it leaves it alone; its owner, or root, finishes it."""
    directory = tmp_path / "d"
    directory.mkdir()
    directory.chmod(0o1777)
    steps("init=d/t.pfw", "log=50", "_exit=0", cwd=tmp_path)
    done = faults.as_nobody(directory, "init=/mnt/d/t.pfw who=1 log=60 fini", stderr=AT_MOST_ONE)
    assert done.stdout == "init 0\n"
    faults.as_nobody(directory, "init=/mnt/d/u.pfw who=2 log=70 _exit=0")
    recover(directory)
    assert_exactly(left_in(directory), {0: 50, 1: 60, 2: 70})
    faults.nothing_hidden(directory)


def test_read_only_file_system(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    script = """
    mount --bind d /mnt
    mount -o remount,ro,bind /mnt
    $steps init=/mnt/t.pfw log=5 fini exit=4
    """
    done = in_namespace(script, cwd=tmp_path, expect=4, stderr=ONE_LINE)
    assert "/mnt" in done.stderr
    assert "ead-only" in done.stderr
    assert list((tmp_path / "d").iterdir()) == []


def test_disk_full_from_the_start(tmp_path: Path) -> None:
    script = """
    mount -t tmpfs -o size=1m none /mnt
    dd if=/dev/zero of=/mnt/filler bs=4k 2>/dev/null || true
    $steps init=/mnt/t.pfw active log=5000 fini own=/tmp/none/x:1 exit=4 || status=$?
    ls -A /mnt
    exit $status
    """
    done = in_namespace(script, cwd=tmp_path, expect=4, stderr=ONE_LINE)
    assert "No space left" in done.stderr
    assert done.stdout == "init -1\nactive 0\nown 0 2\nfiller\n"


# ---- During the run ------------------------------------------------------------------------------


def run_on_small_disk(tmp_path: Path, size: str, words: str, stderr: re.Pattern[str]) -> str:
    """Runs on a disk of that size, and copies what is on it afterwards to `out`."""
    script = f"""
    mount -t tmpfs -o size={size} none /mnt
    mkdir /mnt/d
    status=0
    $steps {words} || status=$?
    rm -f /mnt/filler
    cp -a /mnt/d out
    $recover /mnt/d > found || true
    cp -a /mnt/d recovered
    exit $status
    """
    return in_namespace(script, cwd=tmp_path, expect=4, stderr=stderr).stdout


def test_disk_full_in_the_middle_and_free_again(tmp_path: Path) -> None:
    words = (
        "init=/mnt/d/t.pfw big=500 flush fill=/mnt/filler big=30000 "
        "unlink=/mnt/filler big=500 fini exit=4"
    )
    out = run_on_small_disk(tmp_path, "8m", words, ONE_LINE)
    assert out == "init 0\n"
    trace = traces.read_one(tmp_path / "out")
    numbers, lost = lines_of(trace)
    assert lost > 0
    assert len(numbers) + lost == 31000
    # What came before the disk was full and after it was free again is all there.
    assert numbers[:500] == list(range(500))
    assert numbers[-500:] == list(range(30500, 31000))


def test_disk_full_to_the_end(tmp_path: Path) -> None:
    words = "init=/mnt/d/t.pfw big=500 flush fill=/mnt/filler big=30000 fini own=/mnt/x:4096 exit=4"
    out = run_on_small_disk(tmp_path, "8m", words, ONE_LINE)
    assert out == "init 0\nown 0 28\n"
    # What could be written is whole, and once there is room somebody else finishes it.
    left = left_in(tmp_path / "out", whole=False)
    assert left.of(0)[:500] == list(range(500))
    trace = traces.read_one(tmp_path / "recovered")
    numbers, lost = lines_of(trace)
    assert lost > 0
    assert len(numbers) + lost == 30500


def test_short_run_on_a_disk_that_gets_full(tmp_path: Path) -> None:
    """All of it is still in the spool, so nothing is lost."""
    words = "init=/mnt/d/t.pfw fill=/mnt/filler log=40 fini exit=4"
    out = run_on_small_disk(tmp_path, "1m", words, ONE_LINE)
    assert out == "init 0\n"
    assert_exactly(left_in(tmp_path / "recovered"), {0: 40})


def test_killed_on_a_full_disk(tmp_path: Path) -> None:
    """Storing into the spool never meets the full disk (SIGBUS): its room was reserved."""
    words = "init=/mnt/d/t.pfw fill=/mnt/filler big=5 _exit=4"
    out = run_on_small_disk(tmp_path, "1m", words, re.compile(""))
    assert out == "init 0\n"
    assert_exactly(left_in(tmp_path / "recovered"), {0: 5})


def test_children_on_a_full_disk(tmp_path: Path) -> None:
    """Each says it in one line and does its work."""
    words = (
        "init=/mnt/d/t.pfw log=5 flush fill=/mnt/filler "
        "'fork{' who=1 log=5 own=/mnt/y:1 exit=3 '}' unlink=/mnt/filler "
        "'fork{' who=2 log=5 exit=3 '}' log=5 fini exit=4"
    )
    out = run_on_small_disk(tmp_path, "1m", words, ONE_LINE)
    assert out == f"init 0\nown 0 28\nchild {3 << 8}\nchild {3 << 8}\n"
    assert_exactly(left_in(tmp_path / "out"), {0: 10, 2: 5})


@pytest.mark.parametrize("amount", [5, 3000])
def test_directory_removed_during_the_run(tmp_path: Path, amount: int) -> None:
    (tmp_path / "keep").mkdir()
    done = steps(
        *("init=keep/d/t.pfw", "log=300", "flush", "rmtree=keep/d", f"big={amount}", "say=done"),
        *("fini", "say=out", "exit=4"),
        cwd=tmp_path,
        expect=4,
        stderr=ONE_LINE,
    )
    assert done.stdout == "init 0\ndone\nout\n"
    assert list((tmp_path / "keep").iterdir()) == [], "a directory that the user removed came back"


def test_directory_removed_while_a_child_starts(tmp_path: Path) -> None:
    done = steps(
        *("init=d/t.pfw", "log=3", "rmtree=d", "fork{", "log=5", "exit=3", "}", "_exit=4"),
        cwd=tmp_path,
        expect=4,
        stderr=ONE_LINE,
    )
    assert done.stdout == f"init 0\nchild {3 << 8}\n"
    assert list(tmp_path.iterdir()) == []


def test_trace_removed_during_the_run(tmp_path: Path) -> None:
    """Only the file: the rest of the run gets into a file again, or one line says why not."""
    done = steps(
        *("init=d/t.pfw", "log=300", "flush", "unlink=d/t.pfw.gz", "log=200", "fini", "exit=4"),
        cwd=tmp_path,
        expect=4,
        stderr=ONE_LINE,
    )
    assert done.stdout == "init 0\n"
    recover(tmp_path / "d", expect=None, stderr=None)
    left = left_in(tmp_path / "d")
    assert left.of(0) == list(range(300, 500))


def test_spool_removed_during_the_run(tmp_path: Path) -> None:
    """A cleaner took our hidden file; what is mapped stays, so nothing is lost at a good end."""
    words = ("init=d/t.pfw", "log=30", "unlink=d/.t.pfw.spool", "big=3000", "fini", "exit=4")
    steps(*words, cwd=tmp_path, expect=4, stderr=None)
    left = left_in(tmp_path / "d")
    assert left.total() + left.lost == 3030
    faults.nothing_hidden(tmp_path / "d")


# ---- RLIMIT_FSIZE --------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [0, 4096, 65536, 100000, 120000])
def test_file_size_limit_at_the_start(tmp_path: Path, limit: int) -> None:
    done = steps(
        *(f"limit=fsize:{limit}", "init=d/t.pfw", "big=3000", "dispositions", "fini", "exit=4"),
        cwd=tmp_path,
        expect=4,
        stderr=ONE_LINE,
    )
    assert done.stdout.endswith("dispositions 0\n")


def test_file_size_limit_in_the_middle(tmp_path: Path) -> None:
    """No SIGXFSZ for our bytes; the file stays whole, and the loss is counted in it."""
    words = (
        "init=d/t.pfw",
        "big=20000",
        "flush",
        "limit=fsize:400000",
        "big=20000",
        "dispositions",
        "fini",
        "exit=4",
    )
    env = {"DFTRACER_TRACE_COMPRESSION": "0"}
    done = steps(*words, cwd=tmp_path, env=env, expect=4, stderr=ONE_LINE)
    assert done.stdout == "init 0\ndispositions 0\n"
    before = left_in(tmp_path / "d", whole=False)
    assert before.of(0)[:20000] == list(range(20000))
    recover(tmp_path / "d")
    numbers, lost = lines_of(traces.read_one(tmp_path / "d"))
    assert lost > 0
    assert len(numbers) + lost == 40000


@pytest.mark.parametrize(
    "handler", ["", "handler=XFSZ:return", "handler=XFSZ:ignore", "handler=XFSZ:exit"]
)
def test_the_programs_own_sigxfsz(tmp_path: Path, handler: str) -> None:
    seen = []
    for enable in (False, True):
        cwd = tmp_path / str(enable)
        cwd.mkdir()
        words = [*([handler] if handler else []), "limit=fsize:200000", "init=d/t.pfw", "big=3000"]
        ended = faults.run_raw(
            program("steps"),
            *words,
            "flush",
            "own=mine:300000",
            "dispositions",
            "exit=4",
            cwd=cwd,
            enable=enable,
        )
        out = ended.stdout.replace(b"init -1", b"init 0")
        seen.append((ended.status, out, (cwd / "mine").stat().st_size))
    assert seen[0] == seen[1]
    status, out, size = seen[1]
    assert size == 200000
    assert out.count(b"handler") == (
        1 if handler.endswith((":return", ":exit")) else 0
    ) + out.count(b"has a handler")
    if not handler:
        assert os.WTERMSIG(status) == signal.SIGXFSZ

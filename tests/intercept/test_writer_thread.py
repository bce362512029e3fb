"""The tracer's own thread: libc does not see it where the program has but one, and it is gone when
the program changes what all threads of a process have in common."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import compare_runs, faults, intercept
from support.build import ROOT, compile_c
from support.compare_runs import both, marks, program

FEW = 5_000
MANY = 150_000  # more than a spool holds, even a grown one
BEFORE, AFTER = 1000, 1002
A_THREAD = {"HARM_THREAD": "1"}


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A directory that other users can reach; pytest's own they cannot."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        os.chmod(name, 0o755)
        yield Path(name)


def check(place: Path, what: str, count: int, mode: str = intercept.PRELOAD) -> str:
    """Bare and traced alike, and every mark once. Returns what the program said."""
    done = both(place, program("harm_rights"), what, count, mode=mode, traced_env=A_THREAD)
    found = marks(done.one)
    for who in (BEFORE, AFTER):
        assert found[who] == dict.fromkeys(range(count), 1), f"marks {who} after {what}"
    assert done.one.end.get("lost", 0) == 0
    return done.result.stdout


def watched(place: Path, env: dict[str, str]) -> intercept.Run:
    """A process that changes nothing, and says how many threads it had."""
    cwd = place / "w"
    cwd.mkdir(parents=True)
    (cwd / "data").write_bytes(compare_runs.DATA)
    run = intercept.traced(program("harm_rights"), "nothing", FEW, cwd=cwd, env=env)
    assert marks(run.one)[AFTER] == dict.fromkeys(range(FEW), 1)
    assert "threads 2\n" in run.result.stdout
    return run


@intercept.IN_EACH_MODE
def test_libc_does_not_see_the_thread(tmp_path: Path, mode: str) -> None:
    run = watched(tmp_path, {**compare_runs.settings(tmp_path / "w.traces", mode), **A_THREAD})
    assert "libc sees one thread\n" in run.result.stdout


def test_thread_is_libc_s_where_calls_are_not_intercepted(tmp_path: Path) -> None:
    """Nobody would then see the program give up its rights, but libc does."""
    source = intercept.PROGRAMS / "harm_api.c"
    run = intercept.traced(
        compile_c(source, None),
        mode=intercept.FUNCTION,
        cwd=tmp_path,
        env={"DFTRACER_DISABLE_IO": "1"},
    )
    assert run.result.stdout == "libc sees several threads\n"


USERS = ("user", "real-user", "saved-user", "effective-user", "raw-user")
GROUPS = ("group", "real-group", "saved-group", "effective-group", "groups", "named-groups")


@pytest.mark.parametrize("what", [*USERS, *GROUPS, "capabilities", "namespace", "mounts"])
def test_no_thread_keeps_other_rights(open_place: Path, what: str) -> None:
    said = check(open_place, what, FEW)
    assert "threads 1\n" in said


@pytest.mark.parametrize("what", ["user", "groups", "namespace"])
def test_the_same_from_inside(open_place: Path, what: str) -> None:
    check(open_place, what, FEW, intercept.FUNCTION)


@pytest.mark.parametrize("what", ["user", "raw-user"])
def test_process_that_gives_up_root_is_recorded_to_its_end(open_place: Path, what: str) -> None:
    faults.need_other_users()
    check(open_place, what, MANY)


@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_library_whose_memcpy_knows_threads(tmp_path: Path, first: str) -> None:
    theirs = compare_runs.library("harm_other_memcpy", None, "-fno-builtin", "-O1")
    both_libraries = [str(intercept.library()), str(theirs)]
    if first == "theirs":
        both_libraries.reverse()
    run = watched(tmp_path, {**A_THREAD, "LD_PRELOAD": ":".join(both_libraries)})
    assert "libc sees several threads\n" in run.result.stdout


# What has no lock, no heap and no state; the last prints a number, the one before ends the process.
HARMLESS = """memcpy memmove memset memcmp memchr strlen strnlen strcpy clock_gettime
    __gxx_personality_v0 __udivti3 __divti3 _ZSt24__throw_out_of_range_fmtPKcz _ZSt8to_charsPcS_d"""
OURS = ("_ZN3dft", "_ZNK3dft", "_ZGR", "_GLOBAL_OFFSET_TABLE_", "isal_")
# What starts the thread runs on the program's.
STARTING = {
    "writer": ("pthread_",),
    "page_faults": ("__libc_single_threaded", "__errno_location", "__tls_get_addr"),
    "mappings": ("__errno_location",),
    "raw_thread": ("dl_iterate_phdr", "gnu_get_libc_version", "__libc_single_threaded",
        "__errno_location"),
}  # fmt: skip


def test_the_writer_asks_little_of_libc() -> None:
    """A thread that libc does not know of must not use its heap, its locks or its streams."""
    objects = ROOT / "build" / "release" / "src" / "CMakeFiles" / "dftracer_objects.dir"
    watching = ("page_faults", "fault_rings", "touched_pages", "mappings")
    files = sorted((objects / "sink").glob("*.o"))
    files += [objects / "intercept" / f"{name}.cpp.o" for name in watching]
    assert len(files) > 10, f"nothing was built in {objects}"
    for file in files:
        listed = subprocess.run(["nm", "-u", file], capture_output=True, text=True, check=True)
        asked = {line.split()[-1] for line in listed.stdout.splitlines()} - set(HARMLESS.split())
        passed = (*OURS, *STARTING.get(file.name.split(".")[0], ()))
        more = {name for name in asked if not name.startswith(passed)}
        assert not more, f"{file.name} asks libc for {more}"

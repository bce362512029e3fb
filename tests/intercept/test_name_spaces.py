"""Libraries in name spaces of their own (dlmopen), with a libc of their own: their calls are seen,
and end in that libc."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
from support import intercept
from support.build import compile_c
from support.run import run as run_bare

FLAGS = ("-shared", "-fPIC", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror")
LINKED = {
    "lazy": ("-Wl,-z,lazy,-z,norelro",),
    "full": ("-Wl,-z,now,-z,relro",),
    "noplt": ("-Wl,-z,now,-z,relro", "-fno-plt"),
}
# Of each function of cov_space_lib.c: what is recorded on its file, and elsewhere.
DESCRIPTORS = ["open", "write", "dup", "close", "lseek", "read", "fstat", "close"]
CALLS = {
    "descriptors": DESCRIPTORS,
    "streams": ["fopen", "fprintf", "fflush", "rewind", "fscanf", "fclose"],
    "pass_on": ["open", "write", "close"],
    "by_number": ["openat", "write", "close"],
    "mapped": ["open", "ftruncate", "mmap", "msync", "munmap", "close"],
    "signals": ["open", "write", "close"] * 10,
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    return work


def library(*flags: str, name: str = "cov_space_lib") -> Path:
    words = (*FLAGS, "-Wno-nonnull", *flags)
    return compile_c(intercept.PROGRAMS / f"{name}.c", None, *words, link=False)


def names(process: intercept.Process, path: Path) -> list[str]:
    return [event.name for event in process.events if event.path == str(path)]


def check(
    place: Path, mode: str, *words: str | Path, env: dict[str, str] | None = None
) -> intercept.Run:
    """What the program says is what it says without a tracer."""
    program = intercept.program("cov_space", mode, "-Wl,-rpath,$ORIGIN")
    bare = run_bare(program, *words, cwd=place, enable=False, env=env)
    for file in place.iterdir():
        file.unlink()
    run = intercept.traced(program, *words, mode=mode, cwd=place, env=env)
    assert run.result.stdout == bare.stdout
    return run


@intercept.IN_EACH_MODE
@pytest.mark.parametrize("how", LINKED)
@pytest.mark.parametrize("function", CALLS)
def test_calls_are_seen(place: Path, mode: str, how: str, function: str) -> None:
    file = place / "file"
    run = check(place, mode, "new", library(*LINKED[how]), function, file)
    assert names(run.one, file) == CALLS[function]


@intercept.IN_EACH_MODE
@pytest.mark.parametrize("way", ["lazy", "early", "again", "swap"])
def test_name_spaces_come_and_go(place: Path, mode: str, way: str) -> None:
    file = place / "file"
    ours = place.parent / "libmine.so"
    shutil.copy(library(), ours)
    shutil.copy(ours, f"{ours}.copy")
    run = check(place, mode, way, ours, "descriptors", file)
    assert names(run.one, file) == DESCRIPTORS * (3 if way == "again" else 1)


@intercept.IN_EACH_MODE
def test_several_at_once(place: Path, mode: str) -> None:
    """Each with a libc of its own; the last one shares a name space with another."""
    words: list[str | Path] = []
    functions = ("descriptors", "streams", "failures")
    for function in functions:
        words += ["new", library(), function, place / function]
    words += ["same", library(), "signals", place / "signals"]
    run = check(place, mode, *words)
    for function in ("descriptors", "streams", "signals"):
        assert names(run.one, place / function) == CALLS[function]


@intercept.IN_EACH_MODE
def test_failures_are_those_of_the_callers_libc(place: Path, mode: str) -> None:
    """Its errno, and not the program's, has the reason; so has the event."""
    run = check(place, mode, "new", library(), "failures", place / "file")
    failed = [(one.name, one.args["errno"]) for one in run.one.events if "errno" in one.args]
    assert failed == [("open", 2), ("pread", 9), ("unlink", 2), ("open", 14)]


@intercept.IN_EACH_MODE
def test_a_library_found_by_its_name(place: Path, mode: str) -> None:
    file = place / "file"
    folder = place.parent / "lib"
    folder.mkdir()
    shutil.copy(library(), folder / "libmine.so.1")
    env = {"LD_LIBRARY_PATH": str(folder)}
    run = check(place, mode, "new", "libmine.so.1", "descriptors", file, env=env)
    assert names(run.one, file) == DESCRIPTORS


@intercept.IN_EACH_MODE
def test_a_library_that_a_name_space_loads(place: Path, mode: str) -> None:
    file = place / "file"
    env = {"BELOW": str(library(name="cov_lib"))}
    run = check(place, mode, "new", library(), "loads", file, env=env)
    assert names(run.one, file) == ["open", "write", "close"] * 2 + ["fopen", "fwrite", "fclose"]


@intercept.IN_EACH_MODE
def test_threads_of_another_libc(place: Path, mode: str) -> None:
    file = place / "file"
    run = check(place, mode, "new", library(), "threads", file)
    assert Counter(names(run.one, file)) == {"open": 3, "write": 300, "close": 3}
    assert len({event.tid for event in run.one.events if event.path == str(file)}) == 3


@intercept.IN_EACH_MODE
def test_a_fork_by_another_libc(place: Path, mode: str) -> None:
    file = place / "file"
    run = check(place, mode, "new", library(), "forks", file)
    (child,) = (one for one in run.processes if one.named("_exit"))
    (parent,) = (one for one in run.processes if one is not child)
    assert child.ppid == parent.pid
    assert names(child, file) == ["open", "write"]
    assert [event.name for event in parent.named("fork", "waitpid")] == ["fork", "waitpid"]


def test_programs_that_another_libc_runs(place: Path) -> None:
    """By vfork, by fork, by posix_spawn; and one that is not there."""
    file = place / "file"
    run = check(place, intercept.PRELOAD, "new", library(), "runs", file)
    # One by vfork, one by posix_spawn; both are programs that are traced like all others.
    assert [bool(one.below(place)) for one in run.of("touch")] == [True, True]
    assert len(run.of("sh")) == 1
    (parent,) = (one for one in run.processes if one.named("vfork"))
    calls = Counter(event.name for event in parent.named("vfork", "fork", "posix_spawnp", "execv"))
    assert calls["vfork"] == calls["fork"] == calls["posix_spawnp"] == 1
    (failed,) = (event for event in parent.named("execv") if "errno" in event.args)
    assert failed.args["errno"] == 2

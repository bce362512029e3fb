"""Beside other libraries that put themselves between a program and its libc, in either order, and
around programs that nobody can be preloaded into."""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from support import compare_runs, faults, intercept
from support.build import command
from support.compare_runs import assert_marks, both, marks, program
from support.run import run

ORDERS = pytest.mark.parametrize("first", ["ours", "theirs"])
CASES: list[tuple[str, list[str | int]]] = [
    ("harm_io", [4]),
    ("harm_threads", ["many", 200]),
    ("harm_threads", ["keys", 10]),
    (
        "harm_steps",
        ["marks=1000:3000", "fork{", "marks=1001:300", "_exit=0", "}", "again=3:2000:5"],
    ),
]


def preload(theirs: Path | str, first: str) -> str:
    ours = str(intercept.library())
    return f"{ours}:{theirs}" if first == "ours" else f"{theirs}:{ours}"


# ---- Allocators ----------------------------------------------------------------------------------

ALLOCATORS = {"jemalloc": "libjemalloc.so", "tcmalloc": "libtcmalloc_minimal.so"}


@functools.cache
def allocator(name: str) -> Path:
    listed = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    found = re.search(rf"^\s*{re.escape(ALLOCATORS[name])}\S* .*=> (\S+)$", listed, re.MULTILINE)
    if found is None:
        pytest.skip(f"{name} is not installed (tools/bootstrap.sh test)")
    return Path(found[1])


@pytest.mark.long(keep=4)
@ORDERS
@pytest.mark.parametrize(("what", "words"), CASES, ids=lambda one: str(one)[:20])
@pytest.mark.parametrize("name", ALLOCATORS)
def test_allocator(
    tmp_path: Path, name: str, what: str, words: list[str | int], first: str
) -> None:
    theirs = allocator(name)
    both(
        tmp_path,
        program(what),
        *words,
        env={"LD_PRELOAD": str(theirs)},
        traced_env={"LD_PRELOAD": preload(theirs, first)},
    )


@pytest.mark.parametrize("name", ALLOCATORS)
def test_program_that_is_linked_with_an_allocator(tmp_path: Path, name: str) -> None:
    made = program("harm_io", str(allocator(name)))
    done = both(tmp_path, made, 4)
    assert_marks(marks(*done.processes), {1000: 1000})


# ---- Sanitizers ----------------------------------------------------------------------------------


def sanitizer(name: str) -> str:
    """The run-time library, by the compiler that the programs are made with."""
    path = command("cc", f"-print-file-name={name}").strip()
    if not Path(path).is_absolute():
        pytest.skip(f"{name} is not installed")
    # A linker script may stand there in place of the library.
    return os.path.realpath(path)


def fixed_addresses() -> None:
    """Older ones do not start under the strong address randomisation of newer kernels."""
    ctypes.CDLL(None).personality(0x0040000)


def address_options(first: str) -> dict[str, str]:
    # Shells and their tools, which the programs start, are not ours to check for leaks.
    order = ":verify_asan_link_order=0" if first == "ours" else ""
    return {"ASAN_OPTIONS": f"detect_leaks=0:detect_stack_use_after_return=1{order}"}


@pytest.mark.long(keep=2)
@ORDERS
@pytest.mark.parametrize(
    ("what", "words"),
    [*CASES, ("harm_signals", ["nested"]), ("harm_fds", ["closefrom", "close_range"])],
    ids=lambda one: str(one)[:20],
)
def test_address_sanitizer(tmp_path: Path, what: str, words: list[str | int], first: str) -> None:
    """It wants to be the first; told not to insist on that, it lives behind us as well."""
    theirs = sanitizer("libasan.so")
    made = program(what, "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    options = address_options(first)
    both(
        tmp_path,
        made,
        *words,
        env={**options, "LD_PRELOAD": theirs},
        traced_env={"LD_PRELOAD": preload(theirs, first)},
    )


def test_no_leak_is_ours(tmp_path: Path) -> None:
    theirs = sanitizer("libasan.so")
    made = program("harm_threads", "-O1", "-fsanitize=address")
    env = {"ASAN_OPTIONS": "detect_leaks=1", "LD_PRELOAD": theirs}
    both(
        tmp_path,
        *(made, "many", 100),
        env=env,
        traced_env={"LD_PRELOAD": preload(theirs, "theirs")},
    )


GROUPS = ["open", "stat", "stdio", "desc", "names", "dirs", "map", "move", "fds"]


@pytest.mark.long(keep=2)
@ORDERS
@pytest.mark.parametrize("group", GROUPS)
def test_every_call_under_address_sanitizer(tmp_path: Path, group: str, first: str) -> None:
    """What the sanitizer replaces is called through our wrappers, or calls them."""
    theirs = sanitizer("libasan.so")
    made = intercept.program(f"cov_{group}", intercept.PRELOAD, "-O1", "-fsanitize=address", "-w")
    options = address_options(first)
    bare, place = tmp_path / "bare", tmp_path / "w"
    for directory in (bare, place):
        directory.mkdir()
    alone = {**options, "LD_PRELOAD": theirs}
    if run(made, bare, cwd=bare, env=alone, enable=False, expect=None, stderr=None).rc != 0:
        pytest.skip("it does on purpose what the sanitizer forbids")
    beside = {**options, "LD_PRELOAD": preload(theirs, first)}
    done = intercept.traced(made, place, cwd=place, out=tmp_path / "d", env=beside)
    assert sum(len(process.events) for process in done.processes) > 5


# What an interceptor sees of libraries that were not made for it is not to be believed: it knows
# nothing of the atomic operations that order it.
THREAD_OPTIONS = "halt_on_error=1:die_after_fork=0:ignore_noninstrumented_modules=1"


@pytest.mark.parametrize(
    ("what", "words"),
    [("harm_io", [4]), ("harm_threads", ["many", 50]), ("harm_signals", ["nested"])],
    ids=lambda one: str(one)[:20],
)
def test_thread_sanitizer(tmp_path: Path, what: str, words: list[str | int]) -> None:
    sanitizer("libtsan.so")
    made = program(what, "-O1", "-fsanitize=thread")
    both(tmp_path, made, *words, env={"TSAN_OPTIONS": THREAD_OPTIONS}, before=fixed_addresses)


@ORDERS
def test_thread_sanitizer_preloaded(tmp_path: Path, first: str) -> None:
    """Of a program without children: into a shell it cannot be preloaded, with or without us."""
    theirs = sanitizer("libtsan.so")
    done = both(
        tmp_path,
        *(program("harm_threads", "-O1", "-fsanitize=thread"), "many", 50),
        env={"TSAN_OPTIONS": THREAD_OPTIONS, "LD_PRELOAD": theirs},
        traced_env={"LD_PRELOAD": preload(theirs, first)},
        before=fixed_addresses,
        hidden=True,
    )
    # What it does itself at the very end comes after our own end.
    faults.recover(done.directory)
    assert_marks(marks(*intercept.read(done.directory)), {1000: 50})


# ---- Other tools that wrap calls -----------------------------------------------------------------


def peer_counts(path: Path) -> Counter[tuple[int, ...]]:
    return Counter(tuple(map(int, line.split())) for line in path.read_text().splitlines())


@pytest.mark.long(keep=6)
@ORDERS
@pytest.mark.parametrize("flags", [(), ("-DEARLY",), ("-DEARLY", "-Wl,-z,now")], ids=str)
@pytest.mark.parametrize(("what", "words"), CASES, ids=lambda one: str(one)[:20])
def test_another_wrapper(
    tmp_path: Path, what: str, words: list[str | int], first: str, flags: tuple[str, ...]
) -> None:
    """Both see every call of the program, as often as alone."""
    theirs = compare_runs.library("harm_peer", tmp_path / "libpeer.so", *flags)
    alone, beside = tmp_path / "alone", tmp_path / "beside"
    done = both(
        tmp_path,
        program(what),
        *words,
        env={"LD_PRELOAD": str(theirs), "PEER_COUNTS": str(alone)},
        traced_env={"LD_PRELOAD": preload(theirs, first), "PEER_COUNTS": str(beside)},
    )
    assert peer_counts(beside) == peer_counts(alone)
    if what == "harm_io":
        assert_marks(marks(*done.processes), {1000: 1000})


def test_preloaded_twice(tmp_path: Path) -> None:
    ours = intercept.library()
    done = both(tmp_path, program("harm_io"), 2, traced_env={"LD_PRELOAD": f"{ours}:{ours}"})
    assert_marks(marks(*done.processes), {1000: 1000})


def test_three_wrappers_and_an_allocator(tmp_path: Path) -> None:
    one = compare_runs.library("harm_peer", tmp_path / "libone.so")
    two = compare_runs.library("harm_peer", tmp_path / "libtwo.so", "-DEARLY")
    others = f"{one}:{two}:{allocator('jemalloc')}"
    around = f"{one}:{intercept.library()}:{two}:{allocator('jemalloc')}"
    done = both(
        tmp_path,
        *(program("harm_io"), 4),
        env={"LD_PRELOAD": others},
        traced_env={"LD_PRELOAD": around},
    )
    assert_marks(marks(*done.processes), {1000: 1000})


def test_library_that_cannot_be_preloaded(tmp_path: Path) -> None:
    """The loader's own complaint is the only one, and it is there without us too."""
    missing = tmp_path / "missing.so"
    both(
        tmp_path,
        program("harm_own", "-fno-builtin"),
        env={"LD_PRELOAD": str(missing)},
        traced_env={"LD_PRELOAD": f"{missing}:{intercept.library()}"},
    )


# ---- Programs that cannot be traced --------------------------------------------------------------


def summary_of(tmp_path: Path, *words: str | Path, cwd: Path) -> str:
    """Runs words in a traced shell; the line at the end. The loader may have said something too."""
    out = tmp_path / "summary"
    out.mkdir()
    env = {**intercept.settings(out), "DFTRACER_SUMMARY": "1"}
    done = run("sh", "-c", '"$@"; echo "status $?"', "sh", *words, cwd=cwd, env=env, stderr=None)
    lines = [line for line in done.stderr.splitlines() if line.startswith("dftracer: ")]
    assert len(lines) == 1, done.stderr
    compare_runs.nothing_else(out)
    return lines[0]


def unharmed(tmp_path: Path, made: Path, *words: str | int, why: str) -> None:
    """It does the same, no file is of it, and the line at the end names it and says why."""
    done = both(tmp_path, "sh", "-c", '"$@"; echo "status $?"', "sh", made, *words)
    for process in done.processes:
        # A shell that forks to start it has calls of its own; the program itself has none.
        assert compare_runs.command(process)[0] in ("sh", "cat", "wc")
    line = summary_of(tmp_path, made, *map(str, words), cwd=tmp_path / "w")
    assert made.name in line
    assert re.search(why, line), line


def test_static_program(tmp_path: Path) -> None:
    made = compare_runs.program("harm_io", "-static")
    named = tmp_path / "static_program"
    shutil.copy(made, named)
    unharmed(tmp_path, named, 2, why="static")


def test_static_pie_program(tmp_path: Path) -> None:
    named = tmp_path / "static_pie_program"
    shutil.copy(compare_runs.program("harm_io", "-static-pie", "-fPIE"), named)
    unharmed(tmp_path, named, 2, why="static")


def test_program_of_another_libc(tmp_path: Path) -> None:
    """Its loader does not start a program for which a library of this libc is preloaded."""
    if shutil.which("musl-gcc") is None:
        pytest.skip("musl is not installed (tools/bootstrap.sh test)")
    source = tmp_path / "small.c"
    source.write_text('#include <stdio.h>\nint main(void) { return puts("musl") < 0; }\n')
    made = tmp_path / "musl_program"
    command("musl-gcc", source, "-o", made)
    assert run(made, enable=False).stdout == "musl\n"
    out = tmp_path / "d"
    out.mkdir()
    script = f'"{made}"; echo "status $?"'
    done = run("sh", "-c", script, cwd=tmp_path, env=intercept.settings(out), stderr=None)
    assert done.stdout == "musl\nstatus 0\n", done
    assert len(done.stderr.splitlines()) <= 1, done.stderr
    # The same by a call that starts a child at once, with an environment of its own and without.
    for environment in ("os.environ", "{}"):
        spawned = (
            f"import os; p = os.posix_spawn({str(made)!r}, [{str(made)!r}], {environment});"
            "print('status', os.waitpid(p, 0)[1])"
        )
        python = run(
            sys.executable, "-c", spawned, cwd=tmp_path, env=intercept.settings(out), stderr=None
        )
        assert python.stdout == "musl\nstatus 0\n", python


SMALL_32 = r"""
static int call(int number, int a, const void* b, int c) {
  int result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory");
  return result;
}
void _start(void) {
  call(4, 1, "thirty-two\n", 11);
  call(1, 7, 0, 0);
}
"""


def test_program_of_32_bits(tmp_path: Path) -> None:
    if platform.machine() != "x86_64":
        pytest.skip("another architecture")
    source = tmp_path / "small.c"
    source.write_text(SMALL_32)
    made = tmp_path / "small_program"
    flags = ("-m32", "-nostdlib", "-static", "-ffreestanding", "-fno-pic", "-no-pie")
    command("cc", *flags, "-fno-stack-protector", source, "-o", made)
    if subprocess.run([made], capture_output=True, check=False).returncode != 7:
        pytest.skip("this kernel does not run programs of 32 bits")
    unharmed(tmp_path, made, why="static|architecture|32")


def test_dynamic_program_of_32_bits(tmp_path: Path) -> None:
    """The loader of the other architecture complains by one line of its own, and goes on."""
    source = tmp_path / "small.c"
    source.write_text('#include <stdio.h>\nint main(void) { return puts("thirty-two") < 0; }\n')
    made = tmp_path / "dynamic_program"
    if subprocess.run(["cc", "-m32", source, "-o", made], capture_output=True).returncode != 0:
        pytest.skip("programs of 32 bits cannot be made here (tools/bootstrap.sh test)")
    if subprocess.run([made], capture_output=True, check=False).returncode != 0:
        pytest.skip("programs of 32 bits do not run here")
    out = tmp_path / "d"
    out.mkdir()
    script = f'"{made}"; echo "status $?"'
    done = run("sh", "-c", script, cwd=tmp_path, env=intercept.settings(out), stderr=None)
    assert done.stdout == "thirty-two\nstatus 0\n"
    assert len(done.stderr.splitlines()) <= 1, done.stderr
    line = summary_of(tmp_path, made, cwd=tmp_path)
    assert re.search(r"dynamic_program.*(architecture|32)", line)


def need_root() -> None:
    if os.getuid() != 0:
        pytest.skip("needs root")


def test_set_uid_program(tmp_path: Path) -> None:
    need_root()
    named = tmp_path / "set_uid_program"
    shutil.copy(compare_runs.program("harm_own", "-fno-builtin"), named)
    os.chown(named, 65534, 65534)
    named.chmod(0o4755)
    unharmed(tmp_path, named, why="set-u")


def test_set_gid_program(tmp_path: Path) -> None:
    need_root()
    named = tmp_path / "set_gid_program"
    shutil.copy(compare_runs.program("harm_own", "-fno-builtin"), named)
    os.chown(named, 0, 65534)
    named.chmod(0o2755)
    unharmed(tmp_path, named, why="set-")


def test_program_with_capabilities(tmp_path: Path) -> None:
    need_root()
    named = tmp_path / "capable_program"
    shutil.copy(compare_runs.program("harm_own", "-fno-builtin"), named)
    setcap = shutil.which("setcap", path="/usr/sbin:/sbin:" + os.environ["PATH"])
    if setcap is None:
        pytest.skip("setcap is not installed")
    words = [setcap, "cap_net_raw+ep", str(named)]
    if subprocess.run(words, capture_output=True, check=False).returncode != 0:
        pytest.skip("this file system keeps no capabilities")
    both(tmp_path, named)


def test_program_started_without_our_variables(tmp_path: Path) -> None:
    cwd = tmp_path / "w"
    cwd.mkdir()
    (cwd / "data").write_bytes(compare_runs.DATA)
    named = tmp_path / "bare_program"
    shutil.copy(compare_runs.program("harm_own", "-fno-builtin"), named)
    line = summary_of(tmp_path, "env", "-i", named, cwd=cwd)
    assert re.search(r"bare_program.*LD_PRELOAD", line)


def test_script_is_not_called_static(tmp_path: Path) -> None:
    """A script is the business of its interpreter."""
    script = tmp_path / "script.sh"
    script.write_text("#!/bin/sh\ncat data > copied\n")
    script.chmod(0o755)
    both(tmp_path, script)
    line = summary_of(tmp_path, script, cwd=tmp_path / "w")
    assert "script.sh" not in line

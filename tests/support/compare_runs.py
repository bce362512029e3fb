"""Runs a program bare and traced and compares all that it does; counts reads that bear a mark.

A mark is a pread whose count says who made it and whose offset says which one it was, so that the
traces of any number of processes can be checked for each single call: none lost, none twice.
"""

from __future__ import annotations

import difflib
import functools
import hashlib
import os
import re
import shutil
import signal
import stat
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from support import intercept, traces
from support.build import compile_c, compile_cpp
from support.intercept import PROGRAMS, Process, Run
from support.limits import HANG
from support.run import Result, environment

WARNINGS = ("-Wall", "-Wextra", "-Werror", "-Wno-clobbered")
MARKED = ("pread", "pread64")
FIRST_MARK = 1000  # smaller counts are ordinary reads
DATA = bytes(range(256)) * 64


def _flags(*flags: str) -> tuple[str, ...]:
    # Compiled programs are cached by their text; this makes the shared header a part of it.
    header = hashlib.sha256((PROGRAMS / "harm.h").read_bytes()).hexdigest()[:16]
    return (f"-I{PROGRAMS}", f"-DHEADER=0x{header}", *WARNINGS, *flags)


@functools.cache
def program(name: str, *flags: str) -> Path:
    """A program of tests/intercept/programs that knows nothing of the tracer."""
    source = PROGRAMS / name
    if source.suffix == ".cpp":
        return compile_cpp(source, None, *_flags(*flags), link=False)
    return compile_c(PROGRAMS / f"{name}.c", None, *_flags(*flags), link=False)


def library(name: str, out: Path | None, *flags: str) -> Path:
    """A shared library of the same place; `out` is the path that it is to have, if that matters."""
    return compile_c(PROGRAMS / f"{name}.c", out, *_flags("-shared", "-fPIC", *flags), link=False)


@functools.cache
def starter() -> Path:
    """Preloaded, it starts a trace from inside (programs/harm_start.c)."""
    return compile_c(PROGRAMS / "harm_start.c", None, "-shared", "-fPIC")


def settings(out: Path, mode: str) -> dict[str, str]:
    """The environment in which any program is traced, by preload or from inside."""
    if mode == intercept.PRELOAD:
        return intercept.settings(out)
    return {**intercept.settings(out, mode), "LD_PRELOAD": str(starter())}


# ---- Bare and traced -----------------------------------------------------------------------------


def snapshot(directory: Path) -> dict[str, tuple[str, int, str]]:
    """Every file below a directory: its mode, its size if it has one, and what is in it."""
    found = {}
    for root, directories, names in os.walk(directory):
        for name in (*directories, *names):
            path = Path(root) / name
            info = path.lstat()
            content, size = "", 0
            if stat.S_ISREG(info.st_mode):
                content = hashlib.sha256(path.read_bytes()).hexdigest()
                size = info.st_size
            elif stat.S_ISLNK(info.st_mode):
                content = os.readlink(path)
            found[str(path.relative_to(directory))] = (stat.filemode(info.st_mode), size, content)
    return found


@dataclass(frozen=True)
class Ended:
    """All that can be seen of a program from outside."""

    status: int
    stdout: bytes
    stderr: bytes
    files: dict[str, tuple[str, int, str]] = field(repr=False)


def once(
    words: tuple[str | bytes | Path | int, ...],
    cwd: Path,
    env: Mapping[str, str],
    *,
    enable: bool,
    stdin: bytes = b"",
    timeout: float = HANG,
    before: Callable[[], None] | None = None,
) -> Ended:
    process = subprocess.Popen(
        [os.fsencode(str(word) if isinstance(word, int) else word) for word in words],
        cwd=cwd,
        env=environment(env, enable=enable),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=before,
        start_new_session=True,
    )
    try:
        stdout, stderr = process.communicate(stdin, timeout)
    except BaseException:
        # What hangs may have children that hang too.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    return Ended(process.returncode, stdout, stderr, snapshot(cwd))


def both(
    tmp_path: Path,
    *words: str | bytes | Path | int,
    mode: str = intercept.PRELOAD,
    env: Mapping[str, str] | None = None,
    traced_env: Mapping[str, str] | None = None,
    expect: int | None = 0,
    stdin: bytes = b"",
    timeout: float = HANG,
    prepare: Callable[[Path], None] | None = None,
    before: Callable[[], None] | None = None,
    ended: bool = True,
    hidden: bool = False,
    complains: bool = False,
) -> Run:
    """Runs the same words untraced and traced, each in a fresh directory of the same name that
    `prepare` may fill; `before` runs in the child that becomes the program. Status, output and
    the files that it leaves must be the same. `hidden`: a process was killed and nobody has
    finished for it. `complains`: the tracer may say that it cannot do its work. Returns the traced
    run, with its processes."""
    cwd, out = tmp_path / "w", tmp_path / "d"
    seen = []
    for trace in (False, True):
        cwd.mkdir()
        (cwd / "data").write_bytes(DATA)
        if prepare:
            prepare(cwd)
        chosen = dict(env or {})
        if trace:
            out.mkdir(mode=0o777)
            out.chmod(0o777)
            chosen = {**settings(out, mode), **chosen, **(traced_env or {})}
        one = once(
            words, cwd, chosen, enable=trace, stdin=stdin, timeout=timeout, before=before
        )  # fmt: skip
        shown = (
            f"{'traced' if trace else 'bare'}: ... {one.stdout[-300:]!r}, {one.stderr[-2000:]!r}"
        )
        assert expect is None or one.status == expect, f"status {one.status}; {shown}"
        seen.append(one)
        if not trace:
            shutil.rmtree(cwd)
    bare, traced = seen
    assert traced.status == bare.status, f"{bare}\n{traced}"
    assert traced.stdout == bare.stdout, difference(bare.stdout, traced.stdout)
    said = re.sub(rb"(?m)^dftracer: .*\n", b"", traced.stderr) if complains else traced.stderr
    assert said == bare.stderr, difference(bare.stderr, said)
    assert traced.files == bare.files, f"{bare.files}\n{traced.files}"
    if not hidden:
        nothing_else(out)
    result = Result(
        traced.status,
        traced.stdout.decode(errors="surrogateescape"),
        traced.stderr.decode(errors="surrogateescape"),
    )
    return Run(result, out, intercept.read(out, ended=ended, open_parents=True))


def difference(bare: bytes, traced: bytes) -> str:
    """What the traced program printed otherwise."""
    one, two = (text.decode(errors="backslashreplace").splitlines() for text in (bare, traced))
    return "\n".join(difflib.unified_diff(one, two, "bare", "traced", n=1, lineterm=""))[:3000]


def nothing_else(directory: Path) -> None:
    """Nothing but finished traces is in the directory."""
    names = sorted(path.name for path in directory.iterdir())
    left = [name for name in names if not re.fullmatch(r"[^.].*\.pfw(\.gz)?", name)]
    assert left == [], f"besides traces: {left}"


# ---- Marks ---------------------------------------------------------------------------------------

Marks = dict[int, Counter[int]]


def marks(*processes: Process) -> Marks:
    """Who (the count of the read) made which reads (their offsets), and how often."""
    found: Marks = {}
    for process in processes:
        for event in process.events:
            who = event.args.get("count", 0)
            if event.name in MARKED and who >= FIRST_MARK:
                found.setdefault(who, Counter())[event.args["offset"]] += 1
    return found


def assert_marks(found: Marks, wanted: Mapping[int, int]) -> None:
    """Of each, the marks 0, 1, 2 ... once; `wanted` says how many."""
    expected = sorted(who for who, count in wanted.items() if count)
    assert sorted(found) == expected, f"marks of {sorted(found)} in place of {expected}"
    for who, count in wanted.items():
        have = found.get(who, Counter())
        missing = [number for number in range(count) if number not in have]
        twice = [number for number, times in have.items() if times > 1]
        other = [number for number in have if number >= count]
        shown = f"of {who}: missing {missing[:9]}, twice {twice[:9]}, too many {other[:9]}"
        assert (missing, twice, other) == ([], [], []), shown


def starts(process: Process) -> list[traces.Record]:
    return process.trace.named("start")


def end(process: Process, key: str) -> int:
    """A number of the `end` records, of all the programs that the process became together. One that
    did not end itself has none."""
    return sum(int(record["args"].get(key, 0)) for record in process.trace.named("end"))


def command(process: Process) -> list[str]:
    """The words of the command line, of the last program that the process became."""
    names = intercept.hashes(process.trace)
    return names[starts(process)[-1]["args"]["cmd_hash"]].split(";")


def ppid(process: Process) -> int:
    """The parent, which is the same in every image that exec made of a process."""
    found = {start["args"]["ppid"] for start in starts(process)}
    assert len(found) == 1, f"{process.trace.path}: parents {found}"
    return int(found.pop())


def one_run(processes: list[Process]) -> None:
    """All files are of the same run, and each of a process of its own."""
    runs = {start["args"]["run"] for process in processes for start in starts(process)}
    assert len(runs) == 1, f"runs {runs}"
    pids = [{record["pid"] for record in process.trace.records} for process in processes]
    for process, found in zip(processes, pids):
        assert len(found) == 1, f"{process.trace.path} holds processes {found}"
    for process in processes:
        ids = [event["id"] for event in process.trace.events]
        assert len(ids) == len(set(ids)), f"{process.trace.path}: ids are there twice"

"""Runs programs whose calls are intercepted, by preload or from inside, and reads what they did.

    run = intercept.traced(intercept.program("cov_open", mode), "x", mode=mode, cwd=tmp_path)
    for event in run.one.events:            # POSIX and STDIO, in the order of their beginning
        event.name, event.cat, event.path, event.args

A program for both modes includes "intercept.h" and calls START() first in main: nothing under
preload, DFTRACER_C_INIT where it is compiled for FUNCTION mode.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from support import traces
from support.build import ROOT, compile_c, prefix
from support.limits import HANG
from support.run import Result, run

PRELOAD = "preload"
FUNCTION = "function"
MODES = (PRELOAD, FUNCTION)
# By preload, and by changing the import tables of a running program.
IN_EACH_MODE = pytest.mark.parametrize("mode", MODES)
BARE = "bare"

PROGRAMS = ROOT / "tests" / "intercept" / "programs"
CATEGORIES = ("POSIX", "STDIO")
# Asynchronous requests, which are no calls.
REQUESTS = ("IO_URING", "AIO")
# What every event has, and what stands for the path.
COMMON = ("hhash", "p_idx", "level", "fhash", "site_hash")


def library() -> Path:
    return prefix() / "lib" / "libdftracer_preload.so"


def program(source: str | Path, mode: str = PRELOAD, *flags: str) -> Path:
    """A program of tests/intercept/programs by its name, or any file; linked with our library only
    in FUNCTION mode, in which it is compiled with -DINIT."""
    path = source if isinstance(source, Path) else PROGRAMS / f"{source}.c"
    # Compiled programs are cached by their text; this makes the shared headers a part of it.
    text = b"".join(header.read_bytes() for header in sorted(PROGRAMS.glob("*.h")))
    headers = f"-DHEADERS=0x{hashlib.sha256(text).hexdigest()[:16]}"
    common = (f"-I{PROGRAMS}", headers, "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror")
    words = (*common, "-fmax-errors=5", *flags)
    if mode == FUNCTION:
        return compile_c(path, None, "-DINIT", *words)
    return compile_c(path, None, *words, link=False)


@dataclass(frozen=True)
class Event:
    """One intercepted call."""

    name: str
    cat: str
    path: str | None  # what fhash stands for; None without one. Other bytes as surrogates
    args: dict[str, Any]  # without what every event has; `*_hash` replaced by its string
    record: traces.Record

    @property
    def pid(self) -> int:
        return int(self.record["pid"])

    @property
    def tid(self) -> int:
        return int(self.record["tid"])

    def __str__(self) -> str:
        words = " ".join(f"{key}={value}" for key, value in self.args.items())
        return f"{self.cat} {self.name} {self.path} {words}"


@dataclass(frozen=True)
class Process:
    """What one process (one trace file) recorded; with exec, several programs one after the other:
    what is said below of one start or end holds for its `images`."""

    trace: traces.Trace
    events: list[Event]

    @property
    def pid(self) -> int:
        return int(self.trace.records[0]["pid"])

    @property
    def ppid(self) -> int:
        return int(self.trace.one("start")["args"]["ppid"])

    @property
    def command(self) -> list[str]:
        """The words of the command line."""
        names = hashes(self.trace)
        return names[self.trace.one("start")["args"]["cmd_hash"]].split(";")

    @property
    def end(self) -> dict[str, Any]:
        """The arguments of the `end` record."""
        args: dict[str, Any] = self.trace.one("end")["args"]
        return args

    def named(self, *names: str) -> list[Event]:
        return [event for event in self.events if event.name in names]

    @property
    def requests(self) -> list[Event]:
        """Asynchronous requests, and the calls on rings, in the order in which they began."""
        return events(self.trace, REQUESTS)

    def counts(self) -> Counter[str]:
        return Counter(event.name for event in self.events)

    @property
    def images(self) -> list[Process]:
        """The programs that this process was, each as if it had a file of its own."""
        at = [n for n, one in enumerate(self.trace.records) if is_start(one)]
        found = []
        for begin, end in zip(at, [*at[1:], len(self.trace.records)]):
            own = [one for one in self.trace.records[begin:end] if one["ph"] != "M"]
            image = traces.Trace(self.trace.path, [], [*self.trace.metadata, *own])
            found.append(Process(image, events(image)))
        return found

    def below(self, directory: Path | str) -> list[Event]:
        """Calls on files in a directory."""
        start = os.path.join(os.path.realpath(directory), "")
        return [event for event in self.events if (event.path or "").startswith(start)]


@dataclass(frozen=True)
class Run:
    result: Result
    directory: Path
    processes: list[Process] = field(default_factory=list)

    @property
    def one(self) -> Process:
        """The only process that recorded."""
        traces.need(len(self.processes) == 1, self.directory, f"{len(self.processes)} traces")
        return self.processes[0]

    @property
    def events(self) -> list[Event]:
        """Of all processes, by time."""
        every = [event for process in self.processes for event in process.events]
        return sorted(every, key=by_time)

    @property
    def images(self) -> list[Process]:
        """The programs of all processes."""
        return [image for process in self.processes for image in process.images]

    def of(self, word: str) -> list[Process]:
        """The programs that are called so (first word, without directories)."""
        return [one for one in self.images if os.path.basename(one.command[0]) == word]


def is_start(record: traces.Record) -> bool:
    return (record["name"], record["cat"]) == ("start", "dftracer")


def by_time(event: Event) -> tuple[int, int]:
    """Ids count within a thread; within a microsecond they tell what came first in it."""
    return event.record["ts"], event.record["id"]


def hashes(trace: traces.Trace) -> dict[str, str]:
    """Every hash of a file and what it stands for, bytes that are no text as surrogates."""
    return {
        record["args"]["value"]: os.fsdecode(traces.decode(record["args"]["name"]))
        for record in trace.metadata
        if record["name"] in ("FH", "SH")
    }


def events(trace: traces.Trace, categories: tuple[str, ...] = CATEGORIES) -> list[Event]:
    """The intercepted calls of a file in the order in which they began."""
    names = hashes(trace)
    found = []
    for record in trace.recorded:
        if record["cat"] not in categories:
            continue
        args = {
            key: names[value] if key.endswith("_hash") else value
            for key, value in record["args"].items()
            if key not in COMMON
        }
        path = names[record["args"]["fhash"]] if "fhash" in record["args"] else None
        found.append(Event(record["name"], record["cat"], path, args, record))
    return sorted(found, key=by_time)


def read(directory: Path, *, ended: bool = True, open_parents: bool = False) -> list[Process]:
    """The processes whose traces lie in a directory. ended=False: some were killed."""
    every = traces.read_directory(directory, ended=ended, open_parents=open_parents)
    return [Process(trace, events(trace)) for trace in every]


def settings(out: Path, mode: str = PRELOAD) -> dict[str, str]:
    """The environment in which a program is traced into a directory. The end-of-run line is off."""
    chosen = {
        "DFTRACER_LOG_FILE": f"{out}/t",
        "DFTRACER_SUMMARY": "0",
        "DFTRACER_DISABLE_IO": "0",
    }
    if mode == PRELOAD:
        return {**chosen, "DFTRACER_INIT": "PRELOAD", "LD_PRELOAD": str(library())}
    return {**chosen, "DFTRACER_INIT": "FUNCTION"}


def traced(
    what: str | Path,
    *args: str | bytes | Path | int,
    mode: str = PRELOAD,
    cwd: Path,
    out: Path | None = None,
    env: Mapping[str, str] | None = None,
    expect: int | None = 0,
    stderr: str | re.Pattern[str] | None = "",
    stdin: bytes = b"",
    timeout: float = HANG,
    ended: bool = True,
    open_parents: bool = False,
) -> Run:
    """Runs a program with its calls intercepted and reads all that its processes wrote. The traces
    go to `out`, by default a directory beside `cwd`, which the program's files do not share."""
    place = out or cwd.with_name(f"{cwd.name}.traces")
    place.mkdir(parents=True, exist_ok=True)
    result = run(
        what,
        *args,
        env={**settings(place, mode), **(env or {})},
        cwd=cwd,
        expect=expect,
        stderr=stderr,
        stdin=stdin,
        timeout=timeout,
    )
    return Run(result, place, read(place, ended=ended, open_parents=open_parents))


# ---- The other witness ---------------------------------------------------------------------------

SYSCALL = re.compile(r"^(?:\d+ +)?(\w+)\((.*)$", re.DOTALL)


def need_strace() -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed (tools/bootstrap.sh test)")


def strace(
    what: str | Path,
    *args: str | bytes | Path | int,
    cwd: Path,
    calls: Iterable[str],
    log: Path,
    expect: int | None = 0,
    timeout: float = HANG,
) -> list[tuple[str, str]]:
    """The system calls of the bare program and its children: (name, the rest of strace's line).
    Names that this kernel does not have are left out."""
    need_strace()
    chosen = ",".join(f"?{call}" for call in calls)
    run(
        "strace",
        *("-f", "-qq", "-y", "-s", "0", "-e", f"trace={chosen}", "-e", "signal=none", "-o", log),
        *(what, *args),
        cwd=cwd,
        enable=False,
        expect=expect,
        timeout=timeout,
    )
    found = []
    for line in log.read_text(errors="surrogateescape").splitlines():
        match = SYSCALL.match(line)
        if match:
            found.append((match[1], match[2]))
    return found


# ---- Programs that say what they did -------------------------------------------------------------

# They do wrong things on purpose, and call functions that are out of favour.
ODD = (
    "-fno-builtin",
    "-Wno-format-zero-length",
    "-Wno-stringop-overflow",
    "-Wno-stringop-overread",
    "-Wno-nonnull",
    "-Wno-deprecated-declarations",
)
EXPECTED = "expected"
NUMBER = re.compile(r"-?\d+")


def steps(file: Path) -> list[str]:
    """The notes of a program that was made with cov.h, as str(Event) shows a call."""
    found = []
    for line in file.read_text().splitlines():
        cat, name, path, args = line.split("\t")
        where = None if path == "-" else os.fsdecode(bytes.fromhex(path))
        given: dict[str, Any] = {}
        for word in args.split():
            key, value = word.split("=", 1)
            given[key] = int(value) if NUMBER.fullmatch(value) else value
        found.append(show(name, cat, where, given))
    return found


def show(name: str, cat: str, path: str | None, args: Mapping[str, Any]) -> str:
    words = " ".join(f"{key}={args[key]}" for key in sorted(args))
    return f"{cat} {name} {path!r} {words}"


def compare(process: Process, directory: Path) -> list[str]:
    """Every call of a program that was made with cov.h, in order, with every argument; returns the
    names. What the program writes its notes with is left out."""
    notes = directory / EXPECTED
    expected = steps(notes)
    got = [
        show(event.name, event.cat, event.path, event.args)
        for event in process.events
        if event.path != str(notes)
    ]
    difference = list(difflib.unified_diff(expected, got, "expected", "traced", n=0, lineterm=""))
    assert not difference, "\n".join(difference)
    return [line.split()[1] for line in expected]

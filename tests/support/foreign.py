"""Runs other people's programs twice, bare and traced by preload, and compares the results.

    seen = both("bash", SCRIPTS / "redirections.sh", place=tmp_path)
    seen.events("write", path="a")      # of all processes; a path is below the working directory
    seen.of("sort")[0].read("numbers")  # bytes that a program took from a file

Both runs happen in the same directory (`place`/work), emptied in between, so that no output differs
because of a path.
"""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import os
import re
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from support import faults, intercept, traces
from support.build import ROOT
from support.intercept import Event
from support.limits import HANG
from support.run import environment

SCRIPTS = ROOT / "tests" / "foreign" / "scripts"


def _result(event: Event) -> int:
    return max(0, int(event.args.get("ret", 0)))


def _line(event: Event) -> int:
    return int(event.args["ret_len"])


def _items(event: Event) -> int:
    return int(event.args["size"]) * int(event.args["ret"])


def _character(event: Event) -> int:
    return int(event.args["ret"] >= 0)


# Calls that move bytes, by their plain names, and how many. What libc moves between its buffers and
# a file is not in a trace; what the program moves to and from them is.
READS = {
    **dict.fromkeys(
        ("read", "pread", "readv", "preadv", "preadv2", "getline", "getdelim"), _result
    ),
    **dict.fromkeys(("getc", "fgetc", "getchar"), _character),
    "fgets": _line,
    "fread": _items,
}
WRITES = {
    **dict.fromkeys(("write", "pwrite", "writev", "pwritev", "pwritev2"), _result),
    **dict.fromkeys(("printf", "fprintf", "vprintf", "vfprintf", "dprintf", "vdprintf"), _result),
    **dict.fromkeys(("putc", "fputc", "putchar"), _character),
    "fwrite": _items,
}
OPENS = ("open", "openat", "creat", "fopen", "freopen", "mkstemp", "mkostemp", "mkstemps")


def plain(name: str) -> str:
    """`open64` is `open` and `fread_unlocked` is `fread`: which of them a program was compiled to
    call is no concern of these tests."""
    return name.removesuffix("_unlocked").replace("64v2", "2").replace("64", "")


def need_program(*names: str) -> None:
    for name in names:
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed (tools/bootstrap.sh)")


# ---- What a program leaves -----------------------------------------------------------------------

Tree = dict[str, tuple[str, ...]]


def tree(directory: Path, ignore: Iterable[str] = ()) -> Tree:
    """Every file below a directory with all of it that does not depend on the time. `ignore`:
    patterns of names whose contents are not looked at."""
    found: Tree = {}
    for root, directories, files in os.walk(directory):
        for name in (*directories, *files):
            path = Path(root, name)
            shown = str(path.relative_to(directory))
            status = path.lstat()
            facts = [stat.filemode(status.st_mode)]
            if stat.S_ISLNK(status.st_mode):
                facts.append(os.readlink(path))
            elif stat.S_ISREG(status.st_mode):
                facts.append(f"{status.st_nlink} links")
                if not any(fnmatch.fnmatch(shown, pattern) for pattern in ignore):
                    facts.append(f"{status.st_size} bytes")
                    facts.append(hashlib.sha256(path.read_bytes()).hexdigest())
            found[shown] = tuple(facts)
    return found


@dataclass(frozen=True)
class Outcome:
    rc: int
    stdout: bytes
    stderr: bytes
    left: Tree
    temporary: Tree  # in TMPDIR


# ---- What a trace says ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Image:
    """What one program did in one process. A process that execs has several."""

    run: str
    pid: int
    ppid: int
    command: list[str]
    events: list[Event]
    work: Path

    @property
    def program(self) -> str:
        return os.path.basename(self.command[0]) if self.command else ""

    def calls(self, *names: str, path: str | Path | None = None) -> list[Event]:
        """Calls by their plain names (none: all), on one file (a name is below `work`)."""
        place = None if path is None else os.path.normpath(self.work / path)
        return [
            event
            for event in self.events
            if (not names or plain(event.name) in names) and place in (None, event.path)
        ]

    def read(self, path: str | Path) -> int:
        return sum(READS[plain(event.name)](event) for event in self.calls(*READS, path=path))

    def written(self, path: str | Path) -> int:
        return sum(WRITES[plain(event.name)](event) for event in self.calls(*WRITES, path=path))


@dataclass(frozen=True)
class Seen:
    """A traced run."""

    images: list[Image]
    work: Path
    outcome: Outcome | None = None

    def of(self, program: str) -> list[Image]:
        return [image for image in self.images if image.program == program]

    def one(self, program: str) -> Image:
        found = self.of(program)
        assert len(found) == 1, f"{program}: {len(found)} of {[i.command for i in self.images]}"
        return found[0]

    def above(self, image: Image) -> set[str]:
        """The programs that a process descends from, as far as they were traced."""
        parents: dict[int, list[Image]] = {}
        for other in self.images:
            parents.setdefault(other.pid, []).append(other)
        found: set[str] = set()
        pid = image.ppid
        while pid in parents:
            found.update(other.program for other in parents[pid])
            pid = parents[pid][0].ppid
        return found

    def events(self, *names: str, path: str | Path | None = None) -> list[Event]:
        return [event for image in self.images for event in image.calls(*names, path=path)]

    def read(self, path: str | Path) -> int:
        return sum(image.read(path) for image in self.images)

    def written(self, path: str | Path) -> int:
        return sum(image.written(path) for image in self.images)


def images(trace: traces.Trace, work: Path) -> list[Image]:
    """The programs of one file: each begins with a `start` record."""
    names = intercept.hashes(trace)
    by_id = {int(event.record["id"]): event for event in intercept.events(trace)}
    found: list[Image] = []
    for record in trace.events:
        if record["cat"] == "dftracer" and record["name"] == "start":
            args = record["args"]
            words = names[args["cmd_hash"]].split(";")
            found.append(Image(args["run"], record["pid"], args["ppid"], words, [], work))
        elif record["cat"] == "dftracer" and record["name"] == "end":
            lost = record["args"].get("lost", 0)
            traces.need(lost == 0, trace.path, f"{lost} events were lost")
        elif record["id"] in by_id:
            traces.need(found, trace.path, f"{record} stands before the first start")
            found[-1].events.append(by_id[record["id"]])
    for image in found:
        image.events.sort(key=lambda event: int(event.record["id"]))
    return found


def read_traces(directory: Path, work: Path, *, killed: bool = False) -> list[Image]:
    """All that a directory of traces holds, which is whole traces and nothing else. `killed`: some
    processes were, and what they had recorded is yet to be brought in."""
    if killed:
        faults.recover(directory)
    faults.nothing_hidden(directory, unborn=killed)
    found = []
    for path in sorted(directory.iterdir()):
        if path.name.startswith("."):
            continue
        assert re.fullmatch(r"t(-[0-9a-z-]+)?\.pfw\.gz", path.name), f"{path} is no trace"
        found += images(traces.read(path), work)
    return found


# ---- Running -------------------------------------------------------------------------------------


def members(session: int) -> list[int]:
    """The processes of a session that have not ended."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            # Processes come and go while we look.
            with contextlib.suppress(OSError):
                text = Path("/proc", entry, "stat").read_text(errors="replace")
                fields = text[text.rindex(")") + 2 :].split()
                if fields[0] not in "ZX" and int(fields[3]) == session:
                    found.append(int(entry))
    return found


def end_session(session: int, patience: float) -> bool:
    """Waits for what a program left running; what does not end by itself is killed."""
    until = time.monotonic() + patience
    while members(session):
        if time.monotonic() > until:
            for pid in members(session):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return False
        time.sleep(0.01)
    return True


def execute(
    *words: str | Path,
    cwd: Path,
    env: Mapping[str, str],
    output: Path,
    stdin: Path | None = None,
    timeout: float = HANG,
    user: str | None = None,
) -> tuple[int, bytes, bytes]:
    """Runs a program and all that it starts to their ends: status, output, errors. They are a
    session of their own, so that nothing of it outlives a test that gave up."""
    out, errors = output.with_suffix(".stdout"), output.with_suffix(".stderr")
    with (
        out.open("wb") as stdout,
        errors.open("wb") as stderr,
        open(stdin or os.devnull, "rb") as given,
    ):
        child = subprocess.Popen(
            [str(word) for word in words],
            cwd=cwd,
            env=dict(env),
            stdin=given,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
            user=user,
        )
        try:
            rc = child.wait(timeout)
            clean = end_session(child.pid, HANG)
        except BaseException:
            end_session(child.pid, 0)
            child.wait()
            shown = " ".join(map(str, words))
            print(f"{shown} was ended\n", errors.read_bytes()[-4000:].decode(errors="replace"))
            raise
    assert clean, f"{words[0]} left processes behind that do not end"
    return rc, out.read_bytes(), errors.read_bytes()


def tracing(out: Path, env: Mapping[str, str] | None = None) -> dict[str, str]:
    """The whole environment of a traced program whose traces go to `out`."""
    return environment({**intercept.settings(out), "DFTRACER_DISABLE_IO": "0", **(env or {})})


@contextlib.contextmanager
def fresh(*directories: Path) -> Iterator[None]:
    for directory in directories:
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
    yield


def both(
    *words: str | Path,
    place: Path,
    prepare: Callable[[Path], None] | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
    expect: int = 0,
    ignore: Iterable[str] = (),
    timeout: float = HANG,
    killed: bool = False,
) -> Seen:
    """Runs a program bare and traced, each in a new `place`/work that `prepare` fills, and demands
    the same status, output and files. `stdin`: a file below work. `ignore`: see tree()."""
    work, scratch, home, out = (place / name for name in ("work", "tmp", "home", "traces"))
    outcomes: dict[bool, Outcome] = {}
    out.mkdir()
    for traced in (False, True):
        with fresh(work, scratch, home):
            if prepare is not None:
                prepare(work)
            own = {"HOME": str(home), "TMPDIR": str(scratch), "TZ": "UTC", **(env or {})}
            rc, stdout, stderr = execute(
                *words,
                cwd=work,
                env=tracing(out, own) if traced else environment(own, enable=False),
                output=place / ("traced" if traced else "bare"),
                stdin=work / stdin if stdin else None,
                timeout=timeout,
            )
            left = Outcome(rc, stdout, stderr, tree(work, ignore), tree(scratch))
            outcomes[traced] = left
    compare(outcomes[False], outcomes[True])
    bare = outcomes[False]
    assert bare.rc == expect, f"status {bare.rc}: {bare.stdout[-2000:]!r}, {bare.stderr[-2000:]!r}"
    found = read_traces(out, work, killed=killed)
    runs = {image.run for image in found}
    assert len(runs) == 1, f"{words[0]}: {len(runs)} runs of {len(found)} programs"
    return Seen(found, work, outcomes[True])


def compare(bare: Outcome, traced: Outcome) -> None:
    said = f"\nbare: {bare.stderr[-2000:]!r}\ntraced: {traced.stderr[-2000:]!r}"
    assert traced.rc == bare.rc, f"status {traced.rc} instead of {bare.rc}{said}"
    assert traced.stdout == bare.stdout
    assert traced.stderr == bare.stderr
    for what, one, other in (
        ("files", bare.left, traced.left),
        ("temporary files", bare.temporary, traced.temporary),
    ):
        assert sorted(one) == sorted(other), f"other {what} than without tracing"
        different = {name: (one[name], other[name]) for name in one if one[name] != other[name]}
        assert different == {}, f"{what} that differ from those of the bare run"

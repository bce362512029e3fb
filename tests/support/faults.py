"""For the fault tests: programs that die, ways to finish for them, and what must be left then."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest

from support import traces
from support.build import ROOT, compile_c, prefix
from support.limits import HANG
from support.run import Result, environment, run

PROGRAMS = ROOT / "tests" / "faults" / "programs"
# What a program whose trace cannot be written says about it, and no more.
ONE_LINE = re.compile(r"dftracer: [^\n]+\n")
AT_MOST_ONE = re.compile(r"(dftracer: [^\n]+\n)?")
STRICT_BELOW = 3000  # lines; parsing larger files line by line takes too long for hundreds of runs
EVENT = re.compile(
    rb'^\{"id":(\d+),"name":"e","cat":"FAULTS","pid":(\d+),"tid":\d+,"ts":\d+,"dur":\d+,"ph":"X",'
    rb'"args":\{"hhash":"[0-9a-f]{16}","p_idx":-?\d+,"level":\d+,"w":(\d+),"i":(\d+)'
    rb'(?:,"s":"[^"\\]*")?\}\}$',
    re.MULTILINE,
)


@functools.cache
def program(name: str, *flags: str) -> Path:
    """One of tests/faults/programs, compiled; again when the header that they share changes."""
    header = hashlib.sha256((PROGRAMS / "faults.h").read_bytes()).hexdigest()[:16]
    warnings = ("-Wall", "-Wextra", "-Werror")
    return compile_c(PROGRAMS / f"{name}.c", None, "-O2", *warnings, f"-DHEADER=0x{header}", *flags)


def steps(
    *words: str | Path,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    enable: bool = True,
    expect: int | None = 0,
    stderr: str | re.Pattern[str] | None = "",
    timeout: float = HANG,
) -> Result:
    """The program that does as it is told (programs/steps.c)."""
    return run(
        program("steps"),
        *words,
        cwd=cwd,
        env=env,
        enable=enable,
        expect=expect,
        stderr=stderr,
        timeout=timeout,
    )


# ---- Finishing for the dead ----------------------------------------------------------------------


class Found(NamedTuple):
    """What dftracer_recover returned and found."""

    code: int
    spools: int
    recovered: int
    events: int
    alive: int
    unknown: int
    broken: int


def recover(
    directory: Path,
    *,
    force: bool = False,
    expect: int | None = 0,
    stderr: str | re.Pattern[str] | None = "",
) -> Found:
    """Through the C API, in a process of its own."""
    words = ["force"] if force else []
    done = run(
        program("recover"),
        directory,
        *words,
        enable=False,
        expect=expect,
        stderr=stderr,
    )
    return Found(*map(int, done.stdout.split()))


def command(*words: str | Path, expect: int | None = 0) -> Result:
    """The `dftracer` command of this tree, with the library that is under test."""
    library = prefix() / "lib" / "libdftracer_core.so"
    code = (
        "import sys, pathlib; from dftracer import _libcore; "
        f"_libcore.LIBRARY = pathlib.Path({str(library)!r}); "
        "from dftracer.commands._cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    return run(
        sys.executable,
        "-c",
        code,
        *words,
        env={"PYTHONPATH": str(ROOT / "python")},
        enable=False,
        expect=expect,
        stderr=None,
    )


# ---- What is left --------------------------------------------------------------------------------


@dataclass
class Left:
    """The events of a directory's traces: of whom (`w`) which numbers (`i`), in which process."""

    numbers: dict[int, list[int]] = field(default_factory=dict)
    by_process: Counter[tuple[Path, int]] = field(default_factory=Counter)
    files: list[Path] = field(default_factory=list)
    lost: int = 0

    def total(self) -> int:
        return sum(map(len, self.numbers.values()))

    def of(self, who: int) -> list[int]:
        return sorted(self.numbers.get(who, []))


def text_of(path: Path, *, whole: bool = True) -> tuple[bytes, bytes]:
    """The lines of a trace, and what follows the last whole member or line (nothing if `whole`)."""
    data = path.read_bytes()
    if not path.name.endswith(".gz"):
        end = data.rfind(b"\n") + 1
        assert end == len(data) or not whole, f"{path}: half a line"
        return data[:end], data[end:]
    end = 0
    while end + 20 <= len(data):
        size = struct.unpack_from("<I", data, end + 16)[0]
        if data[end : end + 4] != b"\x1f\x8b\x08\x04" or size == 0 or end + size > len(data):
            break
        end += size
    if not whole and end < len(data):
        # The last one may have been cut off; it must at least have begun as a member does.
        assert data[end : end + 4] == b"\x1f\x8b\x08\x04"[: len(data) - end], path
    else:
        assert end == len(data), f"{path}: not a whole number of members"
    members = traces.split_members(data[:end], path)
    return b"".join(member.text for member in members), data[end:]


def add_file(left: Left, path: Path, *, whole: bool = True) -> None:
    text, _ = text_of(path, whole=whole)
    left.files.append(path)
    lines = text.count(b"\n")
    if whole and lines < STRICT_BELOW:
        traces.read(path, open_parents=True)
    found = EVENT.findall(text)
    assert len(found) == text.count(b'"cat":"FAULTS"'), f"{path}: an event looks unlike the others"
    if found:
        ids, pids, whos, numbers = zip(*found)
        twice = len(ids) - len(set(ids))
        assert twice == 0, f"{path}: {twice} ids are there twice"
        for pid, count in Counter(pids).items():
            left.by_process[path, int(pid)] += count
        for who in set(whos):
            left.numbers.setdefault(int(who), [])
        lists = {who: left.numbers[int(who)] for who in set(whos)}
        for who, number in zip(whos, map(int, numbers)):
            lists[who].append(number)
    if whole:
        end = traces.parse_line(text[:-1].rsplit(b"\n", 1)[-1])
        assert end["name"] == "end", f"{path} ends with {end}"
        left.lost += end["args"].get("lost", 0)


def left_in(directory: Path, *, whole: bool = True) -> Left:
    """All that the traces of a directory hold."""
    left = Left()
    for path in traces.files(directory) if directory.is_dir() else []:
        add_file(left, path, whole=whole)
    return left


def assert_exactly(left: Left, wanted: Mapping[int, int]) -> None:
    """Of each, exactly the numbers from 0; `wanted` says how many."""
    expected = {who for who, count in wanted.items() if count > 0}
    assert sorted(expected - set(left.numbers)) == [], "of these there is nothing"
    assert sorted(set(left.numbers) - expected) == [], "of these there should be nothing"
    for who, count in wanted.items():
        numbers = left.of(who)
        if numbers != list(range(count)):
            raise AssertionError(f"of {who}: {difference(numbers, count)}")


def difference(numbers: Sequence[int], count: int) -> str:
    seen = Counter(numbers)
    missing = sorted(set(range(count)) - set(seen))
    twice = sorted(number for number, times in seen.items() if times > 1)
    other = sorted(set(seen) - set(range(count)))
    return (
        f"{len(numbers)} of {count} events; {len(missing)} missing {missing[:5]}, "
        f"{len(twice)} more than once {twice[:5]}, {len(other)} past the end {other[:5]}"
    )


def counters(path: Path) -> list[int]:
    """How many events each thread is known to have recorded."""
    data = path.read_bytes() if path.exists() else b""
    return list(struct.unpack(f"<{len(data) // 8}Q", data[: len(data) // 8 * 8]))


def assert_committed(left: Left, counted: Sequence[int]) -> None:
    """Every event that was recorded for sure, at most the one that was under way, none twice."""
    assert set(left.numbers) <= set(range(len(counted)))
    for who, count in enumerate(counted):
        numbers = left.of(who)
        n = len(numbers)
        if n not in (count, count + 1) or numbers != list(range(n)):
            raise AssertionError(f"thread {who}: {difference(numbers, count)}")


def nothing_hidden(directory: Path, *, unborn: bool = False) -> None:
    """No spool is left. `unborn`: but one that never held an event may be a living process's that
    is just starting, so it stays for a minute."""
    for path in traces.spools(directory) if directory.is_dir() else []:
        head = path.read_bytes()[:20].ljust(20, b"\0")
        assert unborn, f"{path} is left behind"
        assert path.name.endswith(".spool"), f"{path} is left behind"
        assert head[16:20] == b"\0\0\0\0", f"{path} is complete, and was not finished"


# ---- Processes -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ended:
    """How a process ended, with the core-dump flag that subprocess does not show."""

    status: int
    stdout: bytes
    stderr: bytes

    @property
    def signal(self) -> int:
        return os.WTERMSIG(self.status) if os.WIFSIGNALED(self.status) else 0

    @property
    def core(self) -> bool:
        return os.WCOREDUMP(self.status)


def run_raw(
    *words: str | Path,
    cwd: Path,
    enable: bool,
    env: Mapping[str, str] | None = None,
) -> Ended:
    """Runs a program to its end; the status is the kernel's own."""
    out, errors = cwd / ".stdout", cwd / ".stderr"
    with out.open("wb") as stdout, errors.open("wb") as stderr:
        child = subprocess.Popen(
            [str(word) for word in words],
            cwd=cwd,
            env=environment(env, enable=enable),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
        )
        _, status = os.waitpid(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    ended = Ended(status, out.read_bytes(), errors.read_bytes())
    out.unlink()
    errors.unlink()
    return ended


def kill(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL, and its streams closed."""
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()


# ---- Namespaces ----------------------------------------------------------------------------------


@functools.cache
def _permitted(*words: str) -> bool:
    return (
        shutil.which(words[0]) is not None
        and subprocess.run(words, capture_output=True, check=False).returncode == 0
    )


def need_mounts() -> None:
    if not _permitted("unshare", "-m", "sh", "-c", "mount -t tmpfs none /mnt"):
        pytest.skip("mounting in a namespace of its own is not permitted here")


def need_pid_namespaces() -> None:
    if not _permitted("unshare", "-pf", "true"):
        pytest.skip("pid namespaces are not permitted here")


def need_other_users() -> None:
    if not _permitted("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "true"):
        pytest.skip("running as another user is not permitted here")


def in_namespace(
    script: str,
    *,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    enable: bool = True,
    expect: int | None = 0,
    stderr: str | re.Pattern[str] | None = "",
) -> Result:
    """A shell script that may mount as it likes: nobody else sees it. `$steps` and `$recover` are
    the programs of that name."""
    need_mounts()
    words = {"steps": str(program("steps")), "recover": str(program("recover"))}
    return run(
        "unshare",
        "-m",
        "--propagation",
        "private",
        "sh",
        "-euc",
        script,
        cwd=cwd,
        env={**words, **(env or {})},
        enable=enable,
        expect=expect,
        stderr=stderr,
    )


def as_nobody(
    directory: Path,
    words: str,
    *,
    expect: int | None = 0,
    stderr: str | re.Pattern[str] | None = "",
) -> Result:
    """Steps as a user whom permissions and limits bind. To him `directory` is /mnt/d: those above
    it, and those that hold our programs, may be closed to others."""
    need_other_users()
    script = f"""
    mount -t tmpfs none /mnt
    mkdir /mnt/d /mnt/p
    cp "$steps" /mnt/p/steps
    cp {prefix()}/lib/*.so* /mnt/p
    mount --bind . /mnt/d
    cd /
    export LD_LIBRARY_PATH=/mnt/p
    exec setpriv --reuid=65534 --regid=65534 --clear-groups /mnt/p/steps {words}
    """
    return in_namespace(script, cwd=directory, expect=expect, stderr=stderr)

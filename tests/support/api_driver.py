"""A program that calls the C API as a test tells it to (tests/e2e/programs/api_driver.c).

A command is a tuple: the verb, then its words. None is a null pointer, bytes are bytes. The verbs:

    init LOG DIRS RANK, init_no_bind, fini, flush     prints what init returned
    begin SLOT NAME CATEGORY, end SLOT, drop SLOT
    int|float|string|bytes SLOT KEY VALUE
    spans COUNT NAME                                  that many spans, one after another
    instant NAME CATEGORY [KEY TYPE VALUE]...         TYPE: int, uint, float, bool, string
    complete NAME CATEGORY START DURATION [KEY TYPE VALUE]...
    counter NAME CATEGORY VALUE, metadata KEY VALUE
    active, time, threads, files, pid, say TEXT       print a line
    chdir DIR, setenv NAME VALUE, fork NAME, exec, kill, leave STATUS, return STATUS
    on WORKER VERB ...                                any of these on a thread; `exit` ends it
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Union

from support.build import ROOT, compile_c
from support.limits import HANG
from support.run import Result, run, start

SOURCE = ROOT / "tests" / "e2e" / "programs" / "api_driver.c"
PLAIN = re.compile(rb"[A-Za-z0-9_./:+-]+")
ENCODED = [
    bytes([byte]) if PLAIN.fullmatch(bytes([byte])) else b"%%%02X" % byte for byte in range(256)
]

Word = Union[str, bytes, int, float, Path, None]
Command = tuple[Word, ...]


def program(out: Path | None = None) -> Path:
    return compile_c(SOURCE, out, "-O1", "-Wall", "-Wextra", "-Werror")


def word(value: Word) -> bytes:
    if value is None:
        return b"NULL"
    raw = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")
    if not raw:
        return b"%"
    if raw == b"NULL":
        return b"NUL%4C"
    return raw if PLAIN.fullmatch(raw) else b"".join(map(ENCODED.__getitem__, raw))


def script(commands: Iterable[Command]) -> bytes:
    return b"".join(b" ".join(map(word, command)) + b"\n" for command in commands)


def play(
    *commands: Command,
    cwd: str | bytes | Path | None = None,
    args: Iterable[str | bytes] = (),
    env: Mapping[str, str] | None = None,
    enable: bool = True,
    expect: int | None = 0,
    stderr: str | re.Pattern[str] | None = "",
    executable: Path | None = None,
) -> Result:
    """Runs a driver through all commands."""
    wanted = dict(env or {})
    if any(command[0] == "exec" for command in commands):
        wanted["DRIVER_UNBUFFERED"] = "1"
    return run(
        executable or program(),
        *args,
        env=wanted,
        cwd=cwd,
        enable=enable,
        expect=expect,
        stderr=stderr,
        stdin=script(commands),
    )


class Driver:
    """A driver that lives beside the test and is told one thing after the other."""

    def __init__(
        self,
        *,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        enable: bool = True,
        executable: Path | None = None,
    ) -> None:
        self.process: subprocess.Popen[bytes] = start(
            executable or program(), cwd=cwd, env=env, enable=enable
        )

    def tell(self, *commands: Command) -> None:
        """Returns when the driver has done it; what the commands print is thrown away."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(script([*commands, ("say", "done-it")]))
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line == b"done-it\n":
                return
        raise AssertionError(f"the driver ended with status {self.process.wait()}")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def finish(self) -> Result:
        """Lets it come to its end, which must be a good one."""
        out, errors = self.process.communicate(timeout=HANG)
        result = Result(self.process.returncode, out.decode(), errors.decode())
        assert result.rc == 0, result
        assert result.stderr == "", result
        return result

    def __enter__(self) -> Driver:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.kill()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None and not stream.closed:
                stream.close()

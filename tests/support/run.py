"""Runs a program in an environment that holds nothing but what the test says."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from support.limits import HANG

# What programs and sanitizers need; nothing of a tracer, a launcher or a loader gets through.
KEPT = (
    *("PATH", "HOME", "TMPDIR", "TZ", "QEMU_LD_PREFIX"),
    *("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"),
)
# What a C++ program says that destroys a thread before it has ended: threads of gloo, now and then,
# when a rank leaves. Then torchrun ends the other ranks, too.
GLOO_ABORTED = "terminate called without an active exception"
# What starts a program of another machine; `make test-aarch64` sets it where the kernel does not
# do that by itself.
EMULATOR = os.environ.get("DFTRACER_TEST_EMULATOR", "").split()


@dataclass(frozen=True)
class Result:
    rc: int
    stdout: str
    stderr: str


def environment(env: Mapping[str, str] | None = None, *, enable: bool = True) -> dict[str, str]:
    clean = {name: os.environ[name] for name in KEPT if name in os.environ}
    clean["LC_ALL"] = "C.UTF-8"
    # What most tests are about is annotations; those about interception ask for it.
    clean["DFTRACER_DISABLE_IO"] = "1"
    if enable:
        clean["DFTRACER_ENABLE"] = "1"
    return {**clean, **(env or {})}


def _words(program: str | Path, args: tuple[str | bytes | Path | int, ...]) -> list[bytes]:
    before = EMULATOR if EMULATOR and is_foreign(Path(program)) else []
    words = (*before, program, *args)
    return [os.fsencode(str(word) if isinstance(word, int) else word) for word in words]


def is_foreign(program: Path) -> bool:
    """Whether it is an ELF file for aarch64."""
    if not program.is_file():
        return False
    with program.open("rb") as file:
        head = file.read(20)
    return head[:4] == b"\x7fELF" and head[18:20] == b"\xb7\x00"


def run(
    program: str | Path,
    *args: str | bytes | Path | int,
    env: Mapping[str, str] | None = None,
    cwd: str | bytes | Path | None = None,
    enable: bool = True,
    expect: int | None = 0,
    stderr: str | re.Pattern[str] | None = "",
    stdin: bytes = b"",
    timeout: float = HANG,
) -> Result:
    """Runs to the end. `expect`: exit status (negative: a signal; None: any). `stderr`: all that
    the program may print there (a pattern must match the whole; None: anything)."""
    done = subprocess.run(
        _words(program, args),
        env=environment(env, enable=enable),
        cwd=cwd,
        input=stdin,
        capture_output=True,
        timeout=timeout,
        check=False,
    )
    result = Result(
        done.returncode,
        done.stdout.decode(errors="surrogateescape"),
        done.stderr.decode(errors="surrogateescape"),
    )
    shown = f"{program}: status {result.rc}\nstdout: {result.stdout!r}\nstderr: {result.stderr!r}"
    assert expect is None or result.rc == expect, f"expected status {expect}; {shown}"
    if isinstance(stderr, str):
        assert result.stderr == stderr, shown
    elif stderr is not None:
        assert stderr.fullmatch(result.stderr), f"expected {stderr.pattern!r}; {shown}"
    return result


def start(
    program: str | Path,
    *args: str | bytes | Path | int,
    env: Mapping[str, str] | None = None,
    cwd: str | bytes | Path | None = None,
    enable: bool = True,
) -> subprocess.Popen[bytes]:
    """A program that runs beside the test, with pipes to all its streams."""
    return subprocess.Popen(
        _words(program, args),
        env=environment(env, enable=enable),
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )

"""The installed `dftracer` command, as a user runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from support.limits import HANG
from support.run import KEPT, Result

COMMAND = Path(sys.executable).with_name("dftracer")


def environment(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Nothing of a tracer, a launcher or a loader; `python` is the one that runs the tests."""
    clean = {name: os.environ[name] for name in KEPT if name in os.environ}
    clean["PATH"] = f"{COMMAND.parent}:{clean.get('PATH', '/usr/bin:/bin')}"
    clean["LC_ALL"] = "C.UTF-8"
    return {**clean, **(env or {})}


def dftracer(
    *words: str | Path,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    expect: int | None = 0,
    stdin: bytes = b"",
    through: tuple[str, ...] = (),
    timeout: float = HANG,
) -> Result:
    """Runs the command to its end. `expect`: exit status; negative for a signal, None for any."""
    done = subprocess.run(
        [*through, COMMAND, *words],
        cwd=cwd,
        env=environment(env),
        input=stdin,
        capture_output=True,
        timeout=timeout,
        check=False,
    )
    out = done.stdout.decode(errors="surrogateescape")
    err = done.stderr.decode(errors="surrogateescape")
    shown = f"{words}: status {done.returncode}\nstdout: {out!r}\nstderr: {err!r}"
    assert expect is None or done.returncode == expect, f"expected status {expect}; {shown}"
    assert "Traceback" not in err, shown
    return Result(done.returncode, out, err)


SUMMARY = re.compile(
    r"dftracer: (?:rank \d+: )?(?P<processes>[\d,]+) process(?:es)?, (?P<events>[\d,]+) events? on "
    r"(?P<files>[\d,]+) files?, (?P<bytes>[\d.]+ [KMG]?B) in [^:]+: (?P<where>.+)"
)


def summary(stderr: str) -> dict[str, str]:
    """The numbers of the one summary line."""
    found = [match for line in stderr.splitlines() if (match := SUMMARY.fullmatch(line))]
    assert len(found) == 1, f"not one summary: {stderr!r}"
    return {name: text.replace(",", "") for name, text in found[0].groupdict().items()}

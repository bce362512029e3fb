"""Programs that are slow on purpose, run under the tracer: the report says why."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support.command import dftracer

from dftracer import reports

SMALL_WRITES = """
import os
file = os.open("out", os.O_WRONLY | os.O_CREAT)
for _ in range(50_000):
    os.write(file, b"x" * 64)
"""

SMALL_READS = """
import os
with open("in", "wb") as file:
    file.write(bytes(1 << 20))
file = os.open("in", os.O_RDONLY)
for _ in range(50_000):
    os.read(file, 20)
"""

SYNCS = """
import os, time
file = os.open("out", os.O_WRONLY | os.O_CREAT)
end = time.monotonic() + 0.5
while time.monotonic() < end:
    os.write(file, bytes(1 << 16))
    os.fsync(file)
"""

FAILS = """
import os
for number in range(50_000):
    try:
        os.open(f"missing-{number % 10}", os.O_RDONLY)
    except FileNotFoundError:
        pass
"""

STATS = """
import os
for number in range(50_000):
    os.stat(".")
"""

# Reads of a pipe and a socket that wait for a child.
PIPE = """
import os, socket, time
ours, theirs = socket.socketpair()
out, into = os.pipe()
if os.fork() == 0:
    for _ in range(1200):
        time.sleep(0.0005)
        os.write(into, b"x" * 10)
        os.write(theirs.fileno(), b"x")
    os._exit(0)
os.close(into)
theirs.close()
while os.read(out, 10):
    os.read(ours.fileno(), 1)
"""

READS_A_TERMINAL = """
import os, pty, threading, time
main, side = pty.openpty()
def types():
    for _ in range(300):
        time.sleep(0.001)
        os.write(main, b"a line\\n")
thread = threading.Thread(target=types)
thread.start()
for _ in range(300):
    os.read(side, 100)
thread.join()
"""


def report_of(place: Path, program: str, **env: str) -> reports.Report:
    (place / "program.py").write_text(program)
    dftracer("run", "-o", "traces", "--", sys.executable, "program.py", cwd=place, env=env)
    return reports.load(place / "traces")


def findings(report: reports.Report) -> dict[str, dict[str, Any]]:
    return {row["rule"]: row for row in report.findings}


def test_many_small_writes(tmp_path: Path) -> None:
    found = findings(report_of(tmp_path, SMALL_WRITES))
    assert "50,000 writes" in found["small-writes"]["evidence"]
    assert "most of them are write" in found["small-writes"]["evidence"]
    assert "small-reads" not in found


@pytest.mark.long
def test_many_small_reads(tmp_path: Path) -> None:
    found = findings(report_of(tmp_path, SMALL_READS))
    assert "most of them are read" in found["small-reads"]["evidence"]
    assert "small-writes" not in found


@pytest.mark.long
def test_many_syncs(tmp_path: Path) -> None:
    with open(tmp_path / "probe", "wb", buffering=0) as file:
        began = time.monotonic()
        for _ in range(10):
            file.write(b"x")
            os.fsync(file)
    if time.monotonic() - began < 10 * 100e-6:
        pytest.skip("nothing has to be written to a disk here")
    found = findings(report_of(tmp_path, SYNCS))
    assert "fsync and similar" in found["syncs"]["evidence"]
    assert "metadata-storm" not in found


@pytest.mark.long
def test_many_failing_opens(tmp_path: Path) -> None:
    found = findings(report_of(tmp_path, FAILS))
    assert "50,000 of 50," in found["failed-calls"]["evidence"]
    assert "metadata-storm" in found


@pytest.mark.long
def test_many_looks_at_a_directory(tmp_path: Path) -> None:
    found = findings(report_of(tmp_path, STATS))
    assert "metadata-storm" in found
    assert "failed-calls" not in found


def test_a_program_that_waits_for_a_pipe(tmp_path: Path) -> None:
    report = report_of(tmp_path, PIPE)
    (read,) = (c for c in report.calls if (c["cat"], c["name"]) == ("POSIX pipe", "read"))
    assert read["count"] >= 2400
    assert read["total_ns"] > 0.1e9
    assert {"small-reads", "small-writes", "io-bound"}.isdisjoint(findings(report))


@pytest.mark.long
def test_a_program_that_waits_for_a_terminal(tmp_path: Path) -> None:
    report = report_of(tmp_path, READS_A_TERMINAL, DFTRACER_DATA_DIR="all")
    (read,) = (c for c in report.calls if (c["cat"], c["name"]) == ("POSIX pipe", "read"))
    assert read["total_ns"] > 0.1e9
    assert "io-bound" not in findings(report)

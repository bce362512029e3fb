"""Traces and spools of one machine are read and recovered by the other."""

from __future__ import annotations

import signal
import struct
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from support import intercept
from support.build import ROOT
from support.machines import AARCH64, BOTH, PROGRAMS, SITE, X86_64, Machine

WRITES = 3000  # more than a thread's first chunk holds
RECOVER = ROOT / "tests" / "faults" / "programs" / "recover.c"
WRITER = pytest.mark.parametrize("writer", BOTH, ids=str)
READER = pytest.mark.parametrize("reader", BOTH, ids=str)


def kill(
    machine: Machine,
    place: Path,
    writes: int,
    *options: str,
    env: Mapping[str, str] | None = None,
) -> tuple[float, float]:
    """A program that kills itself leaves its spool; between which times it ran. `options`: of the
    emulator."""
    program = machine.program(PROGRAMS / "writer.c")
    started = replace(machine, starts=(*machine.starts, *options))
    words = (program, place.with_suffix(".data"), writes, "kill")
    before = time.time()
    started.traced(place, *words, expect=-signal.SIGKILL, env=env)
    return before, time.time()


def spool_of(place: Path) -> bytes:
    (path,) = place.glob(".*.spool")
    return path.read_bytes()


def check_writes(place: Path, writes: int, before: float, after: float) -> None:
    (process,) = intercept.read(place, ended=False)
    found = process.named("pwrite", "pwrite64")
    assert [event.args["offset"] for event in found] == [8 * n for n in range(writes)]
    # A line of the clock that was never corrected may assume another rate; it starts right.
    slack = 1 + (after - before)
    for event in process.events:
        assert before - 1 < event.record["ts"] / 1e6 < after + slack, event


@READER
@WRITER
@pytest.mark.parametrize("writes", [10, WRITES])
def test_spool(tmp_path: Path, writer: Machine, reader: Machine, writes: int) -> None:
    place = tmp_path / "traces"
    before, after = kill(writer, place, writes)
    recovered = reader.run(reader.program(RECOVER, f"-I{RECOVER.parent}"), place)
    code, spools, done, events, alive, unknown, broken = map(int, recovered.stdout.split())
    assert (code, spools, done, alive, unknown, broken) == (0, 1, 1, 0, 0, 0)
    assert events > 0
    check_writes(place, writes, before, after)


@READER
@WRITER
def test_trace(tmp_path: Path, writer: Machine, reader: Machine) -> None:
    """Every verb that reads says the same on both."""
    place = tmp_path / "traces"
    program = writer.program(PROGRAMS / "writer.c")
    writer.traced(place, program, tmp_path / "data", WRITES)
    for verb in (("stats", "--json", "--top", "0"), ("info", "--json"), ("validate",)):
        assert reader.command(*verb, place).stdout == X86_64.command(*verb, place).stdout, verb
    exported = reader.command("export", "--to", "chrome", "--output", "-", place).stdout
    assert exported.count('"pwrite') == WRITES


@READER
@pytest.mark.skipif(not (SITE / "duckdb").is_dir(), reason="no duckdb for aarch64 could be had")
def test_both_in_one_directory(tmp_path: Path, reader: Machine) -> None:
    """A run whose processes were on different machines is one report."""
    place = tmp_path / "traces"
    for machine in BOTH:
        program = machine.program(PROGRAMS / "writer.c")
        machine.traced(place, program, tmp_path / machine.name, 10)
    words = ("report", "--json", "--no-page", place)
    assert reader.command(*words).stdout == X86_64.command(*words).stdout


# The frequencies that qemu gives these processors.
@pytest.mark.parametrize(("processor", "hertz"), [("max", 10**9), ("cortex-a72", 62_500_000)])
def test_counter(tmp_path: Path, processor: str, hertz: int) -> None:
    """aarch64 records the generic timer, and its rate from the start."""
    place = tmp_path / "traces"
    before, after = kill(AARCH64, place, 10, "-cpu", processor)
    head = spool_of(place)
    counter, count = struct.unpack_from("<II", head, 4096 + 48)
    _, _, rate = struct.unpack_from("<QQQ", head, 4096 + 56)
    assert (counter, count) == (2, 1)
    assert rate == (10**9 << 32) // hertz
    X86_64.run(X86_64.program(RECOVER, f"-I{RECOVER.parent}"), place)
    check_writes(place, 10, before, after)


def test_large_pages(tmp_path: Path) -> None:
    """With pages of 64 KiB every mapping starts at one, and other machines read the spool."""
    place = tmp_path / "traces"
    pages = AARCH64.program(PROGRAMS / "pages.c", "-shared", "-fPIC")
    preload = {"LD_PRELOAD": f"{pages}:{AARCH64.settings(place)['LD_PRELOAD']}"}
    before, after = kill(AARCH64, place, WRITES, env=preload)
    head = spool_of(place)
    # The table of segments ends the head: struct SpoolHead in src/buffer/layout.hpp.
    table = 3208 - 128 * 16
    (segments,) = struct.unpack_from("<I", head, table - 8)
    assert segments > 1
    for n in range(segments):
        offset, size, chunks = struct.unpack_from("<QII", head, table + 16 * n)
        assert offset % 65536 == 0
        assert offset + size * chunks <= len(head)
    X86_64.run(X86_64.program(RECOVER, f"-I{RECOVER.parent}"), place)
    check_writes(place, WRITES, before, after)

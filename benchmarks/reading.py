#!/usr/bin/env python3
"""Measures how fast traces are read, beside DuckDB's own reader and `dftracer_stats`.

    python benchmarks/reading.py [--events N] [--large N] [--repeats N] [--no-peer]

The trace is made by this project's library, from real calls. Everything takes turns in one run;
times are the best of the repeats, since what disturbs a run only ever adds to it.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from subjects import ROOT, compile_program, installed, libraries
from table import Row, machine, markdown
from venvs import install

BIN = Path(sys.executable).parent
THREADS = 2
UTILS = "dftracer-utils==0.0.14"

OURS = """
import sys
from dftracer.trace import summarise_all
found = summarise_all(sys.argv[1:], threads={threads}, by_path=False)
print(sum(row.count for row in found.rows), sum(row.total for row in found.rows) // 1000)
"""
ARROW = """
import sys, duckdb
from dftracer.trace import read
duckdb.execute("set threads = {threads}; set enable_progress_bar = false")
events = read(sys.argv[1:], columns=["name", "dur"], threads={threads})
rows = duckdb.sql("select name, count(*), sum(dur) from events group by all").fetchall()
print(sum(row[1] for row in rows), int(sum(row[2] for row in rows)))
"""
DUCKDB = """
import sys, duckdb
duckdb.execute("set threads = {threads}; set enable_progress_bar = false")
rows = duckdb.sql('''select name, count(*), sum(dur) from read_json($1,
  format = 'newline_delimited', ignore_errors = true,
  columns = {{name: 'varchar', cat: 'varchar', ph: 'varchar', dur: 'bigint'}})
  where ph = 'X' and cat <> 'dftracer' group by all''', params=[sys.argv[1:]]).fetchall()
print(sum(row[1] for row in rows), int(sum(row[2] for row in rows)))
"""


@dataclass
class Figures:
    seconds: float
    cpu: float
    peak: int  # bytes
    text: str


def run(command: Sequence[str | Path], directory: Path) -> Figures:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    # A process of its own for each, or the peak of one would be that of all before it.
    wrapper = [sys.executable, "-c", WRAPPER, *map(str, command)]
    done = subprocess.run(wrapper, cwd=directory, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))[:200]}\n{done.stderr[-2000:]}")
    *text, peak = done.stdout.splitlines()
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Figures(seconds, cpu, int(peak) * 1024, "\n".join(text))


WRAPPER = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, flush=True)
sys.exit(code)
"""


def script(text: str, trace: Path) -> list[str | Path]:
    return [sys.executable, "-c", text.format(threads=THREADS), trace]


def make_trace(events: int, directory: Path, prefix: Path) -> Path:
    program = compile_program("reading.c", directory / "reading", [])
    work = directory / f"work-{events}"
    work.mkdir()
    env = {**os.environ, "DFTRACER_ENABLE": "1", "DFTRACER_LOG_FILE": "t", "DFTRACER_SUMMARY": "0"}
    env["LD_PRELOAD"] = str(libraries(prefix) / "libdftracer_preload.so")
    subprocess.run([program, str(events)], cwd=work, env=env, check=True)
    (trace,) = work.glob("t-*.pfw.gz")
    return trace


def peer_command(venv: Path) -> Path | None:
    return None if install(venv, UTILS) else venv / "bin" / "dftracer_stats"


def best(repeats: int, *works: Callable[[], Figures]) -> list[Figures]:
    """Each in turn, again and again."""
    seen: list[list[Figures]] = [[] for _ in works]
    for _ in range(repeats):
        for work, list_ in zip(works, seen):
            list_.append(work())
    for list_ in seen:
        list_[0].seconds = min(figures.seconds for figures in list_)
        list_[0].cpu = min(figures.cpu for figures in list_)
        list_[0].peak = max(figures.peak for figures in list_)
    return [list_[0] for list_ in seen]


def speed(events: int, figures: Figures) -> str:
    return f"{figures.seconds:.2f} s, {events / figures.cpu / 1e6:.2f} M events/s and core"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument(
        "--large", type=int, default=100_000_000, help="for memory; 0: not measured"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--prefix", type=Path, default=installed())
    parser.add_argument("--scratch", type=Path, default=None)
    parser.add_argument("--peer-venv", type=Path, default=ROOT / "build" / "utils-venv")
    parser.add_argument("--no-peer", action="store_true")
    options = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="dftracer-reading-", dir=options.scratch))
    try:
        rows = measure(options, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    load = os.getloadavg()[0]
    print(f"On {machine()}; load average {load:.1f} at the end.\n")
    print(markdown("Reading of traces", rows))
    return 0


PASS = [sys.executable, "-c", "pass"]


def _seconds(command: Sequence[str | Path]) -> float:
    began = time.monotonic()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.monotonic() - began


def measure(options: argparse.Namespace, scratch: Path) -> list[Row]:
    events = options.events
    trace = make_trace(events, scratch, options.prefix.resolve())
    millions = f"{events / 1e6:g} M"
    ours, arrow, duckdb = best(
        options.repeats,
        lambda: run(script(OURS, trace), scratch),
        lambda: run(script(ARROW, trace), scratch),
        lambda: run(script(DUCKDB, trace), scratch),
    )
    if not ours.text == arrow.text == duckdb.text:
        raise SystemExit(f"answers differ: {ours.text}, {arrow.text}, {duckdb.text}")
    rows = [
        Row(
            f"count and sum of durations by name, {millions} events, {THREADS} threads",
            ">= 4 x DuckDB's read_json",
            ours=speed(events, ours),
            bare=f"DuckDB: {duckdb.seconds:.2f} s",
            met=duckdb.seconds >= 4 * ours.seconds,
        ),
        Row(
            "the same, events per second and core",
            ">= 2.5 M",
            ours=f"{events / ours.cpu / 1e6:.2f} M",
            met=events / ours.cpu >= 2.5e6,
        ),
        Row("the same, DuckDB on our Arrow stream", ours=speed(events, arrow)),
    ]
    peer = None if options.no_peer else peer_command(options.peer_venv)
    if peer is not None:
        index = scratch / "index"

        def stats() -> Figures:
            # Its answers come from an index: reading the trace is making that.
            shutil.rmtree(index, ignore_errors=True)
            index.mkdir()
            words = ["--files", trace, "--index-dir", index, "--executor-threads", str(THREADS)]
            return run([peer, *words, "--report", "names", "--json"], scratch)

        (theirs,) = best(1, stats)
        rows.append(
            Row(
                "the same, beside dftracer_stats",
                ">= 3 x dftracer_stats",
                ours=f"{ours.seconds:.2f} s",
                peer=f"{theirs.seconds:.2f} s, {theirs.peak / 1e6:.0f} MB ({UTILS})",
                met=theirs.seconds >= 3 * ours.seconds,
            )
        )
    peak = f"{ours.peak / 1e6:.0f} MB, Arrow {arrow.peak / 1e6:.0f} MB"
    met = max(ours.peak, arrow.peak) <= 300e6
    if options.large:
        trace.unlink()
        large = make_trace(options.large, scratch, options.prefix.resolve())
        big, big_arrow = best(
            1,
            lambda: run(script(OURS, large), scratch),
            lambda: run(script(ARROW, large), scratch),
        )
        peak += f"; {options.large / 1e6:g} M events: {big.peak / 1e6:.0f} MB, "
        peak += f"Arrow {big_arrow.peak / 1e6:.0f} MB"
        met = met and max(big.peak, big_arrow.peak) <= 300e6 and big.peak <= 1.2 * ours.peak
        rows.append(Row("the same, larger", ours=speed(options.large, big)))
    rows.append(Row(f"peak memory, {millions} events", "<= 300 MB, flat", ours=peak, met=met))
    small = make_trace(1000, scratch, options.prefix.resolve())
    command = [BIN / "dftracer", "info", small]
    info = min(_seconds(command) for _ in range(options.repeats * 5))
    rows.append(
        Row(
            "dftracer info, small trace, whole command",
            "<= 150 ms",
            bare=f"python -c pass: {min(_seconds(PASS) for _ in range(9)) * 1e3:.0f} ms",
            ours=f"{info * 1e3:.0f} ms",
            met=info <= 0.150,
        )
    )
    return rows


if __name__ == "__main__":
    sys.exit(main())

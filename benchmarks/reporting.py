#!/usr/bin/env python3
"""Measures how fast `dftracer report` is, and how much memory it takes; then other tools beside it.

    python benchmarks/reporting.py [--events N] [--small N] [--large N] [--repeats N] [--no-peer]

The traces are made by this project's library, from real calls, as in reading.py; those of a
training with DataLoader workers are written by loader_trace.py. Times are the best of the repeats
of the whole command, which also writes the page; memory is the largest of all. The analyzer runs
once.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from errors import BenchError
from loader_trace import make_loader_trace
from reading import BIN, THREADS, Figures, best, make_trace, run
from report_peers import Plan, peer_rows
from subjects import installed
from table import Row, machine, markdown


def measure(events: int, repeats: int, scratch: Path, prefix: Path) -> Figures:
    trace = make_trace(events, scratch, prefix)
    command = [BIN / "dftracer", "report", trace, "--threads", str(THREADS)]
    (figures,) = best(repeats, lambda: run(command, scratch))
    trace.unlink()
    return figures


def measure_loader(events: int, repeats: int, scratch: Path, compute: int) -> Figures:
    """Of a training with batches: pieces of each are kept where training waits for it."""
    trace = make_loader_trace(events, scratch / f"loader-{compute}", compute)
    command = [BIN / "dftracer", "report", trace, "--threads", str(THREADS)]
    (figures,) = best(repeats, lambda: run(command, scratch))
    shutil.rmtree(trace)
    return figures


def row(
    events: int, figures: Figures, seconds: float = 0, memory: float = 0, what: str = ""
) -> Row:
    """Without a bar where none is given."""
    return Row(
        f"dftracer report with its page, {events:,} events{what}, {THREADS} threads",
        f"<= {seconds:g} s, {memory / 1e9:g} GB" if seconds else "",
        ours=f"{figures.seconds:.2f} s, CPU {figures.cpu:.1f} s, {figures.peak / 1e6:.0f} MB",
        met=figures.seconds <= seconds and figures.peak <= memory if seconds else None,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--small", type=int, default=100_000)
    parser.add_argument("--large", type=int, default=0, help="one report of so many, once; 0: none")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--prefix", type=Path, default=installed())
    parser.add_argument("--scratch", type=Path, default=None)
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument("--peer-events", type=int, default=18_000)
    parser.add_argument("--peer-seconds", type=float, default=360, help="how long a peer may take")
    parser.add_argument("--darshan-log", type=Path, help="default: an example that PyDarshan ships")
    options = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="dftracer-reporting-", dir=options.scratch))
    try:
        prefix = options.prefix.resolve()
        bars = ((options.small, 2.0, 1e9), (options.events, 15.0, 1e9))
        rows = [
            row(events, measure(events, options.repeats, scratch, prefix), seconds, memory)
            for events, seconds, memory in bars
        ]
        for compute, what in ((1_500, " of a training"), (100, " of one that waits for data")):
            figures = measure_loader(options.events, options.repeats, scratch, compute)
            rows.append(row(options.events, figures, 15.0, 1e9, what))
        if options.large:
            rows.append(row(options.large, measure(options.large, 1, scratch, prefix)))
        if not options.no_peer:
            log = options.darshan_log.resolve() if options.darshan_log else None
            limit = options.peer_seconds
            plan = Plan(options.peer_events, options.repeats, limit, prefix, log)
            rows += peer_rows(plan, scratch)
    except BenchError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print(f"On {machine()}; load average {os.getloadavg()[0]:.1f} at the end.\n")
    print(markdown("Reports", rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())

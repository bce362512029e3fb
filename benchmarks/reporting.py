#!/usr/bin/env python3
"""Measures how fast `dftracer report` is, and how much memory it takes.

    python benchmarks/reporting.py [--events N] [--small N] [--repeats N]

The traces are made by this project's library, from real calls, as in reading.py. Times are the best
of the repeats of the whole command; memory is the largest of all.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from reading import BIN, THREADS, Figures, best, make_trace, run
from subjects import ROOT
from table import Row, machine, markdown


def measure(events: int, repeats: int, scratch: Path, prefix: Path) -> Figures:
    trace = make_trace(events, scratch, prefix)
    command = [BIN / "dftracer", "report", trace, "--threads", str(THREADS)]
    (figures,) = best(repeats, lambda: run(command, scratch))
    trace.unlink()
    return figures


def row(events: int, figures: Figures, seconds: float, memory: float) -> Row:
    return Row(
        f"dftracer report, terminal summary, {events:,} events, {THREADS} threads",
        f"<= {seconds:g} s, {memory / 1e9:g} GB",
        ours=f"{figures.seconds:.2f} s, CPU {figures.cpu:.1f} s, {figures.peak / 1e6:.0f} MB",
        met=figures.seconds <= seconds and figures.peak <= memory,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--small", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--prefix", type=Path, default=ROOT / "build" / "stage")
    parser.add_argument("--scratch", type=Path, default=None)
    options = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="dftracer-reporting-", dir=options.scratch))
    try:
        prefix = options.prefix.resolve()
        bars = ((options.small, 2.0, 1e9), (options.events, 15.0, 1e9))
        rows = [
            row(events, measure(events, options.repeats, scratch, prefix), seconds, memory)
            for events, seconds, memory in bars
        ]
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print(f"On {machine()}; load average {os.getloadavg()[0]:.1f} at the end.\n")
    print(markdown("Reports", rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())

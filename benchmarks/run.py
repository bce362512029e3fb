#!/usr/bin/env python3
"""Measures what tracing costs, beside the bare program and a peer, and prints one table.

`make bench` runs it after installing into build/stage. docs/performance.md says what the rows mean.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

from measures import Measures
from sizes import FULL, QUICK
from subjects import ROOT, Bench, BenchError, build_all
from table import Row, machine, markdown, write_document


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--prefix", type=Path, default=ROOT / "build" / "stage", help="installation"
    )
    parser.add_argument("--quick", action="store_true", help="fewer events, less than a minute")
    parser.add_argument("--no-peer", action="store_true", help="leave the peer out")
    parser.add_argument("--only", default="", help="measures whose name contains this")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    parser.add_argument("--write", action="store_true", help="update docs/performance.md")
    return parser.parse_args()


def measure(options: argparse.Namespace) -> list[Row]:
    out = ROOT / "build" / "bench"
    venv = None if options.no_peer else ROOT / "build" / "peer-venv"
    measures = Measures(
        Bench(build_all(options.prefix.resolve(), venv, out), out), QUICK if options.quick else FULL
    )
    rows: list[Row] = []
    for each in measures.all():
        if options.only not in each.__name__:
            continue
        began = time.monotonic()
        rows += each()
        print(f"{each.__name__}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    return rows


def main() -> int:
    options = parse_arguments()
    load = os.getloadavg()[0]
    try:
        rows = measure(options)
    except BenchError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 1
    where = f"On {machine()}; load average {load:.1f} at the start."
    text = f"{where}\n\n{markdown(rows)}"
    print(text)
    if options.json is not None:
        figures = {"machine": machine(), "load": load, "rows": [row.as_json() for row in rows]}
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    if options.write:
        write_document(ROOT / "docs" / "performance.md", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

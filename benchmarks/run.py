#!/usr/bin/env python3
"""Measures what tracing costs, beside the bare program and peers, and prints tables.

`make bench` runs it on the wheel that it installed; docs/performance.md explains the rows.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from annotations import Annotations
from errors import BenchError
from interception import Interception
from lttng import Lttng
from measures import Measures
from python_annotations import PythonAnnotations, python_subjects
from runner import Bench
from sizes import FULL, QUICK
from subjects import (
    ROOT,
    Subjects,
    annotated_subjects,
    installed,
    peer_prefix,
    preloaded_subjects,
)
from table import Row, machine, markdown, write_document


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prefix", type=Path, default=installed(), help="installation")
    parser.add_argument("--quick", action="store_true", help="fewer events, a few minutes")
    parser.add_argument("--no-peer", action="store_true", help="leave the peers out")
    parser.add_argument("--only", default="", help="measures whose name contains this")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    parser.add_argument("--write", action="store_true", help="update docs/performance.md")
    return parser.parse_args()


def measure(options: argparse.Namespace) -> dict[type[Measures], list[Row]]:
    """The rows of each table. Programs are built only for measures that are asked for."""
    out = ROOT / "build" / "bench"
    out.mkdir(parents=True, exist_ok=True)
    prefix = options.prefix.resolve()
    peer = None if options.no_peer else peer_prefix(ROOT / "build" / "peer-venv")
    sizes = QUICK if options.quick else FULL
    lttng = Lttng(wanted=not options.no_peer)
    kinds: list[tuple[type[Measures], Callable[[], Subjects]]] = [
        (Annotations, lambda: annotated_subjects(prefix, peer, out)),
        (Interception, lambda: preloaded_subjects(prefix, peer, lttng, out)),
        (PythonAnnotations, lambda: python_subjects(peer, out, not options.no_peer)),
    ]
    chosen = [(kind, make) for kind, make in kinds if kind.names_with(options.only)]
    benches: dict[type[Measures], Bench] = {}
    try:
        # All programs before the first measure: what is missing should be said at once.
        for kind, make_subjects in chosen:
            benches[kind] = Bench(make_subjects(), out)
        return {kind: rows(kind(bench, sizes), options.only) for kind, bench in benches.items()}
    finally:
        for bench in benches.values():
            bench.clean()
        lttng.stop()


def rows(measures: Measures, only: str) -> list[Row]:
    found: list[Row] = []
    for name in measures.names_with(only):
        began = time.monotonic()
        found += measures.rows(name)
        print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    return found


def main() -> int:
    options = parse_arguments()
    load = os.getloadavg()[0]
    try:
        found = measure(options)
    except BenchError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 1
    where = f"On {machine()}; load average {load:.1f} at the start."
    print("\n\n".join([where, *(markdown(kind.title, table) for kind, table in found.items())]))
    if options.json is not None:
        as_json = [row.as_json() for table in found.values() for row in table]
        figures = {"machine": machine(), "load": load, "rows": as_json}
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    if options.write:
        noted = (markdown(kind.title, table, kind.notes) for kind, table in found.items())
        write_document(ROOT / "docs" / "performance.md", "\n\n".join([where, *noted]))
    return 0


if __name__ == "__main__":
    sys.exit(main())

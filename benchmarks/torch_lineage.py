#!/usr/bin/env python3
"""Measures what batch lineage adds to a DataLoader, and prints a table.

    python benchmarks/torch_lineage.py [--rounds 5]

Each figure is the fastest of all rounds: what else the machine does only adds to it. The worker and
the training process of a batch are measured apart; the bar is for their sum.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from table import Row, markdown

PROGRAM = Path(__file__).parent / "programs" / "loader_batches.py"
MODES = ("bare", "events", "lineage")
BATCH_BAR = 2000.0  # nanoseconds
SAMPLE_BAR = 200.0
SAMPLES = 32  # by which the two sizes of a batch differ

Figures = dict[str, float]


def measure(mode: str) -> Figures:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("DFTRACER_")}
    on = {"DFTRACER_ENABLE": "1", "DFTRACER_DISABLE_IO": "1", "DFTRACER_SUMMARY": "0"}
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run(
            [sys.executable, str(PROGRAM), mode],
            cwd=directory,
            env={**kept, **on, "OMP_NUM_THREADS": "1"},
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
    return {what: min(times) for what, times in json.loads(done.stdout).items()}


def rows(found: dict[str, Figures]) -> list[Row]:
    def of(mode: str, what: str) -> tuple[float, float]:
        """A batch without its samples, and a sample."""
        one, many = found[mode][f"{what} 1"], found[mode][f"{what} {1 + SAMPLES}"]
        sample = (many - one) / SAMPLES
        return one - sample, sample

    def row(what: str, bar: float | None, values: list[float]) -> Row:
        bare, events, lineage = values
        added = lineage - events
        return Row(
            what,
            f"≤ {bar:,.0f} ns" if bar is not None else "",
            f"{bare:,.0f} ns",
            f"{events - bare:+,.0f} ns without lineage, {added:+,.0f} ns for lineage",
            met=added <= bar if bar is not None else None,
        )

    training = [found[mode]["training"] for mode in MODES]
    worker = [of(mode, "worker")[0] for mode in MODES]
    return [
        row("a batch: both processes", BATCH_BAR, [a + b for a, b in zip(training, worker)]),
        row("… in the training process", None, training),
        row("… in a worker", None, worker),
        row("… in a worker, of a stream", None, [of(mode, "stream")[0] for mode in MODES]),
        row("… without workers", BATCH_BAR, [of(mode, "none")[0] for mode in MODES]),
        row("a sample, in a worker", SAMPLE_BAR, [of(mode, "worker")[1] for mode in MODES]),
        row("… of a stream", SAMPLE_BAR, [of(mode, "stream")[1] for mode in MODES]),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    found: dict[str, Figures] = {}
    for _ in range(options.rounds):
        for mode in MODES:
            new = measure(mode)
            old = found.setdefault(mode, new)
            found[mode] = {what: min(time, old[what]) for what, time in new.items()}
    table = rows(found)
    print(markdown("Batch lineage in PyTorch", table))
    return 0 if all(row.met is not False for row in table) else 1


if __name__ == "__main__":
    sys.exit(main())

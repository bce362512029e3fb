#!/usr/bin/env python3
"""Predicts trainings with other settings, runs them, and prints how far off the predictions are.

    python benchmarks/whatif.py [--only NAME]

Each program is recorded once with its own settings. `dftracer whatif` predicts its variants from
that trace alone; then each variant runs. The bar is 10 % of the measured step time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from dftracer import reports
from dftracer._format import duration
from dftracer.reports.whatif import UNCHANGED, Change, predict, signed

PROGRAM = Path(__file__).parent / "programs" / "loader_settings.py"
BAR = 10.0  # percent


class Variant(NamedTuple):
    change: Change
    settings: dict[str, Any]  # of the program, that differ with it


def workers(count: int) -> Variant:
    return Variant(Change(workers=count), {"workers": count})


def prefetch(count: int) -> Variant:
    return Variant(Change(prefetch=count), {"prefetch": count})


# What each program does, and its variants.
PROGRAMS: dict[str, tuple[dict[str, Any], list[Variant]]] = {
    "reads slowly": (
        {"read": 0.08, "decode": 0.01, "step": 0.04},
        [
            workers(1),
            workers(4),
            workers(8),
            Variant(Change(reads=2.0), {"read": 0.04}),
            Variant(Change(workers=4, reads=2.0), {"workers": 4, "read": 0.04}),
        ],
    ),
    "decodes slowly": (
        {"decode": 0.12, "step": 0.05},
        [
            workers(1),
            workers(4),
            workers(8),
            Variant(Change(decode=2.0), {"decode": 0.06}),
            Variant(Change(workers=0), {"workers": 0}),
        ],
    ),
    "has a long tail": (
        {"decode": 0.06, "tail": 1.2, "step": 0.06, "batches": 80},
        [workers(4), workers(8), prefetch(8), Variant(Change(decode=2.0), {"decode": 0.03})],
    ),
    "restarts workers": (
        {"decode": 0.04, "start": 0.8, "batches": 8, "passes": 6, "step": 0.06},
        [
            workers(1),
            workers(4),
            Variant(Change(persistent=True), {"persistent": True}),
            Variant(Change(persistent=True, workers=4), {"persistent": True, "workers": 4}),
        ],
    ),
    "computes": (
        {"decode": 0.04, "step": 0.1},
        [workers(1), workers(4), prefetch(4), Variant(Change(decode=2.0), {"decode": 0.02})],
    ),
    "decodes on the processor": (
        {"rounds": 500, "step": 0.01, "workers": 1},
        [workers(2), workers(4), prefetch(4)],
    ),
}


def measure(settings: dict[str, Any], traces: Path) -> reports.Report:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("DFTRACER_")}
    command = [sys.executable, "-m", "dftracer", "run", "-q", "--torch", "-o", str(traces), "--"]
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run(
            [*command, sys.executable, str(PROGRAM), json.dumps(settings)],
            cwd=directory,
            env={**kept, "OMP_NUM_THREADS": "1"},
            check=True,
            stderr=subprocess.DEVNULL,
        )
    return reports.load(traces)


def step_of(report: reports.Report) -> float:
    times = report.steps.column("dur_ns")
    return sum(times) / len(times)


def training_of(report: reports.Report) -> float:
    """From the first start of workers, or step, to the end of the last step: the job without the
    start and the end of the program."""
    starts, times = report.steps.column("start_ns"), report.steps.column("dur_ns")
    first = min([*starts, *report.worker_starts.column("start_ns")])
    return max(start + time for start, time in zip(starts, times)) - first


def check(name: str, place: Path) -> list[tuple[str, ...]]:
    """One row per variant; the last cell is the error in percent."""
    settings, variants = PROGRAMS[name]
    base = measure(settings, place / "base")
    rows = predict(base, [variant.change for variant in variants])
    found = {row["change"]: row for row in rows}
    job = base.overview.dicts()[0]["job_ns"]
    lines = [_line(name, found[UNCHANGED], base, base, job)]
    for number, variant in enumerate(variants):
        row = found.get(str(variant.change))
        if row is None:
            lines.append((name, str(variant.change), "refused", "", "", "", "", "inf"))
            continue
        there = measure({**settings, **variant.settings}, place / f"variant-{number}")
        lines.append(_line(name, row, base, there, job))
    return lines


def _line(
    name: str, row: dict[str, Any], base: reports.Report, there: reports.Report, job: int
) -> tuple[str, ...]:
    step = step_of(there)
    error = 100 * (row["step_ns"] / step - 1)
    whole = training_of(base) + row["job_ns"] - job
    interval = f"{duration(row['step_low_ns'])} to {duration(row['step_high_ns'])}"
    return (
        name,
        row["change"],
        duration(row["step_ns"]),
        interval,
        duration(step),
        signed(error),
        signed(100 * (whole / training_of(there) - 1)),
        str(error),
    )


HEAD = ("program", "change", "predicted step", "95 % interval", "measured", "error", "of training")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=PROGRAMS)
    options = parser.parse_args()
    lines: list[tuple[str, ...]] = []
    print(f"| {' | '.join(HEAD)} |\n|{' --- |' * len(HEAD)}", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        for name in [options.only] if options.only else PROGRAMS:
            for line in check(name, Path(directory) / name):
                print(f"| {' | '.join(line[:-1])} |", flush=True)
                lines.append(line)
    errors = [abs(float(line[-1])) for line in lines if line[1] != UNCHANGED]
    met = sum(error <= BAR for error in errors)
    print(f"\n{met} of {len(errors)} predictions are off by at most {BAR:.0f} %; the largest error "
          f"is {max(errors):.1f} %")  # fmt: skip
    return 0 if met == len(errors) else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Measures what recording collectives adds to PyTorch, and prints a table.

    python benchmarks/torch_collectives.py [--rounds 5]

Each figure is the fastest of all rounds: what else the machine does only adds to it. Bare and
traced programs take turns; steps do so in one process.
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

PROGRAM = Path(__file__).parent / "programs" / "collective_calls.py"
MODES = ("bare", "traced")
CALL_BAR = 500.0  # nanoseconds
STEP_BAR = 0.01  # of a step
NAMES = {
    "nothing": "a collective, without what it does",
    "call": "… with gloo, one rank",
    "async": "… and the wait for it",
    "step": "a training step with DistributedDataParallel",
}


def measure(mode: str) -> dict[str, float]:
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


def row(what: str, bare: float, traced: float) -> Row:
    added = traced - bare
    if what == "step":
        share = added / bare
        said = f"{share:+.1%}"
        return Row(NAMES[what], "≤ 1 %", f"{bare / 1e6:.2f} ms", said, met=share <= STEP_BAR)
    bar = f"≤ {CALL_BAR:,.0f} ns" if what == "nothing" else ""
    met = added <= CALL_BAR if what == "nothing" else None
    return Row(NAMES[what], bar, f"{bare:,.0f} ns", f"{added:+,.0f} ns", met=met)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    found: dict[str, dict[str, float]] = {}
    for _ in range(options.rounds):
        for mode in MODES:
            new = measure(mode)
            old = found.setdefault(mode, new)
            found[mode] = {what: min(time, old[what]) for what, time in new.items()}
    found["bare"]["step"] = found["traced"]["bare step"]
    table = [row(what, found["bare"][what], found["traced"][what]) for what in NAMES]
    print(markdown("Collectives in PyTorch", table))
    return 0 if all(one.met is not False for one in table) else 1


if __name__ == "__main__":
    sys.exit(main())

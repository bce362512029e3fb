#!/usr/bin/env python3
"""Measures what tracing costs a compiled PyTorch model, and prints a table.

Needs the package and torch installed for the Python that runs it, and valgrind for the counts.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from table import Row, markdown

PROGRAMS = Path(__file__).parent / "programs"
Figures = dict[str, list[float]]


def environment() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("DFTRACER_")}
    return {**kept, "DFTRACER_ENABLE": "1", "DFTRACER_DISABLE_IO": "1", "DFTRACER_SUMMARY": "0"}


def run(*words: str) -> str:
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run(
            words, cwd=directory, env=environment(), check=True, stdout=subprocess.PIPE, text=True
        )
        return done.stdout


def figures(what: str) -> Figures:
    found: Figures = json.loads(run(sys.executable, str(PROGRAMS / "dynamo_graphs.py"), what))
    return found


def instructions() -> Row:
    """Instructions of the calling thread that one call adds, from runs of two lengths."""

    def counted(count: int, who: str) -> int:
        with tempfile.TemporaryDirectory() as directory:
            out = Path(directory, "callgrind")
            command = ["valgrind", "-q", "--tool=callgrind", "--separate-threads=yes"]
            command += [f"--callgrind-out-file={out}", sys.executable]
            command += [str(PROGRAMS / "op_calls.py"), str(count), who]
            env = {**environment(), "PYTHONHASHSEED": "0"}
            subprocess.run(command, cwd=directory, env=env, check=True)
            total = re.search(r"^(?:totals|summary): (\d+)", Path(f"{out}-01").read_text(), re.M)
            assert total is not None
            return int(total[1])

    each = {who: (counted(800, who) - counted(400, who)) / 400 for who in ("bare", "recorded")}
    added = each["recorded"] - each["bare"]
    what = "one recorded operation with its seven arguments: instructions"
    return Row(what, "", f"{each['bare']:.0f}", f"{added:.0f}")


def operations() -> list[Row]:
    found = figures("ops")
    rows = []
    for who, what, bar in (
        ("traced", "200 elementwise operations: added to one operation", 400.0),
        ("off", "… switched off (`enable=False`)", None),
    ):
        added = median(a - b for a, b in zip(found[who], found["plain"]))
        least = min(found[who]) - min(found["plain"])
        rows.append(
            Row(
                what,
                f"≤ {bar:.0f} ns" if bar is not None else "",
                f"{median(found['plain']):,.0f} ns",
                f"{added:+,.0f} ns (of the fastest runs {least:+,.0f})",
                met=added <= bar if bar is not None else None,
                values=dict(found),
            )
        )
    return rows


def memory() -> Row:
    sizes = figures("memory")["resident"]
    grown = (sizes[-1] - sizes[1]) / 1024
    shown = " / ".join(f"{size / 1024:.1f}" for size in sizes)
    what = "resident memory after 0.2 / 0.4 / … / 1 M events: MiB"
    return Row(what, "flat", "", shown, met=grown <= 1, values={"resident": sizes})


def inductor() -> list[Row]:
    found = figures("inductor")
    rows = []
    for who, what in (
        ("traced", 'one training step with `inner="inductor"`'),
        ("off", "… switched off"),
    ):
        ratio = median(a / b for a, b in zip(found[who], found["plain"]))
        least = min(found[who]) / min(found["plain"])
        plain = f"{median(found['plain']) / 1e6:.2f} ms"
        cell = f"{ratio:.3f} x (of the fastest runs {least:.3f})"
        rows.append(Row(what, "≤ 1.03 x", plain, cell, met=ratio <= 1.03, values=dict(found)))
    return rows


def main() -> None:
    rows = [*operations(), instructions(), memory(), *inductor()]
    print(markdown("Operations of a compiled model", rows))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""What page faults on mapped files cost: a loop that touches each page of a warm mapping.

Bare and traced runs take turns. There is no column for the peer, which records no page faults.
Printed as a table for docs/performance.md.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

BAR = 1.05


def compiled(place: Path) -> Path:
    program = place / "mapped"
    subprocess.run(["cc", "-O2", "-o", program, HERE / "programs" / "mapped.c"], check=True)
    return program


def measured(program: Path, data: Path, mib: int, rounds: int, env: dict[str, str]) -> list[float]:
    done = subprocess.run(
        [program, data, str(mib), str(rounds)],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=True,
    )
    return [float(line) for line in done.stdout.split()]


def traced(place: Path, name: str, **more: str) -> dict[str, str]:
    from dftracer import _libcore

    return {
        "LD_PRELOAD": str(_libcore.PRELOAD),
        "DFTRACER_ENABLE": "1",
        "DFTRACER_INIT": "PRELOAD",
        "DFTRACER_SUMMARY": "0",
        "DFTRACER_LOG_FILE": str(place / name / "t"),
        **more,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mib", type=int, default=1024, help="size of the mapping (default: 1024)")
    parser.add_argument("--turns", type=int, default=15, help="runs of each (default: 15)")
    args = parser.parse_args()
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        place = Path(name)
        program = compiled(place)
        data = place / "data"
        with data.open("wb") as file:
            for _ in range(args.mib):
                file.write(os.urandom(1 << 20))
        settings = {
            "bare": {},
            "ours": traced(place, "on"),
            "ours, page faults off": traced(place, "off", DFTRACER_PAGE_FAULTS="0"),
        }
        found: dict[str, list[float]] = {key: [] for key in settings}
        for _ in range(args.turns):
            for key, env in settings.items():
                found[key].append(statistics.median(measured(program, data, args.mib, 3, env)))
    bare = found["bare"]
    print(f"A warm mapping of {args.mib} MiB, each page touched: CPU time per page, medians")
    print("| | bar | per page | against the bare runs beside it | verdict |")
    print("| --- | --- | --- | --- | --- |")
    for key, times in found.items():
        ratio = statistics.median(one / beside for one, beside in zip(times, bare))
        bar = f"≤ {BAR} x" if key == "ours" else ""
        verdict = ("met" if ratio <= BAR else "missed") if bar else ""
        print(f"| {key} | {bar} | {statistics.median(times):.1f} ns | {ratio:.3f} x | {verdict} |")


if __name__ == "__main__":
    main()

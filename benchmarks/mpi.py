"""What tracing costs a program of MPI, beside the bare program, run by run in turn.

    .venv/bin/python benchmarks/mpi.py --ranks 8 --rounds 5000

There is no peer: other tracers are built against one library of MPI, and no package index has them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = Path(__file__).parent / "programs" / "mpi_loop.c"
LIBRARIES = ("openmpi", "mpich")
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "DFTRACER_SUMMARY": "0",
}


def measure(words: list[str], place: str) -> tuple[float, float]:
    """Microseconds of an allreduce, and nanoseconds of a send to nobody."""
    done = subprocess.run(
        words,
        cwd=place,
        env={**os.environ, **ENVIRONMENT},
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    wall, call = done.stdout.split()[-2:]
    return float(wall), float(call)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    cores, load = os.cpu_count() or 1, os.getloadavg()[0]
    print(f"{args.ranks} ranks on {cores} cores, load {load:.1f}")
    if args.ranks > cores:
        print("more ranks than cores: the times of allreduce are those of the scheduler")
    print(f"{'library':10} {'':8} {'allreduce':>12} {'send to nobody':>16}")
    for library in LIBRARIES:
        compiler, launcher = shutil.which(f"mpicc.{library}"), shutil.which(f"mpirun.{library}")
        if compiler is None or launcher is None:
            print(f"{library:10} is not installed")
            continue
        with tempfile.TemporaryDirectory() as place:
            program = str(Path(place) / "loop")
            subprocess.run([compiler, "-O2", str(PROGRAM), "-o", program], check=True)
            launch = [launcher, "-n", str(args.ranks)]
            tracer = [sys.executable, "-m", "dftracer", "run", "-o", f"{place}/t", "--"]
            bare, ours = [], []
            for _ in range(args.repeats):
                bare.append(measure([*launch, program, str(args.rounds)], place))
                ours.append(measure([*launch, *tracer, program, str(args.rounds)], place))
                shutil.rmtree(f"{place}/t")
        for name, rows in (("bare", bare), ("traced", ours)):
            wall = statistics.median(row[0] for row in rows)
            call = min(row[1] for row in rows)
            print(f"{library:10} {name:8} {wall:9.2f} us {call:13.1f} ns")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""What tracing costs a training loop: a small convolutional net, a loader with two workers.

    python benchmarks/torch_training.py [--rounds 15] [--steps 400] [--no-peer] [--json FILE]

Every round starts each subject once, after a third of them only those with a bar, for even two runs
of one program differ by some hundredths. They take turns, twenty steps at a time in a new order
each time, while the others wait: what else the machine does hits all of them. A block is compared
with the bare program's block of the same turn, and the median of these ratios is the round's; the
table shows the median of the rounds, and for a step their least and greatest. `step` is the median
step of a block, which a preempted step does not move, `wall` the whole block with the waiting for
data, `CPU` the time of the training process and its workers from the first block to their end.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from subjects import peer_prefix

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "benchmarks" / "programs" / "training.py"
BLOCK = 20  # steps of a turn


@dataclass(frozen=True)
class Subject:
    mode: str
    title: str
    bar: float | None = None  # step time over the bare program's
    environment: dict[str, str] = field(default_factory=dict)
    missing: str = ""


def _has(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _peer_path(wanted: bool) -> str:
    """The packages of a virtual environment that holds dftracer==2.2.0, to stand before ours."""
    prefix = peer_prefix(ROOT / "build" / "peer-venv") if wanted else None
    return str(prefix.parent) if prefix is not None else ""


def subjects(with_peer: bool) -> list[Subject]:
    on = {"DFTRACER_ENABLE": "1"}
    peer_path = _peer_path(with_peer)
    return [
        Subject("bare", "aot_eager alone"),
        Subject("annotated", "dftracer: annotations and I/O", 1.01, on),
        Subject(
            "traced",
            "dftracer: annotations, I/O and Dynamo",
            1.03,
            on,
            "" if _has("dftracer.python.dynamo") else "dftracer.python.dynamo is not there",
        ),
        Subject(
            "auto",
            "dftracer: no code (DFTRACER_TORCH=1), I/O",
            None,
            {
                **on,
                "DFTRACER_TORCH": "1",
            },
        ),
        Subject(
            "peer",
            "dftracer 2.2.0: annotations and I/O",
            None,
            {**on, "DFTRACER_INC_METADATA": "1", "PYTHONPATH": peer_path},
            "" if peer_path else "not installed",
        ),
        Subject("profiler", "torch.profiler"),
        Subject("viztracer", "viztracer", missing="" if _has("viztracer") else "not installed"),
    ]


class Run:
    """One program that waits for its turns."""

    def __init__(self, subject: Subject, steps: int, place: Path) -> None:
        self.mode = subject.mode
        self._place = place
        place.mkdir()
        kept = {k: v for k, v in os.environ.items() if not k.startswith("DFTRACER_")}
        environment = {**kept, "OMP_NUM_THREADS": "1", **subject.environment}
        if subject.mode == "auto":
            environment["DFTRACER_LOG_FILE"] = str(place / "trace" / "t")
            environment["DFTRACER_DATA_DIR"] = str(place / "data")
        self._errors = place.with_suffix(".stderr")
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                [sys.executable, str(PROGRAM), subject.mode, str(place), str(steps), str(BLOCK)],
                env=environment,
                cwd=place,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self.figures: dict[str, Any] | None = None
        self._read()

    def _read(self) -> None:
        """Back when it waits for its turn, or has ended."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line == "TURN\n":
                return
            if line.startswith("FIGURES "):
                self.figures = json.loads(line.split(" ", 1)[1])
        status = self._process.wait()
        if status != 0 or self.figures is None:
            errors = self._errors.read_text()[-2000:]
            raise RuntimeError(f"{self.mode}: status {status}: {errors}")
        shutil.rmtree(self._place / "data", ignore_errors=True)
        files = (path for path in self._place.rglob("*") if path.is_file())
        self.figures["bytes"] = sum(path.stat().st_size for path in files)

    def turn(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        self._read()

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


def run_round(present: list[Subject], steps: int, order: random.Random) -> dict[str, Any]:
    """The figures of every subject, by mode."""
    runs: list[Run] = []
    with tempfile.TemporaryDirectory() as place:
        try:
            for subject in order.sample(present, len(present)):
                runs.append(Run(subject, steps, Path(place) / subject.mode))
            for _ in range(steps // BLOCK):
                for one in order.sample(runs, len(runs)):
                    one.turn()
        finally:
            for one in runs:
                one.stop()
    return {one.mode: one.figures for one in runs}


def blocks_of(figures: dict[str, Any], key: str) -> list[float]:
    if key == "cpu":
        return [figures["cpu"]]
    if key == "wall":
        return list(figures["blocks"])
    steps = figures["steps"]
    return [median(steps[at : at + BLOCK]) for at in range(0, len(steps), BLOCK)]


def compare(rounds: list[dict[str, Any]], mode: str, key: str) -> list[float]:
    """For each round, the median ratio to the bare program's blocks of the same turns."""
    return [
        median(a / b for a, b in zip(blocks_of(one[mode], key), blocks_of(one["bare"], key)))
        for one in rounds
        if mode in one
    ]


def spread(ratios: list[float]) -> str:
    return f"{median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--steps", type=int, default=400, help=f"a multiple of {BLOCK}")
    parser.add_argument("--no-peer", action="store_true", help="leave dftracer 2.2.0 out")
    parser.add_argument("--only", default="", help="modes, with a comma between them")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    wanted = {"bare", *options.only.split(",")} if options.only else None
    listed = [s for s in subjects(not options.no_peer) if wanted is None or s.mode in wanted]
    present = [subject for subject in listed if not subject.missing]
    rounds: list[dict[str, Any]] = []
    order = random.Random(1)
    for number in range(options.rounds):
        barred_only = number * 3 >= options.rounds
        taking_part = [s for s in present if s.bar or s.mode == "bare" or not barred_only]
        rounds.append(run_round(taking_part, options.steps, order))
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
    losses = {round(figures["loss"], 6) for one in rounds for figures in one.values()}
    base = median(median(one["bare"]["steps"]) for one in rounds)
    print(f"bare step {base * 1000:.2f} ms; losses of all runs: {sorted(losses)}\n")
    print("| subject | bar | step | wall | CPU | bytes | met |\n|---|---|---|---|---|---|---|")
    met = True
    for subject in listed:
        if subject.missing:
            print(f"| {subject.title} | | {subject.missing} | | | | |")
            continue
        step, wall, cpu = (compare(rounds, subject.mode, key) for key in ("step", "wall", "cpu"))
        good = subject.bar is None or median(step) <= subject.bar
        met &= good
        size = median(one[subject.mode]["bytes"] for one in rounds if subject.mode in one)
        bar = f"<= {subject.bar:.2f}" if subject.bar else ""
        verdict = "" if subject.bar is None else ("yes" if good else "NO")
        ratios = f"{spread(step)} | {median(wall):.3f} | {median(cpu):.3f}"
        print(f"| {subject.title} | {bar} | {ratios} | {size:,.0f} | {verdict} |")
    if options.json is not None:
        options.json.write_text(json.dumps(rounds, indent=1) + "\n", encoding="utf-8")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())

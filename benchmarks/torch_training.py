#!/usr/bin/env python3
"""What tracing costs a training loop: a small convolutional net, a loader with two workers.

    python benchmarks/torch_training.py [--rounds 7] [--steps 200] [--no-peer] [--json FILE]

Every round runs each subject once, one after the other, and compares it with the bare program of
that round; the table shows the medians of these ratios. `step` is the median step of a run, which a
preempted step does not move; `cpu` is the time of the training process and its workers.
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


def run(subject: Subject, steps: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as place:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("DFTRACER_")}
        environment = {**kept, "OMP_NUM_THREADS": "1", **subject.environment}
        if subject.mode == "auto":
            environment["DFTRACER_LOG_FILE"] = str(Path(place) / "trace" / "t")
            environment["DFTRACER_DATA_DIR"] = str(Path(place) / "data")
        done = subprocess.run(
            [sys.executable, str(PROGRAM), subject.mode, place, str(steps)],
            env=environment,
            cwd=place,
            capture_output=True,
            text=True,
            check=False,
        )
        lines = [line for line in done.stdout.splitlines() if line.startswith("FIGURES ")]
        if done.returncode != 0 or not lines:
            raise RuntimeError(f"{subject.mode}: status {done.returncode}: {done.stderr[-2000:]}")
        figures: dict[str, Any] = json.loads(lines[-1].split(" ", 1)[1])
        shutil.rmtree(Path(place) / "data", ignore_errors=True)
        size = sum(path.stat().st_size for path in Path(place).rglob("*") if path.is_file())
    return {
        "step": median(figures["steps"]),
        "wall": sum(figures["steps"]),
        "cpu": figures["cpu"],
        "bytes": size,
        "loss": figures["loss"],
    }


def compare(runs: dict[str, list[dict[str, float]]], mode: str, key: str) -> float:
    """The median over rounds of the ratio to that round's bare run."""
    return median(a[key] / b[key] for a, b in zip(runs[mode], runs["bare"]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--no-peer", action="store_true", help="leave dftracer 2.2.0 out")
    parser.add_argument("--only", default="", help="modes, with a comma between them")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    wanted = {"bare", *options.only.split(",")} if options.only else None
    listed = [s for s in subjects(not options.no_peer) if wanted is None or s.mode in wanted]
    present = [subject for subject in listed if not subject.missing]
    runs: dict[str, list[dict[str, float]]] = {subject.mode: [] for subject in present}
    order = random.Random(1)
    for number in range(options.rounds):
        turn = order.sample(present, len(present))
        for subject in turn:
            runs[subject.mode].append(run(subject, options.steps))
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
    losses = {round(one["loss"], 6) for found in runs.values() for one in found}
    base = median(one["step"] for one in runs["bare"])
    print(f"bare step {base * 1000:.2f} ms; losses of all runs: {sorted(losses)}\n")
    print("| subject | bar | step | wall | CPU | bytes | met |\n|---|---|---|---|---|---|---|")
    met = True
    for subject in listed:
        if subject.missing:
            print(f"| {subject.title} | | {subject.missing} | | | | |")
            continue
        step, wall, cpu = (compare(runs, subject.mode, key) for key in ("step", "wall", "cpu"))
        good = subject.bar is None or step <= subject.bar
        met &= good
        size = median(one["bytes"] for one in runs[subject.mode])
        bar = f"<= {subject.bar:.2f}" if subject.bar else ""
        verdict = "" if subject.bar is None else ("yes" if good else "NO")
        ratios = f"{step:.3f} | {wall:.3f} | {cpu:.3f}"
        print(f"| {subject.title} | {bar} | {ratios} | {size:,.0f} | {verdict} |")
    if options.json is not None:
        options.json.write_text(json.dumps(runs, indent=1) + "\n", encoding="utf-8")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())

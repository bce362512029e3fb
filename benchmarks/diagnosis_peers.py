"""What other tools say about the same programs, as far as they can be had."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from diagnosis_cases import PROGRAMS, Case
from venvs import install, last_line

Execute = Callable[[Case, Path, Sequence[str]], None]


@dataclass
class Peer:
    name: str
    first: Callable[[Case, Path, Execute], str]


def profiler(case: Case, place: Path, execute: Execute) -> str:
    """The entries of torch.profiler's table with the most time of their own, of rank 0."""
    if not case.trains:
        return "not a training"
    known = place / "profile.txt"
    if known.exists():
        return known.read_text()
    program = str(PROGRAMS / "training.py")
    profiled = str(PROGRAMS / "profiled.py")
    command = [profiled if word == program else word for word in case.command()]
    try:
        execute(case, place, command)
    except subprocess.SubprocessError as error:
        return f"failed: {last_line(str(error))}"
    return known.read_text()


ANALYZER = ("dftracer-analyzer==0.0.9", "dftracer-utils==0.0.12")
LAYER = re.compile(r"^│ (\S[^│]*?) *│ *([\d.,]+) │", re.M)


def analyzer(case: Case, place: Path, execute: Execute) -> str:
    """DFAnalyzer's layer with the most time: it names no cause."""
    venv = Path(__file__).parents[1] / "build" / "analyzer-venv"
    reason = install(venv, *ANALYZER)
    if reason:
        return f"not available: {reason}"
    words = [f"trace_path={place / 'traces'}", f"cluster.local_directory={place / 'workers'}"]
    command = [str(venv / "bin" / "dfanalyzer"), *words]
    try:
        done = subprocess.run(
            command, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=600, check=True,
        )  # fmt: skip
    except subprocess.CalledProcessError as error:
        return f"failed: {last_line(error.stdout)}"
    except subprocess.SubprocessError as error:
        return f"failed: {last_line(str(error))}"
    return slowest_layer(done.stdout)


def slowest_layer(text: str) -> str:
    layers = LAYER.findall(text.partition("Layer Breakdown")[2])
    if not layers:
        return "no layer"
    name, seconds = max(layers, key=lambda layer: float(layer[1].replace(",", "")))
    return f"{name}: {seconds} s"


def available(with_analyzer: bool = False) -> list[Peer]:
    return [Peer("torch.profiler", profiler), *[Peer("DFAnalyzer", analyzer)] * with_analyzer]

"""The programs under measurement: built three times from one source, and run in empty directories.

`bare` compiles the annotations away, `ours` links this project, `peer` links dftracer 2.2.0 from
the package index. `off` is `ours` with tracing not switched on.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = Path(__file__).resolve().parent / "programs"
PEER = "dftracer==2.2.0"

Figures = dict[str, float]


class BenchError(Exception):
    """Something that a benchmark needs is missing or does not work."""


@dataclass(frozen=True)
class Subject:
    """One way of building and running the programs."""

    name: str
    programs: Mapping[str, Path]
    environment: Mapping[str, str]


def peer_prefix(venv: Path) -> Path | None:
    """Where the peer's headers and libraries are, installed first if need be."""
    if not (venv / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=False, capture_output=True)
    found = sorted(venv.glob("lib/python3*/site-packages/dftracer/lib64/libdftracer_core.so"))
    if not found:
        pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", PEER]
        try:
            subprocess.run(pip, check=True, capture_output=True, timeout=300)
        except (OSError, subprocess.SubprocessError):
            return None
        found = sorted(venv.glob("lib/python3*/site-packages/dftracer/lib64/libdftracer_core.so"))
    return found[0].parent.parent if found else None


def compile_program(source: str, target: Path, options: Sequence[str]) -> Path:
    command = ["cc", "-std=gnu11", "-O2", "-g", "-Wall", "-o", str(target)]
    command += [str(PROGRAMS / source), *options, "-lpthread"]
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    if result.returncode != 0:
        raise BenchError(f"{' '.join(command)}\n{result.stderr}")
    return target


NAMES = ("loop", "burst", "worst", "nothing")


def build_subject(
    name: str, options: Sequence[str], out: Path, environment: Mapping[str, str]
) -> Subject:
    programs = {n: compile_program(f"{n}.c", out / f"{n}-{name}", options) for n in NAMES}
    return Subject(name, programs, environment)


TRACED = {"DFTRACER_ENABLE": "1", "DFTRACER_LOG_FILE": "trace", "DFTRACER_INC_METADATA": "1"}


def build_all(prefix: Path, venv: Path | None, out: Path) -> dict[str, Subject]:
    out.mkdir(parents=True, exist_ok=True)
    include = [f"-I{prefix}/include"]
    if not (prefix / "include" / "dftracer" / "dftracer.h").exists():
        raise BenchError(f"{prefix} holds no installed dftracer: run `make stage`")
    lib = prefix / "lib"
    ours = build_subject(
        "ours", [*include, f"-L{lib}", "-ldftracer_core", f"-Wl,-rpath,{lib}"], out, TRACED
    )
    subjects = {
        "bare": build_subject("bare", [*include, "-DDFTRACER_DISABLE"], out, {}),
        "ours": ours,
        "off": Subject("off", ours.programs, {}),
    }
    peer = peer_prefix(venv) if venv is not None else None
    if peer is not None:
        bundled = peer.parent / "dftracer.libs"
        options = [f"-I{peer}/include", f"-L{peer}/lib64", "-ldftracer_core"]
        options += [f"-Wl,-rpath,{peer}/lib64", f"-Wl,-rpath,{bundled}"]
        options += ["-Wl,--allow-shlib-undefined"]
        try:
            subjects["peer"] = build_subject(
                "peer", options, out, {**TRACED, "DFTRACER_DATA_DIR": "all"}
            )
        except BenchError as error:
            print(f"the peer cannot be used: {error}", file=sys.stderr)
    compile_program("spawn.c", out / "spawn", [])
    return subjects


@dataclass(frozen=True)
class Run:
    """What one run of a program left behind."""

    figures: Figures
    trace_bytes: int
    files: int
    events: int | None


def clean_environment(extra: Mapping[str, str]) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("DFTRACER_")}
    return {**kept, **extra}


class Bench:
    """Runs programs in fresh directories below `scratch`, on the file system of the project."""

    def __init__(self, subjects: Mapping[str, Subject], out: Path) -> None:
        self.subjects = subjects
        self.out = out
        self.scratch = out / "scratch"
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir(parents=True)

    @property
    def has_peer(self) -> bool:
        return "peer" in self.subjects

    def run(
        self,
        subject: str,
        program: str,
        *arguments: int,
        extra: Mapping[str, str] | None = None,
        count_events: bool = False,
    ) -> Run:
        who = self.subjects[subject]
        command = [str(who.programs[program]), *map(str, arguments)]
        directory = Path(tempfile.mkdtemp(dir=self.scratch))
        try:
            text = self._execute(command, directory, {**who.environment, **(extra or {})})
            figures: Figures = json.loads(text.splitlines()[-1])
            files = [f for f in directory.iterdir() if f.is_file()]
            traces = [f for f in files if ".pfw" in f.name]
            events = sum(map(count_steps, traces)) if count_events else None
            size = sum(f.stat().st_size for f in traces)
            return Run(figures, size, len(files), events)
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def instructions(self, subject: str, *arguments: int) -> int:
        """Instructions inside `one_event`, on the calling thread, in a run of `loop`."""
        who = self.subjects[subject]
        directory = Path(tempfile.mkdtemp(dir=self.scratch))
        out = directory / "callgrind"
        command = ["valgrind", "--tool=callgrind", "--separate-threads=yes"]
        command += ["--toggle-collect=one_event"]
        command += [f"--callgrind-out-file={out}", str(who.programs["loop"]), *map(str, arguments)]
        try:
            self._execute(command, directory, who.environment)
            totals = re.search(r"^(?:totals|summary): (\d+)", Path(f"{out}-01").read_text(), re.M)
            if totals is None:
                raise BenchError("callgrind wrote no total")
            return int(totals.group(1))
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def spawn(self, repeats: int, commands: Sequence[tuple[str, int]]) -> list[Figures]:
        """Start and end of `nothing` for each (subject, bind)."""
        words = [str(self.out / "spawn"), str(repeats)]
        for subject, bind in commands:
            who = self.subjects[subject]
            words += ["--", *(f"{k}={v}" for k, v in who.environment.items())]
            words += [str(who.programs["nothing"]), str(bind)]
        text = self._execute(words, self.scratch, {})
        figures: list[Figures] = [json.loads(line) for line in text.splitlines()]
        if any(f["failed"] for f in figures):
            raise BenchError("a program that does nothing failed")
        return figures

    def _execute(self, command: Sequence[str], cwd: Path, extra: Mapping[str, str]) -> str:
        result = subprocess.run(
            command,
            cwd=cwd,
            env=clean_environment(extra),
            check=False,
            capture_output=True,
            text=True,
            timeout=600,
        )
        if result.returncode != 0:
            raise BenchError(f"{' '.join(command)}: status {result.returncode}\n{result.stderr}")
        return result.stdout


def count_steps(trace: Path) -> int:
    """Events of the loop in a trace, by an independent tool."""
    reader = "zcat" if trace.name.endswith(".gz") else "cat"
    with subprocess.Popen([reader, str(trace)], stdout=subprocess.PIPE) as unpacked:
        command = ["grep", "-c", '"name":"step"']
        counted = subprocess.run(command, stdin=unpacked.stdout, check=False, capture_output=True)
    return int(counted.stdout or b"0")

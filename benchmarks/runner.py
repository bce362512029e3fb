"""Runs the measured programs, each time in an empty directory, and reads what they print."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from errors import BenchError
from lttng import Recording
from subjects import Subject, Subjects, compile_program

Figures = dict[str, float]


@dataclass(frozen=True)
class Run:
    """What one run of a program left behind."""

    figures: Figures
    trace_bytes: int
    files: int
    # Those with the name that was asked for; for LTTng-UST what it did not say to be lost.
    events: int | None


def clean_environment(extra: Mapping[str, str]) -> dict[str, str]:
    ours = ("DFTRACER_", "LTTNG_", "LD_PRELOAD")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    return {**kept, **extra}


class Bench:
    """Runs programs in fresh directories below `scratch`, on the file system of the project."""

    def __init__(self, subjects: Subjects, out: Path) -> None:
        self.subjects = subjects.of
        self.missing = subjects.missing
        self.out = out
        self.scratch = Path(tempfile.mkdtemp(prefix="scratch-", dir=out))
        compile_program("spawn.c", out / "spawn", [])

    def clean(self) -> None:
        shutil.rmtree(self.scratch, ignore_errors=True)

    @property
    def has_peer(self) -> bool:
        return "peer" in self.subjects

    def run(
        self,
        subject: str,
        program: str,
        *arguments: int | str | Path,
        extra: Mapping[str, str] | None = None,
        count: str = "",
    ) -> Run:
        """One run; with `count`, events of that name in its trace are counted."""
        who = self.subjects[subject]
        command = [*who.programs[program], *map(str, arguments)]
        with self._directory(who) as (directory, recording):
            text = self._execute(command, directory, {**who.environment, **(extra or {})})
            figures: Figures = json.loads(text.splitlines()[-1])
            files = [f for f in directory.iterdir() if f.is_file()]
            traces = [f for f in files if ".pfw" in f.name]
            events = sum(count_events(t, count) for t in traces) if count else None
            size = sum(f.stat().st_size for f in traces)
        if count and who.lttng is not None:
            events = int(figures["events"]) - recording.lost
        return Run(figures, size, len(files), events)

    def instructions(
        self, subject: str, program: str, function: str, *arguments: int | str | Path
    ) -> int:
        """Instructions inside `function`, on the calling thread, in one run of a program."""
        who = self.subjects[subject]
        with self._directory(who) as (directory, _):
            out = directory / "callgrind"
            command = ["valgrind", "--tool=callgrind", "--separate-threads=yes"]
            command += [f"--toggle-collect={function}", f"--callgrind-out-file={out}"]
            command += [*who.programs[program], *map(str, arguments)]
            self._execute(command, directory, who.environment)
            totals = re.search(r"^(?:totals|summary): (\d+)", Path(f"{out}-01").read_text(), re.M)
            if totals is None:
                raise BenchError("callgrind wrote no total")
            return int(totals.group(1))

    def counted(self, subject: str, program: str, *arguments: int | str | Path) -> dict[str, int]:
        """What a program had counted on its first thread, by its names; see programs/collect.c."""
        who = self.subjects[subject]
        found: dict[str, int] = {}
        with self._directory(who) as (directory, _):
            command = ["valgrind", "--tool=callgrind", "--separate-threads=yes"]
            command += ["--instr-atstart=no", "--collect-atstart=no"]
            command += [f"--callgrind-out-file={directory / 'callgrind'}"]
            command += [*who.programs[program], *map(str, arguments)]
            # The order of a hash table's entries is part of what is counted.
            self._execute(command, directory, {**who.environment, "PYTHONHASHSEED": "0"})
            for dump in directory.glob("callgrind.*-01"):
                text = dump.read_text()
                name = re.search(r"^desc: Trigger: Client Request: (.*)$", text, re.M)
                totals = re.search(r"^(?:totals|summary): (\d+)", text, re.M)
                if name is not None and totals is not None:
                    found[name[1]] = int(totals[1])
        return found

    def spawn(self, repeats: int, commands: Sequence[tuple[str, Sequence[str]]]) -> list[Figures]:
        """Start and end of each (subject, program and arguments), all in turn."""
        words = [str(self.out / "spawn"), str(repeats)]
        recorder = self.subjects["bare"]
        for subject, (program, *arguments) in commands:
            who = self.subjects[subject]
            words += ["--", *(f"{k}={v}" for k, v in who.environment.items())]
            words += [*who.programs[program], *arguments]
            recorder = who if who.lttng is not None else recorder
        with self._directory(recorder) as (directory, _):
            text = self._execute(words, directory)
        figures: list[Figures] = [json.loads(line) for line in text.splitlines()]
        if any(f["failed"] for f in figures):
            raise BenchError("a program that does nothing failed")
        return figures

    def make_tree(self, root: Path, files: int) -> None:
        """Many names below `root`, made without any tracer."""
        self._execute([*self.subjects["bare"].programs["tree"], "make", str(root), str(files)])

    @contextmanager
    def _directory(self, who: Subject) -> Iterator[tuple[Path, Recording]]:
        """An empty directory to run in, with a session around it if the subject needs one."""
        directory = Path(tempfile.mkdtemp(dir=self.scratch))
        try:
            if who.lttng is None:
                yield directory, Recording()
            else:
                with who.lttng.recording(directory / "lttng") as recording:
                    yield directory, recording
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def _execute(
        self,
        command: Sequence[str],
        cwd: Path | None = None,
        extra: Mapping[str, str] | None = None,
    ) -> str:
        result = subprocess.run(
            command,
            cwd=cwd,
            env=clean_environment(extra or {}),
            check=False,
            capture_output=True,
            text=True,
            timeout=600,
        )
        if result.returncode != 0:
            raise BenchError(f"{' '.join(command)}: status {result.returncode}\n{result.stderr}")
        return result.stdout


def count_events(trace: Path, name: str) -> int:
    """Events of that name in a trace, by an independent tool."""
    reader = "zcat" if trace.name.endswith(".gz") else "cat"
    with subprocess.Popen([reader, str(trace)], stdout=subprocess.PIPE) as unpacked:
        command = ["grep", "-c", f'"name":"{name}"']
        counted = subprocess.run(command, stdin=unpacked.stdout, check=False, capture_output=True)
    return int(counted.stdout or b"0")

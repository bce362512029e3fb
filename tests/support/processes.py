"""Programs that say who they are, and what is checked of each of their processes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from support import compare_runs, faults, intercept
from support.compare_runs import DATA, assert_marks, marks, nothing_else, one_run, ppid
from support.intercept import Process, Run
from support.limits import HANG
from support.run import Result, run


@dataclass(frozen=True)
class Told(Run):
    """A run whose processes said who they are: name, pid and parent."""

    people: tuple[tuple[str, int, int], ...] = ()

    def pid(self, name: str) -> int:
        return {who: pid for who, pid, _ in self.people}[name]

    def files_of(self, pid: int) -> list[Process]:
        return [process for process in self.processes if process.pid == pid]

    def check(self, wanted: dict[int, int], *, runs: bool = False) -> None:
        """The marks are those, each process has one file, and its parent is the one that it saw.
        `runs`: a program that exec made may have begun a run of its own."""
        nothing_else(self.directory)
        if not runs:
            one_run(self.processes)
        assert_marks(marks(*self.processes), wanted)
        for name, pid, parent in self.people:
            found = self.files_of(pid)
            assert found, f"{name} has no file"
            assert {ppid(process) for process in found} == {parent}, name
            procs = {s["args"]["proc"] for process in found for s in compare_runs.starts(process)}
            assert len(procs) == 1, f"{name} is {procs}"
        assert {pid for _, pid, _ in self.people} <= {process.pid for process in self.processes}

    def marks_of(self, name: str) -> set[int]:
        """Whose marks are in this process's files."""
        return set(marks(*self.files_of(self.pid(name))))


def told(result: Result, directory: Path, text: str, *, ended: bool = True) -> Told:
    lines = [line.split() for line in text.splitlines()]
    people = tuple(
        (words[0], int(words[1]), int(words[2]))
        for words in lines
        if len(words) == 3 and words[1].isdigit() and words[0] != "made"
    )
    return Told(result, directory, intercept.read(directory, ended=ended), people)


def place(tmp_path: Path) -> tuple[Path, Path]:
    cwd, out = tmp_path / "w", tmp_path / "d"
    cwd.mkdir()
    out.mkdir()
    (cwd / "data").write_bytes(DATA)
    return cwd, out


def steps(
    tmp_path: Path,
    *words: str,
    expect: int = 0,
    mode: str = intercept.PRELOAD,
    env: dict[str, str] | None = None,
    timeout: float = HANG,
    recover: bool = False,
) -> Told:
    """programs/harm_steps.c, traced. `recover`: it was killed, and somebody finishes for it."""
    cwd, out = place(tmp_path)
    settings = {**compare_runs.settings(out, mode), **(env or {})}
    done = run(
        compare_runs.program("harm_steps"),
        *words,
        cwd=cwd,
        env=settings,
        expect=expect,
        timeout=timeout,
    )
    if recover:
        faults.recover(out)
    return told(done, out, done.stdout)

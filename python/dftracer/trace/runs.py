"""Which traces belong to one run of a job: by the id in their `start` records, or by their times.

Traces of this project contain the id of their run. Those of other tracers do not: if they fall into
the time of a run with an id, they belong to it; the rest is split where nothing ran.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import NamedTuple

from dftracer import _reader
from dftracer.errors import DFTracerError
from dftracer.trace.summary import Process, summarise_all

# Nanoseconds without any process after which traces without an id count as another run.
GAP = 1_000_000_000
ID_DIGITS = 8


class Life(NamedTuple):
    """A process or file: the id of its run, and its time span, as far as known."""

    run: str
    start: int | None
    end: int | None


@dataclass
class Run:
    """Processes that ran together; `guessed` if only their times show it."""

    id: str = ""
    start: int | None = None
    end: int | None = None
    guessed: bool = False
    members: list[int] = field(default_factory=list)  # indices of the lives that it is made of

    def add(self, index: int, life: Life) -> None:
        self.members.append(index)
        if life.start is not None:
            self.start = life.start if self.start is None else min(self.start, life.start)
        end = life.start if life.end is None else life.end
        if end is not None:
            self.end = end if self.end is None else max(self.end, end)

    def holds(self, life: Life) -> bool:
        if self.start is None or self.end is None or life.start is None:
            return False
        return life.start <= self.end and (life.end or life.start) >= self.start


def runs_of(lives: Sequence[Life]) -> list[Run]:
    """The runs, in order of their start; one without a time comes last."""
    keyed: dict[str, Run] = {}
    rest: list[int] = []
    for index, life in enumerate(lives):
        if life.run:
            keyed.setdefault(life.run, Run(life.run)).add(index, life)
        else:
            rest.append(index)
    runs = sorted(keyed.values(), key=_order)
    untimed: list[int] = []
    guessed: list[Run] = []
    for index in sorted(rest, key=lambda i: (lives[i].start is None, lives[i].start, i)):
        life = lives[index]
        home = next((run for run in runs if run.holds(life)), None)
        if home is not None:
            home.members.append(index)
        elif life.start is None:
            untimed.append(index)
        else:
            last = guessed[-1] if guessed else None
            if last is None or last.end is None or life.start > last.end + GAP:
                last = Run(guessed=True)
                guessed.append(last)
            last.add(index, life)
    runs = sorted([*runs, *guessed], key=_order)
    if untimed:
        # Their time is unknown: they are not a run of their own.
        if not runs:
            runs.append(Run(guessed=True))
        runs[0].members += untimed
    return runs


def _order(run: Run) -> tuple[bool, int, str]:
    return run.start is None, run.start or 0, run.id


def life_of(process: Process) -> Life:
    starts = [time for time in (process.start, process.first) if time is not None]
    ends = [time for time in (process.end, process.last) if time is not None]
    return Life(process.run, min(starts, default=None), max(ends, default=None))


def as_json(processes: Sequence[Process]) -> list[dict[str, object]]:
    """The runs of some processes, for --json."""
    return [
        {
            "run": number,
            "id": run.id or None,
            "guessed": run.guessed,
            "start_ns": run.start,
            "end_ns": run.end,
            "processes": len(run.members),
        }
        for number, run in enumerate(runs_of([life_of(process) for process in processes]), 1)
    ]


def covered(spans: Iterable[tuple[int, int]]) -> int:
    """Nanoseconds covered by at least one of the spans."""
    total, reached = 0, None
    for start, end in sorted(spans):
        if reached is None or start > reached:
            total += end - start
            reached = end
        elif end > reached:
            total += end - reached
            reached = end
    return total


def local_time(nanoseconds: int) -> datetime:
    """In this machine's time zone, which must be shown: the trace may come from another one."""
    start = datetime(1970, 1, 1, tzinfo=timezone.utc)
    return (start + timedelta(microseconds=nanoseconds // 1000)).astimezone()


def zone_text(time: datetime) -> str:
    offset = f"{time:%z}"
    return "UTC" if offset == "+0000" else f"{offset[:3]}:{offset[3:5]}"


def when_text(nanoseconds: int | None) -> str:
    try:
        time = local_time(nanoseconds or 0)
        return f"{time:%Y-%m-%d %H:%M:%S} {zone_text(time)}"
    except (OverflowError, OSError, ValueError):
        return f"{nanoseconds} ns"


def head_runs(files: Sequence[Path]) -> list[Run]:
    """Runs by the ids at the heads of the files, which is cheap; members are the files."""
    heads = _reader.probe(list(files))
    return runs_of([Life(head["run"], head["start_ns"], None) for head in heads if head["run"]])


def choose(files: Sequence[Path], wanted: str) -> list[Path]:
    """The files of one run: `latest`, its number, or the beginning of its id."""
    runs, members = _of_files(files)
    if wanted == "latest":
        found = runs[-1:]
    elif wanted.isdecimal() and 1 <= int(wanted) <= len(runs):
        found = [runs[int(wanted) - 1]]
    else:
        found = [run for run in runs if len(wanted) >= 4 and run.id.startswith(wanted.lower())]
    if len(found) != 1:
        known = ", ".join(
            f"{number} ({when_text(run.start)}{', ' + run.id[:ID_DIGITS] if run.id else ''})"
            for number, run in enumerate(runs, 1)
        )
        raise DFTracerError(f"--run {wanted}: no such run in these traces; runs: {known}")
    chosen = members[runs.index(found[0])]
    for number, others in enumerate(members):
        shared = chosen & others
        if runs[number] is not found[0] and shared:
            path = files[min(shared)]
            raise DFTracerError(
                f"{path}: this file contains several runs; split it with "
                "`dftracer split --by-process`"
            )
    return [file for index, file in enumerate(files) if index in chosen]


def _of_files(files: Sequence[Path]) -> tuple[list[Run], list[set[int]]]:
    """The runs, and the indices of the files of each."""
    heads = _reader.probe(list(files))
    if all(head["run"] and not head["merged"] for head in heads):
        runs = runs_of([Life(head["run"], head["start_ns"], None) for head in heads])
        return runs, [set(run.members) for run in runs]
    # Only the whole file shows when such a process ended, or what a merged file contains.
    found = summarise_all(list(files), by_path=False)
    places = {str(file): index for index, file in enumerate(files)}
    owners = [places[process.trace] for process in found.processes]
    runs = runs_of([life_of(process) for process in found.processes])
    if not runs:
        runs = [Run(guessed=True)]
    members = [{owners[index] for index in run.members} for run in runs]
    # A file without a readable process belongs to all runs.
    strangers = set(range(len(files))) - set(owners)
    return runs, [member | strangers for member in members] if len(runs) == 1 else members

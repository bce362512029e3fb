"""DataLoader workers: how often they were started, and how long steps waited for that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True)
class Start:
    """Workers that were started together, and the step that waited for the first of them."""

    parent: int
    workers: int
    step_ns: int | None  # beginning of that step; None if no step waited
    waited_ns: int  # fetch time of that step before the first worker began its first item


def starts(processes: Iterable[Row], steps: Iterable[Row]) -> list[Start]:
    """Every start of workers by a training process for its steps, in order of time."""
    by_process: dict[int, list[Row]] = {}
    for step in steps:
        by_process.setdefault(step["process"], []).append(step)
    by_parent: dict[int, list[Row]] = {}
    for process in processes:
        if process["role"] == "worker" and process["parent"] in by_process:
            by_parent.setdefault(process["parent"], []).append(process)
    found = [
        _start(parent, together, by_process[parent])
        for parent, workers in by_parent.items()
        for together in _generations(workers)
    ]
    return [start for start in found if start is not None]


def waits(found: Iterable[Start]) -> dict[tuple[int, int], int]:
    """How long steps, by process and beginning, waited for newly started workers."""
    made: dict[tuple[int, int], int] = {}
    for start in found:
        if start.step_ns is not None:
            key = (start.parent, start.step_ns)
            made[key] = max(made.get(key, 0), start.waited_ns)
    return made


def at_a_time(processes: Iterable[Row]) -> int:
    """The maximum number of workers that lived at the same time."""
    moments = []
    for process in processes:
        if process["role"] == "worker" and process["first_ns"] is not None:
            moments += [(process["first_ns"], 1), (process["last_ns"] + 1, -1)]
    alive = most = 0
    for _, change in sorted(moments):
        alive += change
        most = max(most, alive)
    return most


def _generations(workers: Sequence[Row]) -> list[list[Row]]:
    """Groups workers: those started after another one had ended form a new group."""
    found: list[list[Row]] = []
    for worker in sorted(workers, key=lambda worker: worker["first_ns"] or 0):
        ended = min((other["last_ns"] or 0 for other in found[-1]), default=0) if found else None
        if ended is None or (worker["first_ns"] or 0) > ended:
            found.append([])
        found[-1].append(worker)
    return found


def _start(parent: int, workers: Sequence[Row], steps: Sequence[Row]) -> Start | None:
    """None if no step ran while they lived: they were for evaluation."""
    ready = min((w["ready_ns"] for w in workers if w["ready_ns"] is not None), default=None)
    first = min(worker["first_ns"] or 0 for worker in workers)
    last = max(worker["last_ns"] or 0 for worker in workers)
    fed = [s for s in steps if s["start_ns"] < last and first < s["start_ns"] + s["dur_ns"]]
    # Workers of another loader may start later.
    count = sum(ready is None or (worker["first_ns"] or 0) <= ready for worker in workers)
    for step in fed:
        if ready is not None and 0 < ready - step["start_ns"] <= step["dur_ns"]:
            waited = min(ready - step["start_ns"], step["fetch_ns"])
            return Start(parent, count, step["start_ns"], waited)
    return Start(parent, count, None, 0) if fed else None

"""Ranks that never ran: collectives that end when the last rank has come, to the microsecond, and
the figures of the report, computed from the events in plain Python.

The events are those of `dftracer run --torch`. A rank may have a clock of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.synthetic_program import Program

Key = tuple[str, str, int]  # group, ranks, number
Work = Callable[[int, int], int]  # of a rank in a step, in microseconds


def _none(rank: int, step: int) -> int:
    return 0


def ranks_text(ranks: Sequence[int]) -> str:
    return ",".join(map(str, ranks))


@dataclass
class Ranks:
    """A training loop: fetch, forward, something untraced, backward, and a collective in it."""

    count: int = 2
    steps: int = 20
    fetch: Work = lambda rank, step: 1_000
    forward: Work = lambda rank, step: 4_000
    sleep: Work = _none
    checkpoint: Work = _none
    read: Work = _none
    backward: int = 5_000
    exchange: int = 500  # after the last rank has come
    launched: bool = False  # with async_op, waited for after `overlap`
    overlap: int = 0
    hosts: dict[int, str] = field(default_factory=dict)
    ahead: dict[str, int] = field(default_factory=dict)  # of the clock of a host
    lonely: tuple[int, ...] = ()  # ranks whose collectives are not recorded

    def write(self, place: Path) -> Ranks:
        hosts = [self.hosts.get(rank, "node1") for rank in range(self.count)]
        ahead = [self.ahead.get(host, 0) for host in hosts]
        programs = [
            Program(200 + rank, rank=rank, host=host, run="job", begin=ahead[rank])
            for rank, host in enumerate(hosts)
        ]
        for rank, program in enumerate(programs):
            program.now = ahead[rank]
        told: dict[str, Any] = {"group": "0", "ranks": f"0-{self.count - 1}"}
        for step in range(self.steps):
            number = {"epoch": 0, "step": step}
            arrivals = []
            for rank, program in enumerate(programs):
                program.span("dataloader", "fetch", self.fetch(rank, step), **number)
                program.span("compute", "forward", self.forward(rank, step), **number)
                program.now += self.sleep(rank, step)
                if self.checkpoint(rank, step):
                    program.span("checkpoint", "capture", self.checkpoint(rank, step))
                if self.read(rank, step):
                    program.read("/d/log", 100, self.read(rank, step))
                program.span("compute", "backward", self.backward, **number)
                arrivals.append(program.now - ahead[rank])
            done = max(arrivals) + self.exchange
            for rank, program in enumerate(programs):
                end = done + ahead[rank]
                says = {**number, **told, "rank": rank, "seq": step, "function": "all_reduce"}
                if rank in self.lonely:
                    program.now = end
                elif self.launched:
                    program.span("comm", "all_reduce", 20, bytes=4000, **{**says, "async": 1})
                    program.now += self.overlap
                    program.span("comm", "wait", max(end - program.now, 3), **says)
                else:
                    program.span("comm", "all_reduce", end - program.now, bytes=4000, **says)
                program.span("compute", "step", 300, **number)
        for program in programs:
            program.write(place)
        return self


@dataclass
class Arrival:
    """One rank at one collective, in microseconds."""

    rank: int
    came: int
    late: int = 0
    waited: int = 0
    last: bool = False


def events_of(place: Path) -> list[dict[str, Any]]:
    found = []
    for path in sorted(place.glob("*.pfw")):
        for line in path.read_text().splitlines()[1:]:
            found.append(json.loads(line))
    return found


def members(ranks: str) -> int:
    ends = [part.partition("-") for part in ranks.split(",")]
    return sum(int(last or first) - int(first) + 1 for first, _, last in ends)


def truth(place: Path, ahead: dict[int, int] | None = None) -> dict[Key, list[Arrival]]:
    """Who came when to each collective, how late, and how long it waited: from the events alone.
    ahead: by rank, what to subtract from its times."""
    spans: dict[Key, dict[int, list[dict[str, Any]]]] = {}
    for event in events_of(place):
        says = event["args"]
        if event["cat"] == "comm" and "seq" in says:
            key = (says["group"], says["ranks"], says["seq"])
            spans.setdefault(key, {}).setdefault(says["rank"], []).append(event)
    found: dict[Key, list[Arrival]] = {}
    for key, ranks in spans.items():
        if len(ranks) != members(key[1]):
            continue
        came = {}
        for rank, events in ranks.items():
            calls = [e for e in events if e["name"] != "wait"] or events
            came[rank] = min(e["ts"] for e in calls) - (ahead or {}).get(rank, 0)
        last = max(came.values())
        rows = []
        for rank, events in ranks.items():
            others = sorted(time for other, time in came.items() if other != rank)
            waited = 0
            for event in events:
                if event["name"] == "wait" or not event["args"].get("async"):
                    start = event["ts"] - (ahead or {}).get(rank, 0)
                    waited += max(min(start + event["dur"], last) - start, 0)
            row = Arrival(rank, came[rank], came[rank] - others[len(others) // 2], waited)
            rows.append(row)
        latest = max(rows, key=lambda row: (row.came, row.rank))
        latest.last = latest.late > 0
        found[key] = sorted(rows, key=lambda row: row.rank)
    return found

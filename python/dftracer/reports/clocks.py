"""The clocks of hosts, by the model of `dftracer merge`: the same offsets leave the same times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dftracer import _reader
from dftracer._format import counted, duration
from dftracer.reports.store import Shifts


@dataclass
class Comparison:
    """What has to be taken from times, and what to say about it."""

    shifts: Shifts = field(default_factory=dict)
    text: str | None = None


def compare(files: Sequence[Path], threads: int = 0) -> Comparison:
    """Reads the traces once more, if they are of several hosts."""
    heads = _reader.probe(list(files))
    hosts = {head["host"] for head in heads if head["host"]}
    if len(hosts) < 2 and not (len(files) > 1 and any(head["merged"] for head in heads)):
        return Comparison()
    found = _reader.clocks(list(files), threads=threads)
    shifts = {(s["path"], s["host"]): 1000 * s["shift_us"] for s in found["shifts"]}
    # Merged files have their times corrected already.
    taken = {host for _, host in shifts}
    told = [_words(clock, clock["host"] in taken) for clock in found["clocks"] if clock["proven"]]
    return Comparison(shifts, "; ".join(told) or None)


def apart(processes: Sequence[dict[str, Any]]) -> str | None:
    """Words about hosts of one run that were never there at the same time, by their clocks."""
    spans: dict[tuple[int, str], list[int]] = {}
    for row in processes:
        if row["host"] is None or row["start_ns"] is None:
            continue
        span = spans.setdefault((row["run"], row["host"]), [row["start_ns"], row["end_ns"]])
        span[0], span[1] = min(span[0], row["start_ns"]), max(span[1], row["end_ns"])
    for (run, host), (start, end) in sorted(spans.items()):
        others = [(name, span) for (of, name), span in spans.items() if of == run and name != host]
        if others and all(end < span[0] or start > span[1] for _, span in others):
            return (
                f"by its clock, {host} ran at no time at which {others[0][0]} did. It may be "
                "wrong, but no collective operation tells by how much: times are as recorded"
            )
    return None


def _words(clock: dict[str, int | str], taken: bool) -> str:
    offset = int(clock["offset_ns"])
    side = "ahead of" if offset > 0 else "behind"
    done = "taken out of its times" if taken else "its times are corrected already"
    return (
        f"the clock of {clock['host']} is {duration(abs(offset))} {side} that of "
        f"{clock['against']}, at most {duration(int(clock['uncertainty_ns']))} off "
        f"({counted(int(clock['rounds']), 'collective operation')}): {done}"
    )

"""Clock offsets between hosts, as in `dftracer merge`: both produce the same times."""

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
    """Corrections of times, and their description."""

    shifts: Shifts = field(default_factory=dict)
    text: str | None = None


def compare(files: Sequence[Path], threads: int = 0) -> Comparison:
    """Reads the traces once more if they are from several hosts."""
    heads = _reader.probe(list(files))
    hosts = {head["host"] for head in heads if head["host"]}
    if len(hosts) < 2 and not (len(files) > 1 and any(head["merged"] for head in heads)):
        return Comparison()
    found = _reader.clocks(list(files), threads=threads)
    shifts = {(s["path"], s["host"]): 1000 * s["shift_us"] for s in found["shifts"]}
    # The times of merged files are already corrected.
    taken = {host for _, host in shifts}
    texts = [_words(clock, clock["host"] in taken) for clock in found["clocks"] if clock["proven"]]
    return Comparison(shifts, "; ".join(texts) or None)


def apart(processes: Sequence[dict[str, Any]]) -> str | None:
    """A warning about hosts of one run that never ran at the same time, by their clocks."""
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
                f"by their clocks, {host} and {others[0][0]} never ran at the same time. One clock "
                "may be wrong, but no collective operation shows by how much: times are as recorded"
            )
    return None


def _words(clock: dict[str, int | str], taken: bool) -> str:
    offset = int(clock["offset_ns"])
    side = "ahead of" if offset > 0 else "behind"
    done = "corrected" if taken else "already corrected in the trace"
    return (
        f"the clock of {clock['host']} is {duration(abs(offset))} {side} that of "
        f"{clock['against']}, within {duration(int(clock['uncertainty_ns']))} "
        f"({counted(int(clock['rounds']), 'collective operation')}): {done}"
    )

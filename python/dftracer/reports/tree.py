"""Processes as a tree: which one started which, depth first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dftracer._names import shorten
from dftracer.reports.model import Table
from dftracer.reports.schema import derived

Row = dict[str, Any]

CORNER, LINE = "\N{BOX DRAWINGS LIGHT UP AND RIGHT}", "\N{BOX DRAWINGS LIGHT HORIZONTAL}"
LONGEST = 120
COLUMNS = (
    ("tree", "text", "command line, below the process that started it"),
    ("pid", "int", "process id"),
    ("life_ns", "int", "from its start to its end"),
    ("cpu_ns", "int", "CPU time, if its end record contains it"),
    ("io_ns", "int", "time in which at least one of its I/O calls was open"),
    ("wait_ns", "int", "time in which it waited for its children, or on a pipe or socket"),
    ("idle_ns", "int", "time in which it slept or waited for something that is not traced"),
    ("read_bytes", "int", "bytes of files that it read"),
    ("write_bytes", "int", "bytes of files that it wrote"),
)


def walk(
    processes: Sequence[Row], order: Callable[[Row], Any] = lambda row: row["start_ns"] or 0
) -> Iterator[tuple[int, Row]]:
    """Depth and process; children in this order below the process that started them."""
    children: dict[Any, list[Row]] = {}
    known = {row["process"] for row in processes}
    for row in processes:
        parent = row["parent"] if row["parent"] in known else None
        children.setdefault(parent, []).append(row)
    for rows in children.values():
        rows.sort(key=lambda row: (order(row), row["process"]))
    # Without recursion: a chain of processes may be longer than Python's stack.
    # Process ids are used again: where two seem to have started each other, one is at the top.
    seen: set[int] = set()
    for root in (*children.get(None, []), *processes):
        left = [(0, root)]
        while left:
            depth, row = left.pop()
            if row["process"] not in seen:
                seen.add(row["process"])
                yield depth, row
                below = reversed(children.get(row["process"], []))
                left += [(depth + 1, child) for child in below]


def branch(depth: int) -> str:
    """What stands before the name of a process: the longer, the deeper. Tables join spaces."""
    return f"{CORNER}{LINE * (2 * depth - 1)} " if depth else ""


def tree_table(processes: Sequence[Row]) -> Table:
    schema = derived("process_tree", "every process below the one that started it", COLUMNS)
    rows = []
    for depth, row in walk(processes):
        command = shorten((row["command"] or "").strip(), LONGEST, keep_start=True)
        name = f"{branch(depth)}{command or '(unknown)'}"
        rows.append((name, *(row[column] for column, *_ in COLUMNS[1:])))
    return Table(schema, rows)

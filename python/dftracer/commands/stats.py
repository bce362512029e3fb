"""`dftracer stats TRACE...`: calls, times, bytes and percentiles, by name, process and file."""

from __future__ import annotations

import argparse
import heapq
import json
from collections.abc import Callable, Sequence
from typing import Union

from dftracer._format import amount, counted, duration, size
from dftracer._layout import Column, name_column, table
from dftracer.commands._cli import reading
from dftracer.commands._cli.options import natural
from dftracer.commands._cli.progress import Progress
from dftracer.commands._cli.terminal import dim, width
from dftracer.trace import runs
from dftracer.trace.summary import Process, Row, TraceSummary, UsedFile, summarise_all

Rows = Sequence[Union[Row, Process, UsedFile]]

SORTS = ("time", "count", "bytes", "name")

EXAMPLES = """\
  dftracer stats traces                      calls, time, bytes and percentiles
  dftracer stats traces --by file --top 50   the files that took most of the time
  dftracer stats traces --json               everything, as JSON
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    reading.add_arguments(parser)
    parser.add_argument(
        "--top",
        type=natural,
        default=20,
        metavar="N",
        help="rows per table (default 20; 0 shows all)",
    )
    parser.add_argument(
        "--sort", choices=SORTS, default="time", help="order of the rows (default time)"
    )
    parser.add_argument(
        "--by",
        choices=("name", "process", "file"),
        action="append",
        help="tables to show; may be repeated (default: all)",
    )


def run(args: argparse.Namespace) -> int:
    traces = reading.open_traces(args, strangers=True)
    wanted = args.by or ["name", "process", "file"]
    with Progress.of_files(traces) as bar:
        # Only the files show which bytes went through pipes.
        found = summarise_all(traces, threads=args.threads, by_path=True, progress=bar.callback)
    if "file" not in wanted:
        found.used = []
    if args.json:
        print(json.dumps(as_json(found, args.sort), indent=1))
        return reading.report_damage(found.damage)
    tables: list[tuple[str, Sequence[Column], Rows, Callable[[Rows], list[list[str]]]]] = [
        ("name", NAME_COLUMNS, found.rows, _name_cells),
        ("process", PROCESS_COLUMNS, found.processes, _process_cells),
        ("file", FILE_COLUMNS, found.used, _file_cells),
    ]
    for key, columns, rows, cells in tables:
        if key in wanted:
            shown = _ordered(rows, args.sort, args.top)
            _print_table(columns, cells(shown), len(rows) - len(shown))
    _print_end(found, len(traces))
    return reading.report_damage(found.damage)


def as_json(found: TraceSummary, sort: str = "time") -> dict[str, object]:
    return {
        "events": found.events,
        "records": found.records,
        "bytes": found.size,
        "first_ns": found.first,
        "last_ns": found.last,
        "names": [vars(row) for row in _ordered(found.rows, sort)],
        "processes": [vars(process) for process in _ordered(found.processes, sort)],
        "files": [vars(file) for file in _ordered(found.used, sort)],
        "traces": [str(file.path) for file in found.files],
        "runs": runs.as_json(found.processes),
        "damaged": found.damage.damaged,
        "problems": found.damage.problems,
    }


def _ordered(rows: Rows, sort: str, top: int = 0) -> list[Row | Process | UsedFile]:
    """The first `top` rows; all for 0."""

    def name(row: Row | Process | UsedFile) -> tuple[str, ...]:
        if isinstance(row, Row):
            return (row.cat, row.name)
        if isinstance(row, Process):
            return (row.trace, f"{row.pid:020}", row.host)
        return (row.path,)

    def weight(row: Row | Process | UsedFile) -> int:
        count = row.events if isinstance(row, Process) else row.count
        weights = {"time": row.total, "count": count, "bytes": _sum(row)}
        return -weights.get(sort, 0)

    def key(row: Row | Process | UsedFile) -> tuple[int, tuple[str, ...]]:
        return weight(row), name(row)

    return heapq.nsmallest(top, rows, key) if 0 < top < len(rows) else sorted(rows, key=key)


def _sum(row: Row | Process | UsedFile) -> int:
    return (row.read_bytes or 0) + (row.write_bytes or 0)


NAME_COLUMNS = (
    name_column("category"),
    name_column("name"),
    Column("events"),
    Column("total"),
    Column("mean", rank=1),
    Column("p50", rank=4),
    Column("p90", rank=4),
    Column("p99", rank=3),
    Column("longest", rank=2),
    Column("read", rank=5),
    Column("written", rank=5),
)
PROCESS_COLUMNS = (
    name_column("process"),
    name_column("host", rank=4),
    name_column("rank"),
    Column("events"),
    Column("threads", rank=3),
    Column("total"),
    Column("read", rank=1),
    Column("written", rank=1),
)
FILE_COLUMNS = (
    name_column("file"),
    Column("calls"),
    Column("total"),
    Column("reads", rank=2),
    Column("read", rank=1),
    Column("writes", rank=2),
    Column("written", rank=1),
    Column("mapped", rank=3),
)


def _name_cells(rows: Rows) -> list[list[str]]:
    cells = []
    for row in rows:
        if isinstance(row, Row):
            times = (row.total, row.total / max(row.count, 1))
            cells.append(
                [
                    row.cat,
                    row.name,
                    f"{row.count:,}",
                    *map(duration, times),
                    *(duration(value, 2) for value in (row.p50, row.p90, row.p99)),
                    duration(row.longest),
                    *_moved(row),
                ]
            )
    return cells


def _process_cells(rows: Rows) -> list[list[str]]:
    cells = []
    for row in rows:
        if isinstance(row, Process):
            cells.append(
                [
                    str(row.pid),
                    row.host,
                    row.rank,
                    f"{row.events:,}",
                    str(row.threads),
                    duration(row.total),
                    *_moved(row),
                ]
            )
    return cells


def _file_cells(rows: Rows) -> list[list[str]]:
    cells = []
    for row in rows:
        if isinstance(row, UsedFile):
            read, written = _moved(row)
            counts = [f"{row.count:,}", duration(row.total)]
            reads = [f"{row.reads:,}", read, f"{row.writes:,}", written]
            cells.append([row.path, *counts, *reads, _amount(row.mapped_bytes, 0)])
    return cells


def _moved(row: Row | Process | UsedFile) -> list[str]:
    return [
        _amount(row.read_bytes, row.read_unknown),
        _amount(row.write_bytes, row.write_unknown),
    ]


def _amount(number: int | None, unknown: int) -> str:
    return "" if number == 0 else amount(number, unknown)


def _print_table(columns: Sequence[Column], cells: list[list[str]], hidden: int) -> None:
    if not cells:
        return
    head, *lines = table(columns, cells, width())
    print("\n".join([dim(head), *lines]))
    if hidden:
        print(f"… and {counted(hidden, 'more row')}; --top 0 shows all")
    print()


def _print_end(found: TraceSummary, files: int) -> None:
    parts = [
        counted(files, "file"),
        counted(len(found.processes), "process", "processes"),
        counted(found.events, "event"),
        size(found.size),
    ]
    several = runs.runs_of([runs.life_of(process) for process in found.processes])
    if len(several) > 1:
        # The time between runs belongs to no run.
        spans = [(r.start, r.end) for r in several if r.start is not None and r.end is not None]
        parts.append(f"{duration(runs.covered(spans))} in {len(several):,} runs")
    elif found.first is not None and found.last is not None:
        parts.append(duration(found.last - found.first))
    lost = sum(process.lost for process in found.processes)
    if lost:
        parts.append(f"{lost:,} events lost")
    print(", ".join(parts))
    pipes = [
        f"{_amount(found.pipes[f'{way}_bytes'], found.pipes[f'{way}_unknown'])} {verb}"
        for way, verb in (("read", "read"), ("write", "written"))
        if found.pipes[f"{way}_bytes"] or found.pipes[f"{way}_unknown"]
    ]
    if pipes:
        what = "through pipes, sockets and terminals (not in the sums above)"
        print(f"{what}: {', '.join(pipes)}")
    for line in reading.run_lines(several):
        print(line)

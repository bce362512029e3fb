"""`dftracer stats TRACE...`: calls, times, bytes and percentiles, by name, process and file."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence

from dftracer.commands import reading
from dftracer.commands.reading import bytes_text, counted, dim, duration_text, shorten
from dftracer.trace import runs
from dftracer.trace.summary import Process, Row, TraceSummary, UsedFile, summarise_all

SORTS = ("time", "count", "bytes", "name")

EXAMPLES = """\
  dftracer stats traces                    by name: calls, time, bytes, percentiles
  dftracer stats traces --by file --top 50 the files that took the time
  dftracer stats traces --json             all of it, for a program
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    reading.add_arguments(parser)
    parser.add_argument(
        "--top", type=int, default=20, metavar="N", help="rows of each table (default 20, 0: all)"
    )
    parser.add_argument("--sort", choices=SORTS, default="time", help="order of the rows")
    parser.add_argument(
        "--by",
        choices=("name", "process", "file"),
        action="append",
        help="which tables (default: all)",
    )


def run(args: argparse.Namespace) -> int:
    traces = reading.open_traces(args)
    bar = reading.progress_bar(traces)
    wanted = args.by or ["name", "process", "file"]
    found = summarise_all(traces, threads=args.threads, by_path="file" in wanted, progress=bar)
    reading.end_progress(bar)
    if args.json:
        print(json.dumps(as_json(found, args.sort), indent=1))
        return reading.tell_damage(found.damage)
    tables: list[tuple[str, Callable[[], list[list[str]]], int]] = [
        ("name", lambda: _name_cells(_ordered(found.rows, args.sort)), 2),
        ("process", lambda: _process_cells(_ordered(found.processes, args.sort)), 3),
        ("file", lambda: _file_cells(_ordered(found.used, args.sort)), 1),
    ]
    for key, cells, left in tables:
        if key in wanted:
            _print_table(cells(), left, args.top)
    _print_end(found, len(traces))
    return reading.tell_damage(found.damage)


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


def _ordered(rows: Sequence[Row | Process | UsedFile], sort: str) -> list[Row | Process | UsedFile]:
    def name(row: Row | Process | UsedFile) -> tuple[str, ...]:
        if isinstance(row, Row):
            return (row.cat, row.name)
        if isinstance(row, Process):
            return (row.trace, f"{row.pid:020}", row.host)
        return (row.path,)

    def weight(row: Row | Process | UsedFile) -> int:
        count = row.events if isinstance(row, Process) else row.count
        weights = {"time": row.total, "count": count, "bytes": row.read_bytes + row.write_bytes}
        return -weights.get(sort, 0)

    return sorted(rows, key=lambda row: (weight(row), name(row)))


def _name_cells(rows: Sequence[Row | Process | UsedFile]) -> list[list[str]]:
    head = [
        "category",
        "name",
        "events",
        "total",
        "mean",
        "p50",
        "p90",
        "p99",
        "longest",
        "read",
        "written",
    ]
    cells = [head]
    for row in rows:
        if isinstance(row, Row):
            times = (row.total, row.total / max(row.count, 1))
            cells.append(
                [
                    shorten(row.cat, 16),
                    shorten(row.name, 30),
                    f"{row.count:,}",
                    *map(duration_text, times),
                    *(duration_text(value, 2) for value in (row.p50, row.p90, row.p99)),
                    duration_text(row.longest),
                    *_moved(row.read_bytes, row.write_bytes),
                ]
            )
    return cells


def _process_cells(rows: Sequence[Row | Process | UsedFile]) -> list[list[str]]:
    cells = [["process", "host", "rank", "events", "threads", "total", "read", "written"]]
    for row in rows:
        if isinstance(row, Process):
            cells.append(
                [
                    str(row.pid),
                    shorten(row.host, 24),
                    shorten(row.rank, 6),
                    f"{row.events:,}",
                    str(row.threads),
                    duration_text(row.total),
                    *_moved(row.read_bytes, row.write_bytes),
                ]
            )
    return cells


def _file_cells(rows: Sequence[Row | Process | UsedFile]) -> list[list[str]]:
    cells = [["file", "calls", "total", "reads", "read", "writes", "written"]]
    for row in rows:
        if isinstance(row, UsedFile):
            read, written = _moved(row.read_bytes, row.write_bytes)
            counts = [f"{row.count:,}", duration_text(row.total)]
            reads = [f"{row.reads:,}", read, f"{row.writes:,}", written]
            cells.append([shorten(row.path, 50), *counts, *reads])
    return cells


def _moved(read: int, written: int) -> list[str]:
    return [bytes_text(size) if size else "" for size in (read, written)]


def _print_table(cells: list[list[str]], left: int, top: int) -> None:
    if len(cells) == 1:
        return
    shown = cells if top <= 0 else cells[: top + 1]
    widths = [max(len(row[column]) for row in shown) for column in range(len(cells[0]))]
    for index, row in enumerate(shown):
        line = "  ".join(
            f"{cell:<{width}}" if column < left else f"{cell:>{width}}"
            for column, (cell, width) in enumerate(zip(row, widths))
        ).rstrip()
        print(dim(line) if index == 0 else line)
    if len(cells) > len(shown):
        print(f"and {counted(len(cells) - len(shown), 'further row')}; --top 0 shows all")
    print()


def _print_end(found: TraceSummary, files: int) -> None:
    parts = [
        counted(files, "file"),
        counted(len(found.processes), "process", "processes"),
        counted(found.events, "event"),
        bytes_text(found.size),
    ]
    several = runs.runs_of([runs.life_of(process) for process in found.processes])
    if len(several) > 1:
        # The time between them belongs to none.
        spans = [(r.start, r.end) for r in several if r.start is not None and r.end is not None]
        parts.append(f"{duration_text(runs.covered(spans))} in {len(several):,} runs")
    elif found.first is not None and found.last is not None:
        parts.append(duration_text(found.last - found.first))
    lost = sum(process.lost for process in found.processes)
    if lost:
        parts.append(f"{lost:,} events lost")
    print(", ".join(parts))
    for line in reading.run_lines(several):
        print(line)

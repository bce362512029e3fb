"""`dftracer info TRACE...`: what trace files contain, at a glance."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from dftracer import _secrets
from dftracer._format import counted, digits, duration, size
from dftracer._layout import Column, name_column, pad, table, wrap
from dftracer._names import columns_of, printable, shorten
from dftracer.commands._cli import reading
from dftracer.commands._cli.options import natural
from dftracer.commands._cli.progress import Progress
from dftracer.commands._cli.terminal import bold, dim, width
from dftracer.trace import runs
from dftracer.trace.files import siblings
from dftracer.trace.summary import Process, Row, Summary, TraceSummary, summarise_all

# With more files than this, each gets one line, and their events one table.
MOST_EACH = 3
MOST_PROCESSES = 8
MOST_LINES = 6  # per sample event

EXAMPLES = """\
  dftracer info traces                     all files of a directory
  dftracer info traces --each              details of every file, however many there are
  dftracer info run.pfw.gz --top 40        more rows in the table of events
  dftracer info run.pfw.gz --run --json    all files of the same run, as JSON
  dftracer info traces --run latest        only the last run in a directory
"""

NAME_COLUMNS = (
    name_column("category"),
    name_column("name"),
    Column("events"),
    Column("total"),
    Column("mean", rank=1),
    Column("longest", rank=2),
)
FILE_COLUMNS = (
    name_column("file"),
    Column("events"),
    Column("size", rank=4),
    Column("status", right=False, rank=1),
    Column("pid", rank=2),
    Column("rank", rank=3),
    name_column("command", rank=5, keep_start=True),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    reading.add_arguments(parser)
    parser.add_argument(
        "--each",
        action="store_true",
        help=f"show the details of each file, even of more than {MOST_EACH}",
    )
    parser.add_argument(
        "--top",
        type=natural,
        default=15,
        metavar="N",
        help="rows per table (default 15; 0 shows all)",
    )
    parser.add_argument(
        "--lines", type=natural, default=3, metavar="N", help="sample events per file (default 3)"
    )


def run(args: argparse.Namespace) -> int:
    traces = reading.open_traces(args, strangers=True, joined=False)
    with Progress.of_files(traces) as bar:
        found = summarise_all(
            traces,
            threads=args.threads,
            by_file=True,
            by_path=True,  # only the name of a file shows that it is a pipe
            samples=args.lines,
            progress=bar.callback,
        )
    if args.json:
        print(json.dumps(as_json(found), indent=1))
        return reading.report_damage(found.damage)
    if args.each or len(found.files) <= MOST_EACH:
        for summary in found.files:
            print_summary(summary, args.top)
    else:
        print_overview(found, args.top)
    parts = [
        counted(len(traces), "file"),
        counted(len(found.processes), "process", "processes"),
        counted(found.events, "event"),
        size(found.size),
    ]
    print(", ".join(parts))
    lives = [runs.life_of(process) for process in found.processes]
    for line in reading.run_lines(runs.runs_of(lives)):
        print(line)
    if len(traces) == 1:
        others = siblings(traces[0])
        if others:
            print(f"{counted(len(others), 'more file')} of this run beside it; --run includes them")
    return reading.report_damage(found.damage)


def as_json(found: TraceSummary) -> dict[str, object]:
    files = []
    for summary in found.files:
        files.append(
            {
                "path": str(summary.path),
                "size": summary.size,
                "status": summary.status,
                "damaged": summary.damaged,
                "events": summary.events,
                "records": summary.records,
                "run": summary.run,
                "first_ns": summary.first,
                "last_ns": summary.last,
                "processes": [vars(process) for process in summary.processes.values()],
                "names": [vars(row) for row in _sorted(summary.rows.values())],
                "metadata": dict(summary.metadata),
                "troubles": summary.troubles,
            }
        )
    return {
        "files": files,
        "processes": len(found.processes),
        "events": found.events,
        "records": found.records,
        "bytes": found.size,
        "runs": runs.as_json(found.processes),
        "damaged": found.damage.damaged,
        "problems": found.damage.problems,
    }


def print_summary(summary: Summary, top: int) -> None:
    room = width()
    facts = f"{size(summary.size)}, {summary.status}"
    name = shorten(str(summary.path), max(room - len(facts) - 2, 24))
    if columns_of(name) + len(facts) + 2 <= room:
        print(f"{bold(name)}{pad(facts, room - columns_of(name), right=True)}")
    else:
        print(f"{bold(name)}\n  {facts}")
    for process in list(summary.processes.values())[:MOST_PROCESSES]:
        print("\n".join(_process_lines(process, room)))
    more = len(summary.processes) - MOST_PROCESSES
    if more > 0:
        print(f"  … and {counted(more, 'more process', 'more processes')}")
    print("\n".join(wrap(_time_line(summary), room, "  ", "    ")))
    _print_names(summary.rows.values(), top)
    _print_sample(summary)
    print()


def print_overview(found: TraceSummary, top: int) -> None:
    """Many files: a line per file, and one table of the events of all."""
    directories = {os.path.dirname(summary.path) for summary in found.files}
    common = directories.pop() if len(directories) == 1 else None
    if common:
        print(bold(shorten(common, width())))
    rows = []
    for summary in found.files if top <= 0 else found.files[:top]:
        name = summary.path.name if common is not None else str(summary.path)
        cells = [name, f"{summary.events:,}", size(summary.size), summary.status]
        rows.append([*cells, *_process_cells(summary)])
    _print_table(FILE_COLUMNS, rows)
    if len(rows) < len(found.files):
        print(f"  … and {counted(len(found.files) - len(rows), 'more file')}; --top 0 shows all")
    _print_names((row for summary in found.files for row in summary.rows.values()), top)
    _print_sample(found.files[0])
    print(f"\n  --each shows the details of all {len(found.files):,} files\n")


def _process_cells(summary: Summary) -> list[str]:
    found = list(summary.processes.values())
    if len(found) != 1:
        return ["", "", counted(len(found), "process", "processes") if found else ""]
    return [str(found[0].pid), found[0].rank, found[0].command]


def _process_lines(process: Process, room: int) -> list[str]:
    parts = [f"pid {process.pid}"]
    if process.rank:
        parts.append(f"rank {shorten(process.rank, 10)}")
    if process.host:
        parts.append(f"on {shorten(process.host, 30)}")
    parts.append(counted(process.events, "event"))
    if process.threads:
        parts.append(counted(process.threads, "thread"))
    if process.lost:
        parts.append(f"{process.lost:,} lost")
    lines = wrap(", ".join(parts) + ":" * bool(process.command), room, "  ", "    ")
    left = room - columns_of(lines[-1]) - 1
    if process.command and left < min(12, columns_of(process.command)):
        lines.append("   ")
        left = room - 4
    if process.command:
        lines[-1] += f" {shorten(process.command, left, keep_start=True)}"
    return lines


def _time_line(summary: Summary) -> str:
    parts = []
    if summary.first is not None and summary.last is not None:
        try:
            parts.append(_period(summary.first, summary.last))
        except (OverflowError, OSError, ValueError):
            parts.append(f"time {summary.first} to {summary.last} ns")
        parts.append(duration(summary.last - summary.first))
    if summary.events:
        parts.append(f"{digits(summary.size / summary.events)} bytes per event")
    metadata = sum(summary.metadata.values())
    if metadata:
        parts.append(counted(metadata, "metadata record"))
    return ", ".join(parts) or "no records"


def _period(first: int, last: int) -> str:
    begin, end = map(runs.local_time, (first, last))
    text = f"{begin:%Y-%m-%d %H:%M:%S.%f}"
    if begin.utcoffset() != end.utcoffset():  # the clocks changed meanwhile
        text += f" {runs.zone_text(begin)}"
    day = "" if begin.date() == end.date() else f"{end:%Y-%m-%d} "
    return f"{text} to {day}{end:%H:%M:%S.%f} {runs.zone_text(end)}"


def _sorted(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (-row.total, -row.count, row.cat, row.name))


def _added_up(rows: Iterable[Row]) -> list[Row]:
    """One row per name over several files. Percentiles cannot be added: they are dropped."""
    found: dict[tuple[str, str], Row] = {}
    for row in rows:
        one = found.get((row.cat, row.name))
        if one is None:
            found[row.cat, row.name] = replace(row, p50=0, p90=0, p99=0)
            continue
        one.count += row.count
        one.total += row.total
        one.longest = max(one.longest, row.longest)
        # The known part of a sum; the counts of unknown transfers show that it is not all.
        one.read_bytes = _sum(one.read_bytes, row.read_bytes)
        one.write_bytes = _sum(one.write_bytes, row.write_bytes)
        one.read_unknown += row.read_unknown
        one.write_unknown += row.write_unknown
    return list(found.values())


def _sum(one: int | None, other: int | None) -> int | None:
    return None if not one and not other and None in (one, other) else (one or 0) + (other or 0)


def _print_names(found: Iterable[Row], top: int) -> None:
    rows = _sorted(_added_up(found))
    if not rows:
        return
    shown = rows if top <= 0 else rows[:top]
    cells = []
    for row in shown:
        times = (row.total, row.total / max(row.count, 1), row.longest)
        cells.append([row.cat, row.name, f"{row.count:,}", *map(duration, times)])
    print()
    _print_table(NAME_COLUMNS, cells)
    hidden = rows[len(shown) :]
    if hidden:
        number = sum(row.count for row in hidden)
        print(f"  … and {counted(len(hidden), 'more name')} with {counted(number, 'event')}")


def _print_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    head, *lines = table(columns, rows, width() - 2)
    print("\n".join([dim(f"  {head}"), *(f"  {line}" for line in lines)]))


def _print_sample(summary: Summary) -> None:
    if not summary.sample:
        return
    shown = len(summary.sample)
    print(f"\n  first {'event' if shown == 1 else f'{shown} events'}, as written")
    for line in summary.sample:
        print("\n".join(_wrapped(line, width())))


def _wrapped(line: str, room: int) -> list[str]:
    # JSON without blanks can only be broken at its commas.
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):  # integers or depth past Python's limit
        text = line
    else:
        text = json.dumps(_without_secrets(record), ensure_ascii=False, separators=(",", ":"))
    pieces = printable(text).split(",")
    lines = ["  "]
    for index, piece in enumerate(pieces):
        text = piece if index == len(pieces) - 1 else piece + ","
        if columns_of(lines[-1] + text) > room and lines[-1].strip():
            lines.append("    ")
        lines[-1] += text
    lines = [shorten(item, room, keep_start=True) for item in lines]
    return lines if len(lines) <= MOST_LINES else [*lines[: MOST_LINES - 1], "    …"]


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_secrets(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_secrets(item) for item in value]
    return _secrets.shown(value) if isinstance(value, str) else value

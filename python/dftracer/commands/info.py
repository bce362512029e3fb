"""`dftracer info TRACE...`: what trace files hold, at a glance."""

from __future__ import annotations

import argparse
import json
from datetime import datetime
from typing import Any

from dftracer import _secrets
from dftracer.commands import reading
from dftracer.commands.reading import bold, bytes_text, counted, dim, duration_text, shorten
from dftracer.trace import runs
from dftracer.trace.files import siblings
from dftracer.trace.summary import Process, Row, Summary, TraceSummary, summarise_all

WIDTH = 100

EXAMPLES = """\
  dftracer info traces                     a directory, all its processes
  dftracer info run.pfw.gz --top 40        more rows of the table of events
  dftracer info run.pfw.gz --run --json    all files of that run, for a program
  dftracer info traces --run latest        of several runs in a directory, the last
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    reading.add_arguments(parser)
    parser.add_argument(
        "--top", type=int, default=15, metavar="N", help="rows of the event table (default 15)"
    )
    parser.add_argument(
        "--lines", type=int, default=3, metavar="N", help="sample lines of each file (default 3)"
    )


def run(args: argparse.Namespace) -> int:
    traces = reading.open_traces(args)
    bar = reading.progress_bar(traces)
    found = summarise_all(
        traces,
        threads=args.threads,
        by_file=True,
        by_path=False,
        samples=max(args.lines, 0),
        progress=bar,
    )
    reading.end_progress(bar)
    if args.json:
        print(json.dumps(as_json(found), indent=1))
        return reading.tell_damage(found.damage)
    for summary in found.files:
        print_summary(summary, max(args.top, 0))
    print(
        f"{counted(len(traces), 'file')}, {counted(len(found.processes), 'process', 'processes')}, "
        f"{counted(found.events, 'event')}, {bytes_text(found.size)}"
    )
    lives = [runs.life_of(process) for process in found.processes]
    for line in reading.run_lines(runs.runs_of(lives)):
        print(line)
    if len(traces) == 1:
        others = siblings(traces[0])
        if others:
            print(f"{counted(len(others), 'further file')} of this run beside it: add --run")
    return reading.tell_damage(found.damage)


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
                "names": [vars(row) for row in _sorted(summary)],
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
    facts = f"{bytes_text(summary.size)}, {summary.status}"
    name = shorten(str(summary.path), WIDTH - len(facts) - 2)
    print(f"{bold(name)}{facts:>{WIDTH - len(name)}}")
    for process in list(summary.processes.values())[:8]:
        print(f"  {_process_line(process)}")
    if len(summary.processes) > 8:
        print(
            f"  and {counted(len(summary.processes) - 8, 'further process', 'further processes')}"
        )
    print(f"  {_time_line(summary)}")
    if summary.rows:
        print()
        _print_table(summary, top)
    if summary.sample:
        shown = len(summary.sample)
        print(f"\n  the first {'event' if shown == 1 else f'{shown} events'} as written")
        for line in summary.sample:
            print("\n".join(_wrapped(line)))
    print()


def _process_line(process: Process) -> str:
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
    line = ", ".join(parts)
    room = WIDTH - len(line) - 4
    if process.command and room > 12:
        command = reading.printable(process.command)
        line += ": " + (command if len(command) <= room else command[: room - 1] + "…")
    return line


def _time_line(summary: Summary) -> str:
    parts = []
    if summary.first is not None and summary.last is not None:
        try:
            begin = datetime.fromtimestamp(summary.first / 1e9)
            end = datetime.fromtimestamp(summary.last / 1e9)
        except (OverflowError, OSError, ValueError):
            parts.append(f"time {summary.first} to {summary.last} ns")
        else:
            parts.append(f"{begin:%Y-%m-%d %H:%M:%S.%f} to {end:%H:%M:%S.%f}")
        parts.append(duration_text(summary.last - summary.first))
    if summary.events:
        parts.append(f"{summary.size / summary.events:.3g} bytes an event")
    metadata = sum(summary.metadata.values())
    if metadata:
        parts.append(counted(metadata, "record") + " of metadata")
    return ", ".join(parts) or "no records"


def _sorted(summary: Summary) -> list[Row]:
    return sorted(
        summary.rows.values(), key=lambda row: (-row.total, -row.count, row.cat, row.name)
    )


def _print_table(summary: Summary, top: int) -> None:
    rows = _sorted(summary)
    cells = [("category", "name", "events", "total", "mean", "longest")]
    for row in rows[:top]:
        cells.append(
            (
                shorten(row.cat, 20),
                shorten(row.name, 34),
                f"{row.count:,}",
                duration_text(row.total),
                duration_text(row.total / row.count),
                duration_text(row.longest),
            )
        )
    left = [max(len(row[column]) for row in cells) for column in (0, 1)]
    for index, (category, name, *numbers) in enumerate(cells):
        line = f"  {category:<{left[0]}}  {name:<{left[1]}}{numbers[0]:>12}"
        line += "".join(f"{number:>10}" for number in numbers[1:])
        print(dim(line) if index == 0 else line)
    hidden = rows[top:]
    if hidden:
        number = sum(row.count for row in hidden)
        print(f"  and {counted(len(hidden), 'further name')} with {counted(number, 'event')}")


def _wrapped(line: str) -> list[str]:
    # JSON without blanks offers no place to break but its commas.
    try:
        record = json.loads(line)
    except ValueError:  # integers past Python's limit, depth: shown as it is
        text = line
    else:
        text = json.dumps(_without_secrets(record), ensure_ascii=False, separators=(",", ":"))
    pieces = reading.printable(text).split(",")
    lines = ["  "]
    for index, piece in enumerate(pieces):
        text = piece if index == len(pieces) - 1 else piece + ","
        if len(lines[-1]) + len(text) > WIDTH and lines[-1].strip():
            lines.append("    ")
        lines[-1] += text
    lines = [item if len(item) <= WIDTH else item[: WIDTH - 1] + "…" for item in lines]
    return lines if len(lines) <= 6 else [*lines[:5], "    …"]


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_secrets(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_secrets(item) for item in value]
    return _secrets.shown(value) if isinstance(value, str) else value

"""`dftracer info PATH...`: what trace files hold, at a glance."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable
from datetime import datetime

from dftracer.commands.recover import recover_directory
from dftracer.errors import DFTracerError
from dftracer.trace.lines import Record, find_traces
from dftracer.trace.summary import Process, Summary, summarise

WIDTH = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", metavar="PATH", nargs="+", help="trace files or their directories")
    parser.add_argument(
        "--top", type=int, default=15, metavar="N", help="rows of the event table (default 15)"
    )
    parser.add_argument(
        "--lines", type=int, default=3, metavar="N", help="sample lines of each file (default 3)"
    )
    parser.add_argument(
        "--no-recover", action="store_true", help="leave the spools of dead processes alone"
    )


def counted(number: int, noun: str, plural: str = "") -> str:
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def bytes_text(size: float) -> str:
    if size < 1000:
        return f"{int(size)} B"
    for unit in ("KB", "MB"):
        size /= 1000
        if size < 999.5:
            return f"{size:.3g} {unit}"
    return f"{size / 1000:,.3g} GB"


def duration_text(seconds: float) -> str:
    if seconds == 0:
        return "0"
    for limit, scale, unit in ((1e-6, 1e9, "ns"), (1e-3, 1e6, "us"), (1.0, 1e3, "ms")):
        if seconds < limit * 0.9995:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds:.3g} s" if seconds < 999.5 else f"{seconds:,.0f} s"


def printable(text: str) -> str:
    """A name in a trace may hold anything; a terminal must not act on it."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def shorten(text: str, width: int) -> str:
    """At most `width` columns; the end of a path or a name says more than its start."""
    clean = printable(text)
    return clean if len(clean) <= width else "…" + clean[len(clean) - width + 1 :]


def print_summary(summary: Summary, top: int) -> None:
    facts = f"{bytes_text(summary.size)}, {summary.status}"
    name = shorten(str(summary.path), WIDTH - len(facts) - 2)
    print(f"{_bold(name)}{facts:>{WIDTH - len(name)}}")
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
        for record in summary.sample:
            print("\n".join(_wrapped(record)))
    print()


def _process_line(process: Process) -> str:
    parts = [f"pid {process.pid}"]
    if process.rank:
        parts.append(f"rank {process.rank}")
    if process.host:
        parts.append(f"on {shorten(process.host, 30)}")
    parts.append(counted(process.events, "event"))
    if process.threads:
        parts.append(counted(len(process.threads), "thread"))
    if process.lost:
        parts.append(f"{process.lost:,} lost")
    line = ", ".join(parts)
    room = WIDTH - len(line) - 4
    if process.command and room > 12:
        command = printable(process.command)
        line += ": " + (command if len(command) <= room else command[: room - 1] + "…")
    return line


def _time_line(summary: Summary) -> str:
    scale = summary.units_a_second
    parts = []
    if summary.first is not None and summary.last is not None:
        first, last = summary.first / scale, summary.last / scale
        try:
            begin = datetime.fromtimestamp(first)
            end = datetime.fromtimestamp(last)
        except (OverflowError, OSError, ValueError):
            parts.append(f"time {summary.first} to {summary.last}")
        else:
            parts.append(f"{begin:%Y-%m-%d %H:%M:%S.%f} to {end:%H:%M:%S.%f}")
        parts.append(duration_text((summary.last - summary.first) / scale))
    if summary.events:
        parts.append(f"{summary.size / summary.events:.3g} bytes an event")
    metadata = sum(summary.metadata.values())
    if metadata:
        parts.append(counted(metadata, "record") + " of metadata")
    return ", ".join(parts) or "no records"


def _print_table(summary: Summary, top: int) -> None:
    scale = summary.units_a_second
    rows = sorted(summary.rows.items(), key=lambda item: (-item[1].total, -item[1].count, item[0]))
    cells = [("category", "name", "events", "total", "mean", "longest")]
    for (category, name), row in rows[:top]:
        cells.append(
            (
                shorten(category, 20),
                shorten(name, 34),
                f"{row.count:,}",
                duration_text(row.total / scale),
                duration_text(row.total / scale / row.count),
                duration_text(row.longest / scale),
            )
        )
    left = [max(len(row[column]) for row in cells) for column in (0, 1)]
    for index, (category, name, *numbers) in enumerate(cells):
        line = f"  {category:<{left[0]}}  {name:<{left[1]}}{numbers[0]:>12}"
        line += "".join(f"{number:>10}" for number in numbers[1:])
        print(_dim(line) if index == 0 else line)
    hidden = rows[top:]
    if hidden:
        number = sum(row.count for _, row in hidden)
        print(f"  and {counted(len(hidden), 'further name')} with {counted(number, 'event')}")


def _wrapped(record: Record) -> list[str]:
    # JSON without blanks offers no place to break but its commas.
    pieces = printable(json.dumps(record, ensure_ascii=False, separators=(",", ":"))).split(",")
    lines = ["  "]
    for index, piece in enumerate(pieces):
        text = piece if index == len(pieces) - 1 else piece + ","
        if len(lines[-1]) + len(text) > WIDTH and lines[-1].strip():
            lines.append("    ")
        lines[-1] += text
    lines = [line if len(line) <= WIDTH else line[: WIDTH - 1] + "…" for line in lines]
    return lines if len(lines) <= 6 else [*lines[:5], "    …"]


def _bold(text: str) -> str:
    return f"\033[1m{text}\033[0m" if sys.stdout.isatty() else text


def _dim(text: str) -> str:
    return f"\033[2m{text}\033[0m" if sys.stdout.isatty() else text


def _finish_dead(paths: Iterable[str]) -> None:
    directories = {path if os.path.isdir(path) else os.path.dirname(path) or "." for path in paths}
    for directory in sorted(directories):
        if not os.path.isdir(directory):
            continue
        try:
            found = recover_directory(directory)
        except DFTracerError as error:
            # What is already in the files can be shown all the same.
            print(f"dftracer: {error}", file=sys.stderr)
            continue
        if found.broken:
            print(f"dftracer: {directory}: {found.broken} unreadable spools", file=sys.stderr)
        if found.recovered:
            dead = counted(found.recovered, "dead process", "dead processes")
            print(f"{directory}: {dead} finished, {counted(found.events, 'event')} recovered\n")


def run(args: argparse.Namespace) -> int:
    if not args.no_recover:
        _finish_dead(args.paths)
    traces = find_traces(args.paths)
    if not traces:
        raise DFTracerError(f"no trace files (.pfw, .pfw.gz) in {', '.join(args.paths)}")
    events = processes = size = 0
    for path in traces:
        summary = summarise(path, args.lines)
        print_summary(summary, args.top)
        events += summary.events
        processes += len(summary.processes)
        size += summary.size
    print(
        f"{counted(len(traces), 'file')}, {counted(processes, 'process', 'processes')}, "
        f"{counted(events, 'event')}, {bytes_text(size)}"
    )
    return 0

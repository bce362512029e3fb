"""`dftracer top [DIR]`: what traced processes are doing right now."""

from __future__ import annotations

import argparse
import dataclasses
import glob
import json
import os
import sys
import time
from collections.abc import Iterable

from dftracer._format import counted, duration, size
from dftracer._layout import Column, name_column, table
from dftracer._names import shorten
from dftracer.commands._cli.terminal import is_terminal, styled, width
from dftracer.commands.top._live import Process, Use, Watch, total
from dftracer.errors import DFTracerError

EXAMPLES = """\
  dftracer top                   the newest dftracer-* directory here that is being written to
  dftracer top traces            another directory
  dftracer top --once --json     one interval, for scripts

Keys: q or Ctrl-C quits, space pauses.

Events per second and bytes are exact. Files, calls and regions come from the newest records; if a
process records more than top reads, they are scaled to the exact count and marked with ~. Traced
processes are not stopped or slowed down: top only reads files.
"""

_SHOWN = 10  # files, calls


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "directories", metavar="DIR", nargs="*", help="directory in which traces are being written"
    )
    parser.add_argument(
        "--interval",
        type=_positive,
        default=1.0,
        metavar="S",
        help="seconds between updates (default 1)",
    )
    parser.add_argument("--once", action="store_true", help="show one interval and exit")
    parser.add_argument("--json", action="store_true", help="print one JSON object per interval")


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0.05 <= value <= 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0.05 to 3600")
    return value


def run(args: argparse.Namespace) -> int:
    directories = args.directories or _find()
    for directory in directories:
        if not os.path.isdir(directory):
            reason = "not a directory" if os.path.exists(directory) else "no such directory"
            raise DFTracerError(f"{directory}: {reason}")
    watch = Watch(directories)
    watch.look()
    if args.once or not (is_terminal(sys.stdout) and is_terminal(sys.stdin)) or args.json:
        return _plain(watch, directories, args)
    from dftracer.commands.top._screen import Screen

    with Screen() as screen:
        paused = False
        found: list[Process] = []
        while True:
            key = screen.wait(args.interval)
            if key in ("q", "Q", "\x03", "\x04"):
                return 0
            if key == " ":
                paused = not paused
            if key is None and not paused:
                found = watch.look()
            columns, rows = screen.size()
            screen.draw(_frame(found, directories, columns, rows, paused=paused))


def _find() -> list[str]:
    """The directory that the user most likely means: the newest run here."""
    given = os.environ.get("DFTRACER_LOG_FILE")
    places = [os.path.dirname(os.path.abspath(given))] if given else []
    runs = sorted(glob.glob("dftracer-*/"), key=lambda path: -os.stat(path).st_mtime)
    places += [path.rstrip("/") for path in runs] + ["."]
    for place in places:
        if os.path.isdir(place) and any(name.endswith(".spool") for name in os.listdir(place)):
            return [place]
    return [places[0]]


def _plain(watch: Watch, directories: list[str], args: argparse.Namespace) -> int:
    """One frame after another, for pipes and scripts; ends when no process runs any more."""
    while True:
        time.sleep(args.interval)
        found = watch.look()
        if args.json:
            print(json.dumps(_as_json(found, directories, args.interval)), flush=True)
        else:
            print("\n".join(_frame(found, directories, width(sys.stdout), 1000)), flush=True)
        if args.once or not found:
            return 0 if found or args.json else 1
        if not args.json:
            print()


def _as_json(found: list[Process], directories: list[str], interval: float) -> dict[str, object]:
    def plain(uses: dict[str, Use], key: str) -> list[dict[str, object]]:
        return [
            {
                key: name,
                "per_s": round(use.count, 3),
                "read_per_s": round(use.read, 1),
                "written_per_s": round(use.written, 1),
                "mean_s": use.seconds,
            }
            for name, use in _largest(uses, 100)
        ]

    names = {"calls": "call", "files": "file", "regions": "region"}
    processes = []
    for process in found:
        fields = {
            one.name: getattr(process, one.name)
            for one in dataclasses.fields(process)
            if one.name not in names
        }
        tables = {what: plain(getattr(process, what), key) for what, key in names.items()}
        processes.append({**fields, **tables})
    return {
        "time": time.time(),
        "interval_s": interval,
        "directories": directories,
        "processes": processes,
        **{what: plain(total(found, what), key) for what, key in names.items()},
    }


def _largest(uses: dict[str, Use], most: int) -> list[tuple[str, Use]]:
    return sorted(uses.items(), key=lambda one: (-one[1].read - one[1].written, -one[1].count))[
        :most
    ]


def _rate(number: float, *, estimated: bool = False) -> str:
    text = f"{number:,.0f}" if number >= 9.95 else f"{number:.1f}" if number else "0"
    return f"~{text}" if estimated and number else text


def _speed(number: float | None, *, estimated: bool = False) -> str:
    if number is None:
        return "?"
    if number < 0.5:
        return "-"
    return f"{'~' if estimated else ''}{size(number)}/s"


def _frame(
    found: list[Process], directories: list[str], columns: int, rows: int, *, paused: bool = False
) -> list[str]:
    where = shorten(", ".join(directories), max(20, columns - 75))
    if not found:
        return [f"no traced process is running in {where}" + (" (paused)" if paused else "")]
    calls = sum(process.events_per_s for process in found)
    read = sum(process.read_per_s or 0 for process in found)
    written = sum(process.written_per_s or 0 for process in found)
    lost = sum(process.lost for process in found)
    head = (
        f"{where}: {counted(len(found), 'process', 'processes')}, {_rate(calls)} events/s, "
        f"{_speed(read)} read, {_speed(written)} written"
    )
    if lost:
        head += f", {counted(lost, 'event')} lost"
    if paused:
        head += " (paused)"
    lines = [shorten(head, columns, keep_start=True), ""]
    estimated = any(process.sampled < 0.999 for process in found)
    regions = _most_often(total(found, "regions"))
    files, kinds = total(found, "files"), total(found, "calls")
    below = sum(min(_SHOWN, len(uses)) + 2 for uses in (files, kinds, regions) if uses)
    lines += _processes(found, columns, max(5, rows - len(lines) - below - 1))
    lines += _uses("file", files, columns, estimated)
    lines += _uses("call", kinds, columns, estimated)
    lines += _uses("region", regions, columns, estimated)
    return [styled(lines[0], "bold"), *lines[1:rows]]


def _most_often(uses: dict[str, Use]) -> dict[str, Use]:
    return dict(sorted(uses.items(), key=lambda one: -one[1].count * one[1].seconds))


def _processes(found: list[Process], columns: int, most: int) -> list[str]:
    shown = found if len(found) <= most else sorted(found, key=lambda one: -one.events_per_s)[:most]
    has_rank = any(process.rank is not None for process in found)
    has_place = any(process.epoch is not None or process.step is not None for process in found)
    head = [name_column("command"), Column("pid"), Column("events/s")]
    head += [Column("read", rank=2), Column("written", rank=2)]
    head += [Column("rank", rank=1)] * has_rank
    head += [Column("epoch", rank=1), Column("step", rank=1)] * has_place
    rows = []
    for one in shown:
        row = [
            shorten(one.command or "?", max(12, columns - 50), keep_start=True),
            str(one.pid),
            _rate(one.events_per_s),
            _speed(one.read_per_s),
            _speed(one.written_per_s),
        ]
        row += [_or_dash(one.rank)] * has_rank
        row += [_or_dash(one.epoch), _or_dash(one.step)] * has_place
        rows.append(row)
    lines = table(head, rows, columns)
    if len(shown) < len(found):
        lines.append(f"and {counted(len(found) - len(shown), 'more process', 'more processes')}")
    return lines


def _or_dash(number: int | None) -> str:
    return "-" if number is None else str(number)


def _uses(title: str, uses: dict[str, Use], columns: int, estimated: bool) -> list[str]:
    if not uses:
        return []
    chosen: Iterable[tuple[str, Use]]
    chosen = list(uses.items())[:_SHOWN] if title == "region" else _largest(uses, _SHOWN)
    moves = title != "region"
    head = [name_column(title), Column("per second")]
    head += [Column("read", rank=1), Column("written", rank=1)] * moves
    head.append(Column("mean time", rank=2))
    rows = []
    for name, use in chosen:
        row = [name, _rate(use.count, estimated=estimated)]
        if moves:
            row += [_speed(use.read, estimated=estimated), _speed(use.written, estimated=estimated)]
        rows.append([*row, duration(1e9 * use.seconds)])
    return ["", *table(head, rows, columns)]

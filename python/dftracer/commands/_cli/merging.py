"""What `merge` and `split` share: their inputs, the clocks of hosts, the summary they print."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dftracer._files import grant
from dftracer._format import counted, duration, size
from dftracer._names import printable
from dftracer.commands._cli import reading
from dftracer.commands._cli.options import add_no_recover, add_threads
from dftracer.commands._cli.reading import report_damage
from dftracer.commands._cli.recovery import finish_dead
from dftracer.errors import DFTracerError
from dftracer.trace.files import find_traces, without_copies
from dftracer.trace.stream import Damage


def add_inputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", metavar="TRACE", nargs="*", help="trace files or directories of trace files"
    )
    parser.add_argument(
        "--file-list", metavar="TRACE", nargs="+", default=[], help="the same, as an option"
    )
    add_threads(parser)
    add_no_recover(parser)


def add_alignment(parser: argparse.ArgumentParser) -> None:
    clocks = parser.add_mutually_exclusive_group()
    clocks.add_argument(
        "--align",
        action="store_const",
        const="always",
        dest="clocks",
        default="proven",
        help="correct every estimated clock offset between hosts "
        "(default: only those that the trace proves)",
    )
    clocks.add_argument(
        "--no-align",
        action="store_const",
        const="never",
        dest="clocks",
        help="correct no clock offset",
    )


def inputs(args: argparse.Namespace, out: Path | None = None) -> list[Path]:
    """The files to read, without the output of an earlier merge in the same directory."""
    given = [*args.paths, *args.file_list]
    if not given:
        raise DFTracerError("missing TRACE: specify trace files or directories")
    if not args.no_recover:
        finish_dead(given, sys.stderr)
    named = {Path(path) for path in given if not os.path.isdir(path)}
    found: dict[str, Path] = {}
    for trace in find_traces(given):
        if out is not None and _same(trace, out):
            if trace in named:
                raise DFTracerError(f"{trace}: is both an input and the output", exit_code=2)
            continue
        # The same file under two names would count twice.
        found.setdefault(os.path.realpath(trace), trace)
    if not found:
        raise DFTracerError(f"no trace files (.pfw, .pfw.gz) in {', '.join(given)}")
    traces = list(found.values())
    reading.need_traces(traces)
    return without_copies(traces)


def _same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def failed(error: OSError, out: Path) -> DFTracerError:
    """An error with a strerror is about the output; others name their file."""
    text = f"{printable(str(out))}: {error.strerror}" if error.strerror else str(error)
    return DFTracerError(text, exit_code=1)


def report(found: dict[str, Any], args: argparse.Namespace) -> int:
    """Prints what was done. If the records do not add up, nothing was written: an error."""
    damage = Damage.of(found)
    if found["mismatch"]:
        raise DFTracerError(f"{found['mismatch']}; nothing was written", exit_code=1)
    for file in found["written"]:
        grant(file["path"], args.mode)
    if args.json:
        keys = ("in", "out", "hosts", "processes", "renumbered", "clocks", "doubled", "written")
        facts = {key: found[key] for key in keys}
        print(
            json.dumps({**facts, "damaged": damage.damaged, "problems": damage.problems}, indent=1)
        )
    report_clocks(found["clocks"])
    if found["doubled"]:
        who = ", ".join(sorted({printable(name) for name in found["doubled"]})[:5])
        print(
            f"dftracer: {who}: in several of the files at the same time; "
            "their events may be counted twice",
            file=sys.stderr,
        )
    if not args.json and not args.quiet:
        print_totals(found, damage)
    return report_damage(damage)


def print_totals(found: dict[str, Any], damage: Damage) -> None:
    for file in found["written"]:
        print(
            f"{printable(str(file['path']))}: {counted(file['events'], 'event')}, "
            f"{size(file['bytes'])}"
        )
    facts = [
        f"{counted(found['in']['events'], 'event')} from {counted(damage.files, 'file')}",
        counted(found["processes"], "process", "processes"),
    ]
    if found["hosts"] > 1:
        facts.append(counted(found["hosts"], "host"))
    if found["renumbered"]:
        facts.append(f"{found['renumbered']:,} with a new pid (the real one is in args)")
    print(", ".join(facts))


def report_clocks(clocks: Sequence[dict[str, Any]]) -> None:
    for clock in clocks:
        ahead = clock["offset_ns"]
        width = duration(max(clock["uncertainty_ns"], 1))
        done = "corrected" if clock["applied"] else "not corrected"
        if not clock["applied"] and clock["proven"]:
            done += " (--align corrects it)"
        print(
            f"dftracer: the clock of {printable(clock['host'])} is "
            f"{duration(abs(ahead))} "
            f"{'ahead of' if ahead >= 0 else 'behind'} that of "
            f"{printable(clock['against'])}, within {width} "
            f"({counted(clock['rounds'], 'collective operation')}): {done}",
            file=sys.stderr,
        )

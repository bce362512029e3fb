"""What the commands that read traces share: arguments, finding files, reporting damage."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dftracer._format import counted
from dftracer._names import printable
from dftracer.commands._cli.options import add_no_recover, add_threads
from dftracer.commands._cli.recovery import finish_dead
from dftracer.errors import DFTracerError
from dftracer.trace.files import ENDINGS, find_traces, not_a_trace, siblings, without_copies
from dftracer.trace.stream import Damage

if TYPE_CHECKING:
    from dftracer.trace.runs import Run

DAMAGED = 3


def add_arguments(parser: argparse.ArgumentParser, *, json: bool = True) -> None:
    add_paths(parser)
    add_run(parser)
    add_threads(parser)
    add_no_recover(parser)
    if json:
        parser.add_argument("--json", action="store_true", help="print JSON")


def add_paths(parser: argparse.ArgumentParser) -> None:
    # settle_run checks that there is one: argparse takes a path after --run for its value.
    parser.add_argument(
        "paths", metavar="TRACE", nargs="*", help="trace files or directories of trace files"
    )


def add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--run",
        nargs="?",
        const="",
        metavar="RUN",
        help="read only one run: 'latest', its number, or the beginning of its id; "
        "without RUN, include the other files of the same run",
    )


def settle_run(args: argparse.Namespace) -> None:
    """`--run FILE` is a bare --run, followed by the first TRACE."""
    if args.run and args.run != "latest" and os.path.exists(args.run):
        args.paths, args.run = [args.run, *args.paths], ""
    if not args.paths:
        raise DFTracerError("missing TRACE: specify trace files or directories")


def of_run(traces: list[Path], wanted: str | None) -> list[Path]:
    """The traces that --run selects."""
    if wanted is None:
        return traces
    if wanted:
        from dftracer.trace.runs import choose

        return choose(traces, wanted)
    for trace in list(traces):
        traces += [other for other in siblings(trace) if other not in traces]
    return traces


def run_lines(runs: Sequence[Run], limit: int = 8) -> list[str]:
    """The note that several runs are read together; empty for one."""
    if len(runs) < 2:
        return []
    from dftracer.trace.runs import ID_DIGITS, when_text

    guess = " (guessed from their times, because some have no run id)" if any(
        run.guessed for run in runs
    ) else ""  # fmt: skip
    lines = [
        f"these traces are from {len(runs):,} runs{guess}; --run latest or --run N selects one"
    ]
    for number, run in enumerate(runs, 1):
        if len(runs) > limit and limit - 1 < number < len(runs):
            continue
        if len(runs) > limit and number == len(runs):
            lines.append(f"  and {len(runs) - limit:,} more")
        name = f", {run.id[:ID_DIGITS]}" if run.id else ""
        lines.append(f"  {number}: {when_text(run.start)}{name}")
    return lines


def report_runs(traces: Sequence[Path]) -> None:
    """On stderr, for commands whose output is data."""
    from dftracer.trace.runs import head_runs

    for line in run_lines(head_runs(traces)):
        print(f"dftracer: {line}", file=sys.stderr)


def open_traces(
    args: argparse.Namespace,
    *,
    data: bool = False,
    strangers: bool = False,
    joined: bool = True,
) -> list[Path]:
    """The files to read, after the traces of crashed processes beside them were completed.

    data: stdout carries data, so messages go to stderr. strangers: the command itself reports
    files that are not traces. joined: it adds up all files, so that copies would count twice.
    """
    settle_run(args)
    if not args.no_recover:
        finish_dead(args.paths, sys.stderr if data or getattr(args, "json", False) else sys.stdout)
    traces = find_traces(args.paths)
    if not traces:
        raise DFTracerError(f"no trace files (.pfw, .pfw.gz) in {', '.join(args.paths)}")
    if not strangers:
        need_traces(traces)
    traces = of_run(traces, args.run)
    return without_copies(traces) if joined else traces


def need_traces(traces: Sequence[Path]) -> None:
    """Raises an error if no file is a trace, or if one is not even named like a trace.

    One among others may be a trace of which nothing is left; the damage report names it.
    """
    reasons = {trace: not_a_trace(trace) for trace in traces}
    usable = any(reason is None for reason in reasons.values())
    for trace, reason in reasons.items():
        if reason is not None and not (usable and trace.name.endswith(ENDINGS)):
            raise DFTracerError(f"{printable(str(trace))}: {reason}", exit_code=1)


def report_damage(damage: Damage, limit: int = 5) -> int:
    """Reports on stderr what could not be read or is odd; returns the exit status."""
    for problem in damage.problems[:limit]:
        print(f"dftracer: {problem_text(problem)}", file=sys.stderr)
    number = sum(damage.troubles.values()) + sum(damage.odd.values())
    if number > limit:
        print(
            f"dftracer: … and {counted(number - min(limit, len(damage.problems)), 'more problem')}"
            "; `dftracer validate` lists them",
            file=sys.stderr,
        )
    return DAMAGED if damage.damaged else 0


def problem_text(problem: dict[str, object]) -> str:
    where = printable(str(problem["file"]))
    if problem["line"]:
        where += f":{problem['line']}"
    text = f"{where}: {problem['text']}"
    facts = []
    if problem["offset"] or problem["size"]:
        facts.append(f"at byte {problem['offset']}")
    if problem["size"]:
        facts.append(counted(int(str(problem["size"])), "byte"))
    if problem["detail"]:
        facts.append(printable(str(problem["detail"])))
    return f"{text} ({', '.join(facts)})" if facts else text

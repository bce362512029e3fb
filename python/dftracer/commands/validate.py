"""`dftracer validate TRACE...`: checks every byte and line of a trace."""

from __future__ import annotations

import argparse
import json

from dftracer._format import counted, size
from dftracer._names import printable
from dftracer.commands._cli import reading
from dftracer.commands._cli.options import natural
from dftracer.commands._cli.progress import Progress
from dftracer.commands._cli.reading import DAMAGED, problem_text
from dftracer.trace.stream import ODD
from dftracer.trace.summary import TraceSummary, summarise_all

EXAMPLES = """\
  dftracer validate traces                 lists damage; exit status 3 if there is any
  dftracer validate run.pfw.gz --json      the same, as JSON
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    reading.add_arguments(parser)
    parser.add_argument(
        "--limit",
        type=natural,
        default=20,
        metavar="N",
        help="problems to show per file (default 20)",
    )
    parser.add_argument("--quiet", action="store_true", help="print only damaged files")


def run(args: argparse.Namespace) -> int:
    traces = reading.open_traces(args, strangers=True, joined=False)
    with Progress.of_files(traces) as bar:
        found = summarise_all(traces, threads=args.threads, by_path=False, progress=bar.callback)
    if args.json:
        print(json.dumps(as_json(found), indent=1))
    else:
        _print(found, args.limit, args.quiet)
    return DAMAGED if found.damage.damaged else 0


def as_json(found: TraceSummary) -> dict[str, object]:
    return {
        "sound": not found.damage.damaged,
        "files": [
            {
                "path": str(file.path),
                "sound": not file.damaged,
                "status": file.status,
                "size": file.size,
                "events": file.events,
                "records": file.records,
                "troubles": file.troubles,
            }
            for file in found.files
        ],
        "problems": found.damage.problems,
        "events": found.events,
        "records": found.records,
        "processes": len(found.processes),
        "bytes": found.size,
        "bytes_read": found.damage.bytes_read,
    }


def _print(found: TraceSummary, limit: int, quiet: bool) -> None:
    for file in found.files:
        path = str(file.path)
        troubles = [problem for problem in found.damage.problems if problem["file"] == path]
        if not file.damaged and all(problem["kind"] in ODD for problem in troubles):
            if quiet:
                continue
            processes = counted(len(file.processes), "process", "processes")
            facts = f"{counted(file.events, 'event')}, {processes}, {size(file.size)}"
            print(f"{printable(path)}: sound, {facts}, {file.status}")
        else:
            print(f"{printable(path)}: damaged, {counted(file.events, 'event')} can be read")
        for problem in troubles[:limit]:
            print(f"  {problem_text(problem)}")
        more = sum(file.troubles.values()) - min(len(troubles), limit)
        if more > 0:
            print(f"  … and {counted(more, 'more problem')}")
    bad = sum(file.damaged for file in found.files)
    print(
        f"{counted(len(found.files), 'file')}, "
        f"{'all sound' if not found.damage.damaged else f'{bad} damaged'}; "
        f"{counted(found.events, 'event')}, "
        f"{counted(len(found.processes), 'process', 'processes')}, "
        f"{size(found.damage.bytes_read)} read of {size(found.size)}"
    )
    if bad and not quiet:
        print("`dftracer recover FILE` repairs a file; it keeps every record that can be read")

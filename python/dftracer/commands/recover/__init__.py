"""`dftracer recover DIR|FILE...`: completes traces of crashed processes, repairs damaged files."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

from dftracer import _libcore
from dftracer._format import counted
from dftracer._names import printable
from dftracer.commands._cli.options import add_threads
from dftracer.commands._cli.recovery import recover_directory
from dftracer.commands._cli.terminal import complain
from dftracer.errors import DFTracerError

EXAMPLES = """\
  dftracer recover traces            complete the traces of crashed processes
  dftracer recover trace.pfw.gz      repair a truncated or damaged file
  dftracer recover --files traces    both
  dftracer recover --force traces    include processes of other hosts that have surely ended
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="+",
        help="directories of traces, or damaged trace files",
    )
    parser.add_argument(
        "--files", action="store_true", help="also repair damaged files in a directory"
    )
    parser.add_argument(
        "--in-place",
        action="store_true",
        help="keep no copy of a damaged file (default: keep it as FILE.damaged)",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="include processes that cannot be checked from here "
        "(another host, another pid namespace)",
    )
    add_threads(parser)
    parser.add_argument("--quiet", action="store_true", help="print only problems")
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object per directory or file"
    )


def describe(found: _libcore.Recovery) -> str:
    if found.spools == 0:
        return "nothing to recover"
    parts = [
        f"{counted(found.recovered, 'spool')} completed",
        f"{counted(found.events, 'event')} recovered",
    ]
    if found.alive:
        parts.append(f"{found.alive} still running")
    if found.unknown:
        parts.append(f"{found.unknown} of processes that cannot be checked from here (see --force)")
    if found.broken:
        parts.append(f"{found.broken} not readable")
    return ", ".join(parts)


def _recover_directory(directory: str, args: argparse.Namespace) -> int:
    found = recover_directory(directory, force=args.force)
    text = f"{printable(directory)}: {describe(found)}"
    if args.json:
        print(json.dumps({"directory": directory, **found._asdict()}))
    elif found.broken:
        print(text, file=sys.stderr if args.quiet else sys.stdout)
    elif not args.quiet:
        print(text)
    code = 1 if found.broken else 0
    if args.files:
        from dftracer.trace.files import find_traces, is_being_written

        for trace in find_traces([directory]):
            if is_being_written(trace):  # reported above: still running, or cannot be checked
                continue
            code = max(code, _guarded(_recover_file, str(trace), args))
    return code


def _recover_file(path: str, args: argparse.Namespace) -> int:
    from dftracer.commands.recover import _repair

    found = _repair.repair(Path(path), in_place=args.in_place, threads=args.threads)
    if args.json:
        print(json.dumps({"file": path, **found._asdict()}))
    elif not args.quiet:
        print(f"{printable(path)}: {_repair.describe(found)}")
    return 0


def _guarded(
    work: Callable[[str, argparse.Namespace], int], path: str, args: argparse.Namespace
) -> int:
    # A missing path must not keep the others from being recovered.
    try:
        return work(path, args)
    except DFTracerError as error:
        complain(error)
        return error.exit_code


def run(args: argparse.Namespace) -> int:
    return max(
        _guarded(_recover_directory if _is_directory(path) else _recover_file, path, args)
        for path in args.paths
    )


def _is_directory(path: str) -> bool:
    """A path that does not exist is judged by its name."""
    if os.path.exists(path):
        return os.path.isdir(path)
    from dftracer.trace.files import ENDINGS  # spools are completed without the reader

    return not path.endswith(ENDINGS)

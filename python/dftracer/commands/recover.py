"""`dftracer recover DIR...`: finish the traces of processes that were killed."""

from __future__ import annotations

import argparse
import json
import os
import sys

from dftracer import _library
from dftracer.errors import DFTracerError

EXAMPLES = """\
  dftracer recover traces            finish what killed processes have left
  dftracer recover --force traces    also for processes of another host, which have surely ended
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directories", metavar="DIR", nargs="+", help="where traces were written")
    parser.add_argument(
        "--force",
        action="store_true",
        help="also finish for processes that cannot be checked from here "
        "(another host, another pid namespace)",
    )
    parser.add_argument("--quiet", action="store_true", help="print only problems")
    parser.add_argument("--json", action="store_true", help="one JSON object a directory")


def describe(found: _library.Recovery) -> str:
    if found.spools == 0:
        return "nothing to recover"
    parts = [
        f"{_counted(found.recovered, 'spool')} finished",
        f"{_counted(found.events, 'event')} recovered",
    ]
    if found.alive:
        parts.append(f"{found.alive} still running")
    if found.unknown:
        parts.append(f"{found.unknown} of processes that cannot be checked from here (see --force)")
    if found.broken:
        parts.append(f"{found.broken} not readable")
    return ", ".join(parts)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def recover_directory(directory: str, *, force: bool = False) -> _library.Recovery:
    if not os.path.isdir(directory):
        reason = "not a directory" if os.path.exists(directory) else "no such directory"
        raise DFTracerError(f"{directory}: {reason}")
    try:
        return _library.recover(directory, force=force)
    except OSError as error:
        raise DFTracerError(f"{directory}: {error.strerror}") from None


def run(args: argparse.Namespace) -> int:
    code = 0
    for directory in args.directories:
        # One directory that is not there must not keep the others from being finished.
        try:
            found = recover_directory(directory, force=args.force)
        except DFTracerError as error:
            print(f"dftracer: {error}", file=sys.stderr)
            code = max(code, error.exit_code)
            continue
        if found.broken:
            code = max(code, 1)
        if args.json:
            print(json.dumps({"directory": directory, **found._asdict()}))
        elif found.broken:
            print(f"{directory}: {describe(found)}", file=sys.stderr if args.quiet else sys.stdout)
        elif not args.quiet:
            print(f"{directory}: {describe(found)}")
    return code

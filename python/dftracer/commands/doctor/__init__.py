"""`dftracer doctor [TRACE ...]`: checks the installation, or why a trace is incomplete."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator

from dftracer._names import printable
from dftracer.commands._cli.options import add_no_recover
from dftracer.commands._cli.terminal import is_terminal, styled
from dftracer.commands.doctor._check import Check

EXAMPLES = """\
  dftracer doctor                 check the installation, this directory and the settings
  dftracer doctor traces          find out why a trace is empty or incomplete
  dftracer doctor --json | jq .   for scripts

exit status: 1 if a check fails, otherwise 0.
"""

_STYLES = {"ok": "green", "warn": "yellow", "fail": "red"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        metavar="TRACE",
        nargs="*",
        help="trace files or directories of trace files (default: check the installation)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_no_recover(parser)


def run(args: argparse.Namespace) -> int:
    checks: Iterable[Check]
    if args.paths:
        from dftracer.commands.doctor._traces import check_traces

        checks = check_traces(args.paths, recover=not args.no_recover)
    else:
        from dftracer.commands.doctor._installation import check_installation

        checks = check_installation()
    seen = list(checks if args.json else _printed(checks))
    failed = sum(check.status == "fail" for check in seen)
    if args.json:
        found = [check._asdict() for check in seen]
        json.dump({"ok": failed == 0, "checks": found}, sys.stdout, indent=2)
        print()
    elif failed:
        print(f"\n{failed} of {len(seen)} checks failed")
    return 1 if failed else 0


def _printed(checks: Iterable[Check]) -> Iterator[Check]:
    """Prints each check as it completes."""
    for check in checks:
        status = styled(f"{check.status:<4}", _STYLES[check.status])
        print(f"{status}  {check.name:<12}  {printable(check.text)}", flush=is_terminal(sys.stdout))
        yield check

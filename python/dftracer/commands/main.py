"""Finds the verb, runs it, and turns a user's mistake into one line."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Protocol, cast

from dftracer.errors import DFTracerError

# The help lines stand here, so that `dftracer --help` imports no verb.
VERBS = {
    "info": "show what trace files hold",
    "stats": "count calls, times and bytes by name, process and file",
    "validate": "check that a trace is whole",
    "query": "ask a trace in SQL",
    "export": "write a trace in the format of another tool",
    "recover": "finish the traces of processes that died",
}


class Verb(Protocol):
    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, args: argparse.Namespace) -> int: ...


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from dftracer import __version__

        print(f"dftracer {__version__}")
        parser.exit()


def load_verb(name: str) -> Verb:
    return cast(Verb, importlib.import_module(f"dftracer.commands.{name}"))


def make_parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dftracer", description="Record and read traces of data-heavy programs."
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    wanted = next((word for word in argv if not word.startswith("-")), None)
    for name, summary in VERBS.items():
        verb_parser = verbs.add_parser(name, help=summary, description=f"{summary.capitalize()}.")
        if name == wanted:
            load_verb(name).add_arguments(verb_parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    args = make_parser(words).parse_args(words)
    try:
        code = load_verb(args.verb).run(args)
        sys.stdout.flush()
        return code
    except DFTracerError as error:
        print(f"dftracer: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        # The reader (head, less) has seen enough; Python would complain when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130

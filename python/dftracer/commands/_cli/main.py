"""The dispatcher: finds the verb, runs it, and prints a user's mistake as one line."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from dftracer.commands._cli.signals import Signals
from dftracer.errors import DFTracerError

if TYPE_CHECKING:
    import argparse

# The summaries are here so that `dftracer --help` imports no verb. A verb is a module of
# dftracer.commands with `add_arguments(parser)` and `run(args)`. It may have `EXAMPLES`, lines that
# end its --help, and `split(words)`, which separates its own arguments from a program's.
VERBS = {
    "Record": {
        "run": "run a program and record its I/O calls and those of its child processes",
        "env": "print the variables that run sets, for job scripts that cannot use it",
        "top": "show what traced processes are doing right now",
    },
    "Analyze": {
        "info": "show what trace files contain",
        "report": "show where the time went and what to try",
        "whatif": "predict steps with more workers, faster reads and other settings",
        "stats": "count calls, time and bytes by name, process and file",
        "query": "query a trace with SQL",
        "view": "open traces in the Perfetto UI in the browser, offline",
    },
    "Maintain": {
        "merge": "merge ranks, hosts, workers and torch.profiler into one timeline",
        "split": "split a trace into pieces that open on their own",
        "compact": "recompress a trace without changing its records",
        "export": "convert a trace to the format of another tool",
        "validate": "check a trace for damage",
        "recover": "complete traces of crashed processes and repair damaged files",
        "doctor": "check the installation, or find out why a trace is empty",
        "completion": "print a completion script for bash, zsh or fish",
    },
}
SUMMARIES = {verb: text for group in VERBS.values() for verb, text in group.items()}

EXAMPLES = """\
examples:
  dftracer run -- python train.py     record a program
  dftracer report dftracer-train-*    where the time went
  dftracer view dftracer-train-*      the timeline, in the browser

`dftracer VERB --help` shows the options of a verb, with examples.
"""

EXIT_CODES = "exit status: 0 success, 1 failure, 2 usage error, 3 a trace is damaged"


class Verb(Protocol):
    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, args: argparse.Namespace) -> int: ...


def help_text() -> str:
    lines = [
        "usage: dftracer VERB ...",
        "       dftracer [--help | --version]",
        "",
        "Record and analyze the I/O and application regions of data-heavy programs.",
    ]
    for group, verbs in VERBS.items():
        lines += ["", f"{group}:"]
        lines += [f"  {verb:<12}{text}" for verb, text in verbs.items()]
    return "\n".join([*lines, "", EXAMPLES, EXIT_CODES, ""])


def load_verb(name: str) -> Verb:
    return cast(Verb, importlib.import_module(f"dftracer.commands.{name}"))


def make_parser(name: str, verb: Any) -> argparse.ArgumentParser:
    import argparse

    from dftracer.commands._cli.options import Parser

    summary = SUMMARIES[name]
    examples = getattr(verb, "EXAMPLES", "")

    parser = Parser(
        prog=f"dftracer {name}",
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"examples:\n{examples}" if examples else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    verb.add_arguments(parser)
    return parser


def find_verb(words: Sequence[str]) -> str:
    """The verb; exits after --help and --version."""
    first = words[0] if words else ""
    if first in ("-h", "--help") or (first == "help" and len(words) == 1):
        sys.stdout.write(help_text())
        raise SystemExit(0)
    if first in ("-V", "--version"):
        from dftracer import __version__

        print(f"dftracer {__version__}")
        raise SystemExit(0)
    if not words:
        sys.stderr.write(help_text())
        raise SystemExit(2)
    if first in SUMMARIES:
        return first
    if first.startswith("-"):
        raise DFTracerError(f"unknown option {first!r} before the verb; see dftracer --help")
    import difflib

    close = difflib.get_close_matches(first, SUMMARIES, 1)
    hint = f"did you mean {close[0]!r}?" if close else "see dftracer --help"
    raise DFTracerError(f"unknown verb {first!r}; {hint}")


def dispatch(words: list[str]) -> int:
    if words[:1] == ["help"] and len(words) > 1:
        if len(words) > 2:
            raise DFTracerError(f"unexpected argument {words[2]!r}; see dftracer help {words[1]}")
        words = [words[1], "--help"]
    name = find_verb(words)
    verb = load_verb(name)
    own, rest = words[1:], []
    split = getattr(verb, "split", None)
    if split is not None:
        own, rest = split(own)
    args = make_parser(name, verb).parse_args(own)
    args.rest = rest
    return verb.run(args)


def main(argv: Sequence[str] | None = None) -> int:
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        # A file name may contain what the terminal's encoding does not have.
        reconfigure = getattr(getattr(sys, name), "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    words = list(sys.argv[1:] if argv is None else argv)
    signals = Signals()
    signals.install()
    code = 130
    try:
        code = _guarded(words)
    except BaseException as error:
        # After a signal, other failures on the way out are not worth reporting.
        if not signals.number and not isinstance(error, KeyboardInterrupt):
            raise
    finally:
        signals.finish()
        if argv is not None:
            signals.restore()
    if not signals.number:
        return code
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        _mute(sys.stdout)
    return signals.leave(code)


def _guarded(words: list[str]) -> int:
    """The exit status. A user's mistake is printed as one line."""
    try:
        try:
            code = dispatch(words)
        except SystemExit as end:  # after help
            code = end.code if isinstance(end.code, int) else 0
        sys.stdout.flush()
        return code
    except DFTracerError as error:
        _complain(error)
        return error.exit_code
    except BrokenPipeError:
        # The reader (head, less) has closed the pipe; Python would complain when it closes stdout.
        _mute(sys.stdout)
        return 0
    except OSError as error:
        where = f"{os.fsdecode(error.filename)}: " if error.filename is not None else ""
        _complain(f"{where}{error.strerror or error}")
        _mute(sys.stdout)
        return 1


def _complain(error: object) -> None:
    from dftracer.commands._cli.terminal import complain

    complain(error)


def _mute(stream: Any) -> None:
    with contextlib.suppress(AttributeError, OSError, ValueError):  # closed, or replaced by a test
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())

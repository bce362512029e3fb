"""Finds the verb, runs it, and turns a user's mistake into one line."""

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

# The summaries stand here, so that `dftracer --help` imports no verb. A verb is a module of this
# package with `add_arguments(parser)` and `run(args)`, and, if it likes, `EXAMPLES`, lines of the
# form "what it does" or "  command", and `split(words)`, which parts the words of its own from
# those of a program.
VERBS = {
    "Record": {
        "run": "run a program, and record its calls and those of all its processes",
        "top": "show what the running, traced processes are doing now",
    },
    "Analyze": {
        "info": "show what trace files hold",
        "report": "tell where the time went, and what to try",
        "stats": "count calls, times and bytes by name, process and file",
        "query": "ask a trace in SQL",
        "view": "open traces in the Perfetto UI, offline, in the browser",
    },
    "Maintain": {
        "merge": "put ranks, hosts, workers and torch.profiler on one timeline",
        "split": "cut a trace into pieces that each open alone",
        "compact": "make a trace smaller without changing it",
        "export": "write a trace in the format of another tool",
        "validate": "check that a trace is whole",
        "recover": "complete traces of crashed processes, repair damaged files",
        "doctor": "check that everything is in place, or why a trace is empty",
        "completion": "print a script that completes this command in bash, zsh or fish",
    },
}
SUMMARIES = {verb: text for group in VERBS.values() for verb, text in group.items()}

EXAMPLES = """\
examples:
  dftracer run -- python train.py     record a program
  dftracer info dftracer-train-*      what is in the trace
  dftracer view dftracer-train-*      the timeline, in the browser

`dftracer VERB --help` tells all about a verb, with examples.
"""

EXIT_CODES = "exit status: 0 fine, 1 something is wrong, 2 wrong usage, 3 a trace is damaged"


class Verb(Protocol):
    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, args: argparse.Namespace) -> int: ...


def help_text() -> str:
    lines = [
        "usage: dftracer VERB ...",
        "       dftracer [--help | --version]",
        "",
        "Record and read traces of data-heavy programs.",
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
    """The verb that is meant, or the end of the command."""
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
        # A file's name may hold what the terminal's encoding does not.
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
        # After a signal, whatever else goes wrong on the way out is no news.
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
    """The exit status. A user's mistake becomes one line."""
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
        # The reader (head, less) has seen enough; Python would complain when it closes stdout.
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
    with contextlib.suppress(AttributeError, OSError, ValueError):  # closed, or a test's
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())

"""`dftracer run -- PROGRAM ARGS...`: runs a program and records its calls."""

from __future__ import annotations

import argparse
import contextlib
import os
import time
from collections.abc import Sequence

from dftracer import _cleanup, _libcore
from dftracer.commands._cli.recording import (
    OPTIONS,
    OWN_FAILURE,
    add_options,
    require_library,
    settings,
)
from dftracer.commands.run._child import CannotStart, Child
from dftracer.commands.run._summary import finish, show
from dftracer.errors import DFTracerError

EXAMPLES = """\
  dftracer run -- python train.py --epochs 3
  dftracer run -o traces --data-dir /data -- make -j8     only files below /data
  mpirun -n 4 dftracer run -o traces -- ./simulation      all ranks into one directory
  dftracer run --no-io -- python annotated.py             only the program's own regions

Each option overrides an environment variable; see docs/command.md.

exit status: that of the program. If it was killed by a signal, so is this command. 125 if tracing
could not start, 126 if the program cannot be executed, 127 if it was not found.
"""

_WITH_VALUE = {flag for flags, how in OPTIONS if "metavar" in how for flag in flags}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "dftracer run [OPTION ...] [--] PROGRAM [ARGUMENT ...]"
    add_options(parser)


def split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Our options end at `--` or at the first word that is not an option: the program."""
    at = 0
    while at < len(words):
        word = words[at]
        if word == "--":
            return list(words[:at]), list(words[at + 1 :])
        if not word.startswith("-") or word == "-":
            break
        at += 2 if word in _WITH_VALUE else 1
    return list(words[:at]), list(words[at:])


def run(args: argparse.Namespace) -> int:
    command: list[str] = args.rest
    if not command:
        raise DFTracerError("missing PROGRAM: dftracer run [OPTION ...] -- PROGRAM [ARGUMENT ...]")
    require_library()
    os.environ.update(settings(args, command))
    own: _libcore.Run | None = None
    try:
        with _cleanup.whole():
            own = _libcore.Run(command[0])
        environment = dict(os.environ)
        environment["DFTRACER_RUN_ID"] = own.id
        if own.untraced == own.OTHER_LIBC:
            del environment["LD_PRELOAD"]
        if not os.path.exists("/proc/self/stat"):
            # Without /proc a process cannot find the run it belongs to: each would print a summary.
            environment["DFTRACER_SUMMARY"] = "0"
        begin = time.monotonic()
        child = Child(command, environment)  # from here on, signals go to the program
    except BaseException as error:
        if own is not None:
            own.end()
            _remove_if_empty(own.directory)
        if isinstance(error, CannotStart):
            raise DFTracerError(str(error), error.exit_code) from None
        if own is None and isinstance(error, OSError):
            where = error.filename or os.environ.get("DFTRACER_LOG_FILE", ".")
            text = f"cannot write traces to {where}: {error.strerror}"
            raise DFTracerError(text, OWN_FAILURE) from None
        raise
    _cleanup.keep(os.path.dirname(os.environ.get("DFTRACER_LOG_FILE", "")))
    status = child.wait()
    passed = time.monotonic() - begin
    if not own.is_guest:
        show(finish(own, passed, command))
    return status.leave()


def _remove_if_empty(directory: str) -> None:
    with contextlib.suppress(OSError):
        os.rmdir(directory)

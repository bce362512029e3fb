"""`dftracer run -- PROGRAM ARGS...`: any program, with its calls recorded."""

from __future__ import annotations

import argparse
import contextlib
import os
import time
from collections.abc import Sequence
from typing import Any

from dftracer import _cleanup, _libcore
from dftracer.commands.run._child import CannotStart, Child
from dftracer.commands.run._settings import OWN_FAILURE, settings
from dftracer.commands.run._summary import finish, show
from dftracer.errors import DFTracerError

EXAMPLES = """\
  dftracer run -- python train.py --epochs 3
  dftracer run -o traces --data-dir /data -- make -j8     only files below /data
  mpirun -n 4 dftracer run -o traces -- ./simulation      all ranks into one directory
  dftracer run --no-io -- python annotated.py             only the program's own regions

Each option has a variable, which holds where the option is not given; see docs/command.md.

exit status: that of the program. If it was killed by a signal, so is this command. 125 if nothing
could be recorded, 126 if the program cannot be executed, 127 if there is none of that name.
"""


# Flags, and what argparse is to know of them.
OPTIONS: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
    (
        ("-o", "--output"),
        {
            "metavar": "DIR",
            "help": "directory of the traces (DFTRACER_LOG_FILE; default: a new one, "
            "dftracer-NAME-TIME); PATH.pfw.gz names the file of the first process",
        },
    ),
    (
        ("--name",),
        {"metavar": "N", "help": "first part of the files' names (default: the program's)"},
    ),
    (
        ("--data-dir",),
        {
            "metavar": "P",
            "action": "append",
            "default": [],
            "help": "record only files below P; may be repeated; `all` records the system's files, "
            "too (DFTRACER_DATA_DIR)",
        },
    ),
    (
        ("--no-io",),
        {
            "action": "store_true",
            "help": "record no I/O calls, only the program's own regions (DFTRACER_DISABLE_IO=1)",
        },
    ),
    (
        ("--no-metadata",),
        {
            "action": "store_true",
            "help": "leave out the arguments of calls (DFTRACER_INC_METADATA=0)",
        },
    ),
    (
        ("--torch",),
        {"action": "store_true", "help": "record PyTorch's own regions (DFTRACER_TORCH=1)"},
    ),
    (
        ("-q", "--quiet"),
        {"action": "store_true", "help": "no summary at the end (DFTRACER_SUMMARY=0)"},
    ),
)
_WITH_VALUE = {flag for flags, how in OPTIONS if "metavar" in how for flag in flags}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "dftracer run [OPTION ...] [--] PROGRAM [ARGUMENT ...]"
    for flags, how in OPTIONS:
        parser.add_argument(*flags, **how)


def split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Our options end with `--` or with the first word that is none: that is the program."""
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
        raise DFTracerError("no program given: dftracer run [OPTION ...] -- PROGRAM [ARGUMENT ...]")
    if not _libcore.PRELOAD.exists():
        raise DFTracerError(
            f"{_libcore.PRELOAD} is missing: this package was built for a platform on which "
            "programs can only start their trace themselves",
            OWN_FAILURE,
        )
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
            # The processes cannot find out that they belong to a run, so each would speak for
            # itself.
            environment["DFTRACER_SUMMARY"] = "0"
        begin = time.monotonic()
        child = Child(command, environment)  # from here on signals are the program's
    except BaseException as error:
        if own is not None:
            own.end()
            _remove_if_empty(own.directory)
        if isinstance(error, CannotStart):
            raise DFTracerError(str(error), error.exit_code) from None
        if own is None and isinstance(error, OSError):
            where = error.filename or os.environ.get("DFTRACER_LOG_FILE", ".")
            text = f"cannot record into {where}: {error.strerror}"
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

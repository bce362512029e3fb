"""Completes the traces of dead processes before a command reads or replaces them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from dftracer._format import counted
from dftracer._names import printable
from dftracer.commands._cli.terminal import complain
from dftracer.errors import DFTracerError

if TYPE_CHECKING:
    from dftracer import _libcore


def recover_directory(directory: str, *, force: bool = False) -> _libcore.Recovery:
    if not os.path.isdir(directory):
        reason = "not a directory" if os.path.exists(directory) else "no such directory"
        raise DFTracerError(f"{directory}: {reason}")
    # ctypes takes longer to load than a small trace to read.
    from dftracer import _libcore

    try:
        return _libcore.recover(directory, force=force)
    except OSError as error:
        raise DFTracerError(f"{directory}: {error.strerror}") from None


def finish_dead(paths: Iterable[str], to: TextIO) -> None:
    directories = {path if os.path.isdir(path) else os.path.dirname(path) or "." for path in paths}
    for directory in sorted(directories):
        # Most directories have no spool, and a look costs less than loading the library.
        if not os.path.isdir(directory) or not _has_spool(directory):
            continue
        try:
            found = recover_directory(directory)
        except DFTracerError as error:
            # What is already in the files can still be read.
            complain(error)
            continue
        if found.broken:
            complain(f"{directory}: {found.broken} unreadable spools")
        if found.recovered:
            dead = counted(found.recovered, "crashed process", "crashed processes")
            events = counted(found.events, "event")
            print(f"{printable(directory)}: recovered {events} of {dead}\n", file=to)


def _has_spool(directory: str) -> bool:
    try:
        with os.scandir(directory) as entries:
            return any(
                entry.name.startswith(".") and entry.name.endswith(".spool") for entry in entries
            )
    except OSError:
        return False


def check_finished(path: Path) -> None:
    """Replacing a file that a process still appends to would lose what it writes later."""
    from dftracer.trace.files import is_being_written  # spools are completed without the reader

    if not is_being_written(path):
        return
    recover_directory(str(path.parent))
    if is_being_written(path):
        raise DFTracerError(f"{path}: still being written; left unchanged", exit_code=1)

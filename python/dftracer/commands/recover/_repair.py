"""Repairs a damaged trace file: keeps every record that can be read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from dftracer import _cleanup
from dftracer._format import counted
from dftracer.commands._cli.progress import Progress
from dftracer.commands._cli.recovery import check_finished
from dftracer.errors import DFTracerError
from dftracer.trace.files import ENDINGS

# Kinds of damage that leave nothing to repair.
HOPELESS = ("cannot_read", "no_records")


class Repair(NamedTuple):
    """What was done to a file; `kept` is the path of the original, if it was kept."""

    mended: bool
    records: int
    troubles: dict[str, int]
    kept: str | None


def repair(path: Path, *, in_place: bool = False, threads: int = 0) -> Repair:
    from dftracer import _reader
    from dftracer.commands._cli import reading
    from dftracer.trace.summary import summarise_all

    name = str(path)
    if not path.exists():
        raise DFTracerError(f"{name}: no such file")
    if not name.endswith(ENDINGS):
        raise DFTracerError(f"{name}: not a trace ({', '.join(ENDINGS)})")
    check_finished(path)
    # A symbolic link stays one: its target is repaired, and the original is kept there.
    path = Path(os.path.realpath(path))
    part = path.with_name(f".{os.getpid()}.part.{path.name}")
    kept = path.with_name(path.name + ".damaged")
    try:
        found = summarise_all([path], threads=threads, by_path=False)
        if not found.damage.damaged:
            return Repair(False, found.records, {}, None)
        if not in_place and kept.exists():
            raise DFTracerError(f"{kept}: already exists", exit_code=1)
        with _cleanup.unfinished(part):
            with Progress.of_files([path], "repairing", passes=2) as bar:
                copied = _reader.copy(
                    path, part, repair=True, threads=threads, progress=bar.callback
                )
            if copied["mismatch"]:
                raise DFTracerError(f"{name}: {copied['mismatch']}; left unchanged", exit_code=1)
            troubles: dict[str, int] = copied["total"]["troubles"]
            if any(trouble in troubles for trouble in HOPELESS):
                raise DFTracerError(
                    f"{name}: contains no readable record; left unchanged",
                    exit_code=reading.DAMAGED,
                )
            os.chmod(part, path.stat().st_mode & 0o777)
            with _cleanup.whole():  # never a copy without the new file
                if not in_place:
                    _keep(path, kept)
                os.replace(part, path)
    except OSError as error:
        raise DFTracerError(f"{name}: {error.strerror or error}", exit_code=1) from None
    return Repair(True, copied["records"], troubles, None if in_place else str(kept))


def _keep(path: Path, kept: Path) -> None:
    try:
        os.link(path, kept)  # the name always has a file
    except OSError:  # a file system without links
        os.rename(path, kept)


def describe(found: Repair) -> str:
    if not found.mended:
        return "not damaged"
    what = ", ".join(
        f"{number:,} x {kind.replace('_', ' ')}" for kind, number in found.troubles.items()
    )
    beside = f"; the original is {os.path.basename(found.kept)}" if found.kept else ""
    return f"repaired, {counted(found.records, 'record')} kept ({what}){beside}"

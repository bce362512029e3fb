"""Finds trace files: by name, in a directory, or of a run."""

from __future__ import annotations

import os
import re
import sys
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Union

from dftracer.errors import DFTracerError

PathLike = Union[str, "os.PathLike[str]"]

SUFFIXES = (".pfw", ".pfw.gz")
# Names of torch.profiler's files. Other JSON files are read only if the user names them.
TORCH_SUFFIXES = (".trace.json", ".trace.json.gz")

# Endings of the files that a user may name.
ENDINGS = (*SUFFIXES, ".json", ".json.gz")

# The key of the process, in its start record.
_PROCESS = re.compile(rb'"name":"start"[^\n]*"proc":"([^"]+)"')


def is_trace(path: PathLike) -> bool:
    return os.fspath(path).endswith(SUFFIXES + TORCH_SUFFIXES)


def is_being_written(path: PathLike) -> bool:
    """A process that writes a trace, or that crashed, has this file next to it."""
    place = Path(path)
    return place.with_name(f".{place.name.removesuffix('.gz')}.spool").exists()


def resolve(path: PathLike) -> Path:
    """The file of this name; `x.pfw` also finds `x.pfw.gz`."""
    given = Path(path)
    if given.exists():
        return given
    compressed = given.with_name(given.name + ".gz")
    if given.name.endswith((".pfw", ".json")) and compressed.exists():
        return compressed
    if given.is_symlink():
        raise DFTracerError(f"{given}: a broken symbolic link")
    raise DFTracerError(f"{given}: no such file or directory")


def find_traces(paths: Iterable[PathLike]) -> list[Path]:
    """The trace files in the given files and directories, without subdirectories."""
    found: dict[Path, None] = {}
    for path in paths:
        place = resolve(path)
        if place.is_dir():
            found.update((trace, None) for trace in _in_directory(place))
        else:
            found[place] = None
    return list(found)


def siblings(path: PathLike) -> list[Path]:
    """The other files of the run that a trace belongs to, in its directory."""
    from dftracer import _reader

    own = Path(path)
    run = _reader.probe([own])[0]["run"]
    if not run:
        return []
    others = [trace for trace in _in_directory(own.parent) if trace.name != own.name]
    heads = _reader.probe(others)
    return [trace for trace, head in zip(others, heads) if head["run"] == run]


def without_copies(traces: Sequence[Path]) -> list[Path]:
    """The most complete trace of each process, without copies, such as one from before the trace
    was recovered or compacted.

    A process of this project has a unique key in its start record. Skipped copies are reported.
    """
    by_key: dict[bytes, list[Path]] = {}
    for trace in traces:
        key = _process_key(trace) if len(traces) > 1 else None
        if key is not None:
            by_key.setdefault(key, []).append(trace)
    left_out = set()
    for same in by_key.values():
        if len(same) == 1:
            continue
        from dftracer import _reader

        records = [_reader.summarise([t], by_path=False)["total"]["records"] for t in same]
        kept = same[records.index(max(records))]
        for trace in same:
            if trace != kept:
                left_out.add(trace)
                print(
                    f"dftracer: {trace}: a copy of the trace of the same process in {kept}; "
                    "left out",
                    file=sys.stderr,
                )
    return [trace for trace in traces if trace not in left_out]


def _process_key(path: Path) -> bytes | None:
    """The key of a trace of one process. Merged files and pieces have other records."""
    text = _start_of(path, 16384)
    found = None if b'"name":"MP"' in text else _PROCESS.search(text)
    return None if found is None else found[1]


def _start_of(path: PathLike, size: int) -> bytes:
    """The first bytes of a file's text; empty if they cannot be read."""
    try:
        with open(path, "rb") as file:
            start = file.read(size)
        if start.startswith(b"\x1f\x8b"):
            start = zlib.decompressobj(wbits=31).decompress(start, size)
    except (OSError, zlib.error):
        return b""
    return start


def not_a_trace(path: PathLike) -> str | None:
    """Why a file is not a trace; None if it is one, even a damaged one."""
    if os.path.exists(path) and not os.path.isfile(path):  # opening a pipe would block
        return "not a regular file"
    # The beginning identifies nearly every file; there may be thousands.
    start = _start_of(path, 2048)
    if start.lstrip()[:1] in (b"[", b"{") and b'"ph"' in start:
        return None
    from dftracer import _reader

    (head,) = _reader.probe([path])
    if head["error"] is not None:
        return os.strerror(head["error"])
    if head["records"] or head["blank"] or head["size"] == 0:
        return None
    # If only the first block is damaged, records follow.
    found = _reader.summarise([path], by_path=False)
    return None if found["total"]["records"] else "not a trace: it contains no record"


def _in_directory(place: Path) -> list[Path]:
    names = []
    try:
        with os.scandir(place) as entries:
            for entry in entries:
                if not is_trace(entry.name) or entry.name.startswith("."):
                    continue
                try:
                    if entry.is_file():
                        names.append(entry.name)
                except OSError as error:  # a circular link must not hide the others
                    print(f"dftracer: {entry.path}: {error.strerror}; skipped", file=sys.stderr)
    except OSError as error:
        raise DFTracerError(f"{place}: {error.strerror}") from None
    return [place / name for name in sorted(names)]

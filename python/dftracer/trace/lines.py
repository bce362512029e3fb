"""Streams the records of a trace file, one dict at a time, even if the file is damaged."""

from __future__ import annotations

import io
import json
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from dftracer.errors import DFTracerError
from dftracer.trace.files import PathLike, find_traces, is_trace, resolve

__all__ = [
    "Health",
    "Record",
    "find_traces",
    "is_trace",
    "read_lines",
    "read_records",
    "resolve",
]

Record = dict[str, Any]

_CHUNK = 1 << 16
_GZIP_MAGIC = b"\x1f\x8b"


@dataclass
class Health:
    """Filled while a file is read: what could not be used."""

    members: int = 0
    lines: int = 0
    bad_lines: int = 0
    # The file ends inside a gzip member or a line, as a copy of a file that is being written does.
    truncated: bool = False
    # The last good member is followed by bytes that are not gzip.
    corrupt: bool = False


def read_records(path: PathLike, health: Health | None = None) -> Iterator[Record]:
    """Every JSON object of the file, in order; brackets, commas and blank lines are skipped."""
    if health is None:
        health = Health()
    for line in read_lines(path, health):
        text = line.strip()
        if text.endswith(b","):
            text = text[:-1]
        if text in (b"", b"[", b"]"):
            continue
        try:
            record = json.loads(text)
        except (ValueError, RecursionError):  # depth past Python's limit
            # Only the last line may lack a newline, and only in a truncated file is it half a line.
            if line.endswith(b"\n"):
                health.bad_lines += 1
            else:
                health.truncated = True
            continue
        if isinstance(record, dict):
            health.lines += 1
            yield record
        else:
            health.bad_lines += 1


def read_lines(path: PathLike, health: Health | None = None) -> Iterator[bytes]:
    """The file's lines, decompressed, with their newlines; the last one may lack it."""
    if health is None:
        health = Health()
    # Parts of an incomplete line. A list, because adding bytes to bytes would copy a line of many
    # chunks as many times.
    rest: list[bytes] = []
    try:
        with open(path, "rb") as file:
            for data in _plain_chunks(file, health):
                end = data.rfind(b"\n") + 1
                if end:
                    rest.append(data[:end])
                    yield from io.BytesIO(b"".join(rest))
                    rest.clear()
                if end < len(data):
                    rest.append(data[end:])
    except OSError as error:
        raise DFTracerError(f"{os.fspath(path)}: {error.strerror}") from None
    if rest:
        yield b"".join(rest)


def _plain_chunks(file: BinaryIO, health: Health) -> Iterator[bytes]:
    data = file.read(_CHUNK)
    # By content, because files are easily renamed.
    if not data.startswith(_GZIP_MAGIC):
        while data:
            yield data
            data = file.read(_CHUNK)
        return
    yield from _inflate(data, file, health)


def _inflate(data: bytes, file: BinaryIO, health: Health) -> Iterator[bytes]:
    # The gzip module raises at the first damage and loses what it had already decompressed.
    decoder = None
    while data:
        if decoder is None:
            decoder = zlib.decompressobj(wbits=31)
        try:
            plain = decoder.decompress(data)
        except zlib.error:
            health.corrupt = True
            return
        if plain:
            yield plain
        if decoder.eof:
            health.members += 1
            data = decoder.unused_data
            decoder = None
        else:
            data = b""
        data = data or file.read(_CHUNK)
    if decoder is not None:
        health.truncated = True

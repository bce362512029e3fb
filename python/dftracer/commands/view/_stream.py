"""What `view` knows of traces before it reads them, and the stream that it sends to the UI."""

from __future__ import annotations

import json
import os
import re
import struct
import threading
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dftracer import _reader, _secrets
from dftracer.errors import DFTracerError

_OPENING = 1 << 20  # bytes of text read to identify a file
_PIECE = 1 << 16
_UNITS = {"NS": 1e9, "US": 1e6, "MS": 1e3, "SEC": 1.0}
_TS = re.compile(rb'"ts"\s*:\s*"?(-?[\d.]+)')


@dataclass
class Part:
    """One file: what is known without reading all of it."""

    path: Path
    size: int = 0  # of its text, uncompressed
    pid: int = 0
    label: str = ""
    first: float | None = None  # seconds of the Unix epoch
    last: float | None = None


@dataclass(frozen=True)
class Choice:
    """The selected part: seconds after the first event, and processes; None is all."""

    begin: float | None = None
    end: float | None = None
    pids: frozenset[int] | None = None

    def __bool__(self) -> bool:
        return (self.begin, self.end, self.pids) != (None, None, None)


def look(path: Path) -> Part:
    part = Part(path)
    try:
        part.size, head, tail = _measure(path)
    except OSError as error:
        raise DFTracerError(f"{path}: {error.strerror}") from None
    strings: dict[str, str] = {}
    command = program = rank = ""
    units = 1e6
    for line in head.split(b"\n"):
        record = _parse(line)
        args = record.get("args")
        args = args if isinstance(args, dict) else {}
        name, subject = record.get("name"), args.get("name")
        if name == "SH":
            strings[str(args.get("value"))] = str(subject)
        elif name == "process_name":
            program = str(subject)
        elif name == "PR" and subject == "rank":
            rank = f"rank {args.get('value')}"
        elif name == "CM" and subject == "time_metric":
            units = _UNITS.get(str(args.get("value")), 1e6)
        elif name == "start":
            command = str(args.get("cmd_hash", ""))  # the last: an exec continues the file
        pid = record.get("pid")
        if part.pid == 0 and isinstance(pid, int):
            part.pid = pid
        time = record.get("ts")
        if part.first is None and isinstance(time, (int, float)):
            part.first = float(time)
    words = _secrets.shown(strings.get(command, "")).replace(";", " ") or program
    part.label = ": ".join(text for text in (rank, words) if text)
    times = [float(text) for text in _TS.findall(tail)]
    part.last = max(times) / units if times else None
    if part.first is not None:
        part.first /= units
    return part


def _parse(line: bytes) -> dict[str, object]:
    try:
        record = json.loads(line.strip().rstrip(b","))
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _measure(path: Path) -> tuple[int, bytes, bytes]:
    """The size of the text, its head and its end. Our gzip members record their sizes; those of
    others are estimated from the first piece."""
    with open(path, "rb") as file:
        total = os.fstat(file.fileno()).st_size
        data = file.read(_OPENING)
        if data[:2] != b"\x1f\x8b":
            file.seek(max(0, total - _PIECE))
            return total, data, file.read()
        share, head = _inflate(data)
        at = plain = last = 0
        while at < total:
            file.seek(at)
            member = file.read(24)
            ours = member[:4] == b"\x1f\x8b\x08\x04" and member[12:14] == b"DF"
            ours = ours and len(member) == 24
            size = struct.unpack_from("<I", member, 16)[0] if ours else 0
            if size < 24 or at + size > total:
                return plain + int((total - at) * share), head, head
            file.seek(at + size - 4)
            plain += struct.unpack("<I", file.read(4))[0]
            at, last = at + size, at
        file.seek(last)
        return plain, head, _inflate(file.read(at - last))[1][-_PIECE:]


def _inflate(data: bytes) -> tuple[float, bytes]:
    """Bytes of text per byte of gzip, and the beginning of the text, which may be much larger."""
    text = b""
    used = 0
    while data and len(text) < _OPENING:
        decoder = zlib.decompressobj(wbits=31)
        try:
            text += decoder.decompress(data, _OPENING - len(text))
        except zlib.error:
            break
        rest = decoder.unconsumed_tail or decoder.unused_data
        used += len(data) - len(rest)
        if decoder.unconsumed_tail:
            break
        data = rest
    return (len(text) / used if used else 1.0), text


def options(choice: Choice) -> dict[str, Any]:
    def nanoseconds(seconds: float | None) -> int | None:
        return None if seconds is None else round(seconds * 1e9)

    return {
        "begin": nanoseconds(choice.begin),
        "end": nanoseconds(choice.end),
        "pids": None if choice.pids is None else sorted(choice.pids),
    }


def count(paths: Sequence[Path], choice: Choice, limit: int) -> dict[str, Any]:
    """Size, events and damage of the stream, before it is sent. Stops above the limit."""
    return _reader.view(paths, None, limit=limit, **options(choice))


def stream(paths: Sequence[Path], choice: Choice, limit: int) -> Iterator[bytes]:
    """The stream, piece by piece. The reader runs in a thread of its own, as fast as pieces are
    consumed; close this generator to stop early."""
    source, sink = os.pipe()
    failures: list[BaseException] = []

    def write() -> None:
        try:
            done = _reader.view(paths, sink, limit=limit, **options(choice))
            if done["too_large"]:
                raise OSError("the trace has grown above the limit")
        except BaseException as error:
            failures.append(error)
        finally:
            os.close(sink)

    worker = threading.Thread(target=write, daemon=True)
    worker.start()
    try:
        while piece := os.read(source, _PIECE):
            yield piece
    finally:
        os.close(source)  # a writer that is still running gets EPIPE and ends
        worker.join()
    if failures:
        raise failures[0]

"""Several traces, or a part of them, as the one stream that the Perfetto UI reads."""

from __future__ import annotations

import itertools
import json
import os
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dftracer.errors import DFTracerError
from dftracer.trace.lines import Health, read_lines

_BATCH = 8192  # lines
_OPENING = 64  # lines that are looked at to see what a file is
_ENDS = (b"}\n", b"},\n", b"}\r\n", b"},\r\n")
_UNITS = {"NS": 1e9, "US": 1e6, "MS": 1e3, "SEC": 1.0}
# The keys that we write first in a line; of a foreign line at worst too much is shown.
_TS = re.compile(rb'"ts"\s*:\s*"?(-?[\d.]+)')
_DUR = re.compile(rb'"dur"\s*:\s*"?([\d.]+)')
_PID = re.compile(rb'"pid"\s*:\s*"?(-?\d+)')


@dataclass
class Part:
    """One file: what can be known of it without reading it all."""

    path: Path
    size: int = 0  # of its text, uncompressed
    pid: int = 0
    label: str = ""
    first: float | None = None  # seconds of the Unix epoch
    last: float | None = None
    units: float = 1e6  # a second
    by_lines: bool = True  # one record a line, so that it can be joined and cut
    health: Health = field(default_factory=Health)
    skipped: int = 0


@dataclass(frozen=True)
class Choice:
    """What of the traces is wanted: seconds of the Unix epoch, and processes; None for all."""

    begin: float | None = None
    end: float | None = None
    pids: frozenset[int] | None = None

    def __bool__(self) -> bool:
        return (self.begin, self.end, self.pids) != (None, None, None)


def look(path: Path) -> Part:
    part = Part(path)
    part.size, tail = _measure(path)
    lines = list(itertools.islice(read_lines(path), _OPENING))
    part.by_lines = _is_by_lines(lines)
    strings: dict[str, str] = {}
    command = program = rank = ""
    for line in lines if part.by_lines else ():
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
            part.units = _UNITS.get(str(args.get("value")), 1e6)
        elif name == "start":
            command = str(args.get("cmd_hash", ""))  # the last: an exec continues the file
        pid = record.get("pid")
        if part.pid == 0 and isinstance(pid, int):
            part.pid = pid
        time = record.get("ts")
        if part.first is None and isinstance(time, (int, float)):
            part.first = float(time)
    words = strings.get(command, "").replace(";", " ") or program
    part.label = ": ".join(text for text in (rank, words) if text)
    times = [float(text) for text in _TS.findall(tail)]
    part.last = max(times) / part.units if times else None
    if part.first is not None:
        part.first /= part.units
    return part


def _parse(line: bytes) -> dict[str, object]:
    try:
        record = json.loads(line.strip().rstrip(b","))
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def _is_by_lines(lines: Sequence[bytes]) -> bool:
    """Not a whole JSON document, such as torch.profiler writes."""
    for line in lines:
        text = line.strip()
        if text not in (b"", b"["):
            return text.startswith(b"{") and text.endswith((b"}", b"},")) and b'"ph"' in text
    return True


def _measure(path: Path) -> tuple[int, bytes]:
    """The size of the text, and its end. Our members tell their sizes; others are estimated."""
    with open(path, "rb") as file:
        total = os.fstat(file.fileno()).st_size
        if file.read(2) != b"\x1f\x8b":
            file.seek(max(0, total - 65536))
            return total, file.read()
        at = plain = last = 0
        while at < total:
            file.seek(at)
            head = file.read(24)
            ours = len(head) == 24 and head[:4] == b"\x1f\x8b\x08\x04" and head[12:14] == b"DF"
            size = struct.unpack_from("<I", head, 16)[0] if ours else 0
            if size < 24 or at + size > total:
                file.seek(at)
                share, text = _inflate(file.read(1 << 20))
                return plain + int((total - at) * share), text
            file.seek(at + size - 4)
            plain += struct.unpack("<I", file.read(4))[0]
            at, last = at + size, at
        file.seek(last)
        return plain, _inflate(file.read(at - last))[1][-65536:]


def _inflate(data: bytes) -> tuple[float, bytes]:
    """How much text a byte holds, and the text of the first member."""
    decoder = zlib.decompressobj(wbits=31)
    try:
        text = decoder.decompress(data)
    except zlib.error:
        return 1.0, b""
    used = len(data) - len(decoder.unused_data)
    return (len(text) / used if used else 1.0), text


def joined(parts: Sequence[Part], choice: Choice) -> Iterator[bytes]:
    """The stream. One `[` at its start: the importer stops at a second one."""
    if len(parts) == 1 and not parts[0].by_lines:
        if choice:
            raise DFTracerError(f"{parts[0].path} is one JSON document, which cannot be cut")
        for batch in _batches(read_lines(parts[0].path, parts[0].health)):
            yield b"".join(batch)
        return
    yield b"[\n"
    for part in parts:
        if not part.by_lines:
            raise DFTracerError(f"{part.path} is one JSON document, which cannot be joined")
        for batch in _batches(read_lines(part.path, part.health)):
            kept = [line for line in batch if line.startswith(b"{") and line.endswith(_ENDS)]
            if len(kept) != len(batch):
                part.skipped += _count_broken(batch, kept)
            if choice:
                kept = [line for line in kept if _is_wanted(line, choice, part.units)]
            if kept:
                yield b"".join(kept)


def _batches(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    source = iter(lines)
    while batch := list(itertools.islice(source, _BATCH)):
        if not batch[-1].endswith(b"\n"):
            batch[-1] += b"\n"
        yield batch


def _count_broken(batch: list[bytes], kept: list[bytes]) -> int:
    brackets = sum(line.strip() in (b"", b"[", b"]", b",") for line in batch)
    return len(batch) - len(kept) - brackets


def _is_wanted(line: bytes, choice: Choice, units: float) -> bool:
    if choice.pids is not None:
        pid = _PID.search(line)
        if pid is None or int(pid[1]) not in choice.pids:
            return False
    begins = _TS.search(line)
    if begins is None or b'"ph":"M"' in line:
        return True
    time = float(begins[1]) / units
    if choice.end is not None and time > choice.end:
        return False
    if choice.begin is None or time >= choice.begin:
        return True
    lasts = _DUR.search(line)
    return lasts is not None and time + float(lasts[1]) / units >= choice.begin

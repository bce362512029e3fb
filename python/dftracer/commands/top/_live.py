"""The numbers of `dftracer top`: what processes did between two samples.

Nothing here touches the processes. Events are counted exactly, from what a spool says is in the
trace and what waits in it. Bytes are the kernel's count (/proc/PID/io). Calls, files and regions
come from the records themselves, those in the spool and those just written to the trace: all of
the interval, or, for a process that records more than some ten thousand per second, the newest of
them, scaled to the exact count.
"""

from __future__ import annotations

import json
import os
import re
import time
import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from dftracer import _libcore, _secrets

_LINE = re.compile(
    rb'\{"id":(\d+),"name":"((?:[^"\\]|\\.)*)","cat":"((?:[^"\\]|\\.)*)".*?"ts":(\d+)(?:,"dur":(\d+))?'
)
_FILE = re.compile(rb'"fhash":"([0-9a-f]{16})"')
_RESULT = re.compile(rb'"ret":(-?\d+)')
_SIZE = re.compile(rb'"size":(\d+)')
_PLACE = re.compile(rb'"(epoch|step)":(\d+)')
_PATH = re.compile(
    rb'"name":"FH".*?"args":\{[^{}]*?"name":"((?:[^"\\]|\\.)*)","value":"([0-9a-f]{16})"'
)
_CALLS = (b"POSIX", b"STDIO")
_SOCKETS = b"NET"  # calls that are no I/O: their bytes are in no rate
_NO_DATA = (b"readdir", b"readlink", b"readahead", b"aio_")
_MOST_LINES = 20_000  # read per process and interval
_TAIL = 512 << 10  # bytes of a trace that are read, if more were written


@dataclass
class Use:
    """Use of one call, file or region in an interval, per second."""

    count: float = 0
    read: float = 0
    written: float = 0
    seconds: float = 0


@dataclass
class Process:
    """One process in one interval."""

    pid: int
    host: str
    command: str = ""
    rank: int | None = None
    trace: str = ""
    events: int = 0
    lost: int = 0
    events_per_s: float = 0
    read_per_s: float | None = None
    written_per_s: float | None = None
    sampled: float = 1.0  # share of the interval's events that was read
    epoch: int | None = None
    step: int | None = None
    calls: dict[str, Use] = field(default_factory=dict)
    files: dict[str, Use] = field(default_factory=dict)
    regions: dict[str, Use] = field(default_factory=dict)


@dataclass
class _Known:
    """What is remembered of a process between two samples."""

    command: str = ""
    rank: int | None = None
    total: int = 0
    io: tuple[int, int] | None = None
    at: float = 0.0
    scanned: int = 0
    epoch: int | None = None
    step: int | None = None
    paths: dict[str, str] = field(default_factory=dict)


class Watch:
    """Samples the processes that record into some directories."""

    def __init__(self, directories: list[str]) -> None:
        self._directories = directories
        self._known: dict[int, _Known] = {}

    def look(self) -> list[Process]:
        """What happened since the last sample; the first one only finds the processes."""
        seen: dict[int, _Known] = {}
        found = []
        for directory in self._directories:
            for name in _spools(directory):
                # Before the sample: what happens during it counts in this interval or the next.
                now = time.time()
                peeked = _libcore.peek(directory, name)
                if peeked is None or not peeked.runs:
                    continue
                known = self._known.get(peeked.key) or _Known()
                found.append(_measure(directory, peeked, known, now))
                seen[peeked.key] = known
        self._known = seen
        return sorted(found, key=lambda one: (one.rank is None, one.rank or 0, one.host, one.pid))


def _spools(directory: str) -> list[str]:
    try:
        return sorted(
            entry.name
            for entry in os.scandir(directory)
            if entry.name.startswith(".") and entry.name.endswith(".spool")
        )
    except OSError:
        return []


def _measure(directory: str, peeked: _libcore.Peeked, known: _Known, now: float) -> Process:
    before = known.at
    opening = peeked.opening.count(b"\n") - peeked.opening.startswith(b"[")
    total = max(0, peeked.written - opening) + peeked.waiting
    if total < known.total or not known.command:  # new, or another program by exec
        _read_opening(peeked.opening, known)
    io = _io_of(peeked)
    out = Process(
        pid=peeked.pid,
        host=peeked.host,
        command=known.command,
        rank=known.rank,
        trace=os.path.join(directory, peeked.trace_name),
        events=total,
        lost=peeked.lost,
    )
    passed = now - before
    if before > 0:
        new = max(0, total - known.total)
        out.events_per_s = new / passed
        if io is not None and known.io is not None:
            out.read_per_s = max(0, io[0] - known.io[0]) / passed
            out.written_per_s = max(0, io[1] - known.io[1]) / passed
        written = _scan_trace(out.trace, peeked.trace_size, known)
        lines = peeked.lines.splitlines()[-_MOST_LINES:] + written.splitlines()[-_MOST_LINES:]
        _sample(lines, peeked, known, out, new, passed, before * peeked.units)
    else:
        _first_scan(out.trace, peeked.trace_size, known)
    _name_files(peeked, known, out)
    out.epoch, out.step = known.epoch, known.step
    known.total, known.io, known.at = total, io, now
    return out


def _read_opening(text: bytes, known: _Known) -> None:
    strings: dict[str, str] = {}
    command = ""
    for record in _records(text):
        args = record.get("args", {})
        name, subject, value = record.get("name"), args.get("name"), args.get("value")
        if name in ("SH", "FH"):
            strings[str(value)] = str(subject)
        elif name == "PR" and subject == "rank":
            known.rank = int(value) if str(value).isdigit() else None
        elif name == "start":
            command = str(args.get("cmd_hash", ""))
    known.command = _secrets.shown(strings.get(command, "")).replace(";", " ")
    known.paths.update(strings)


def _records(text: bytes) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            yield record


def _io_of(peeked: _libcore.Peeked) -> tuple[int, int] | None:
    """Bytes read and written so far; None if /proc does not show the process."""
    if peeked.host != os.uname().nodename:
        return None
    try:
        with open(f"/proc/{peeked.pid}/io", encoding="ascii") as file:
            counts = dict(line.split(": ") for line in file.read().splitlines())
        return int(counts["rchar"]), int(counts["wchar"])
    except (OSError, KeyError, ValueError):
        return None


def _sample(
    lines: list[bytes],
    peeked: _libcore.Peeked,
    known: _Known,
    out: Process,
    new: int,
    passed: float,
    since: float,
) -> None:
    uses: tuple[dict[bytes, Use], ...] = tuple(defaultdict(Use) for _ in range(3))
    calls, files, regions = uses
    seen: set[bytes] = set()  # a chunk keeps written records until it is reused
    others = 0
    place_at = -1
    for line in lines:
        match = _LINE.match(line)
        if match is None:
            others += 1  # names of files and threads: counted by the spool, without a time
            if b'"name":"FH"' in line:
                _note_paths(line, known)
            continue
        number, name, category, begin, lasts = match.groups()
        end = int(begin) + int(lasts or 0)
        place = _PLACE.findall(line)
        if place and end >= place_at:  # the newest one, however old
            place_at = end
            _note_place(place, known)
        if end < since or number in seen:
            continue
        seen.add(number)
        seconds = int(lasts or 0) / peeked.units
        is_call = category in _CALLS
        read, written = _bytes_of(name, line) if is_call else (0, 0)
        named = calls if is_call or category == _SOCKETS else regions
        _add(named[name], read, written, seconds)
        if is_call:
            file = _FILE.search(line)
            if file is not None:
                _add(files[file[1]], read, written, seconds)
    looked = len(seen)
    whole = looked + others >= new
    out.sampled = 1.0 if whole else looked / new
    scale = 1 / passed if whole else new / looked / passed if looked else 0
    for to, table in ((out.calls, calls), (out.files, files), (out.regions, regions)):
        for key, use in table.items():
            to[_text(key)] = Use(
                use.count * scale, use.read * scale, use.written * scale, use.seconds / use.count
            )


def _add(use: Use, read: int, written: int, seconds: float) -> None:
    use.count += 1
    use.read += read
    use.written += written
    use.seconds += seconds


def _bytes_of(name: bytes, line: bytes) -> tuple[int, int]:
    reads = b"read" in name and not name.startswith(_NO_DATA)
    writes = b"write" in name and not name.startswith(_NO_DATA)
    if not (reads or writes):
        return 0, 0
    result = _RESULT.search(line)
    amount = max(0, int(result[1])) if result is not None else 0
    if name.startswith((b"fread", b"fwrite")):
        size = _SIZE.search(line)
        amount *= int(size[1]) if size is not None else 1
    return (amount, 0) if reads else (0, amount)


def _text(raw: bytes) -> str:
    try:
        return str(json.loads(b'"' + raw + b'"'))
    except ValueError:
        return raw.decode(errors="replace")


def _note_place(found: list[tuple[bytes, bytes]], known: _Known) -> None:
    for what, number in found:
        if what == b"epoch":
            known.epoch = int(number)
        else:
            known.step = int(number)


def _note_paths(text: bytes, known: _Known) -> None:
    for path, value in _PATH.findall(text):
        known.paths[value.decode()] = _text(path)


def _scan_trace(path: str, size: int, known: _Known) -> bytes:
    """The lines written to the trace since the last sample. If they are many, only the last ones:
    watching must cost much less than the program itself."""
    begin = max(known.scanned, size - _TAIL)
    known.scanned = size
    text = _inflate(_piece(path, begin, size))
    _note_paths(text, known)
    return text


def _first_scan(path: str, size: int, known: _Known) -> None:
    """The files opened at the beginning, and the current epoch and step."""
    start = _inflate(_piece(path, 0, min(size, _TAIL)))
    end = _inflate(_piece(path, max(0, size - _TAIL), size)) if size > _TAIL else start
    _note_paths(start, known)
    _note_paths(end, known)
    for place in _PLACE.findall(end[-(1 << 20) :]):
        _note_place([place], known)
    known.scanned = size


def _piece(path: str, begin: int, end: int) -> bytes:
    if end <= begin:
        return b""
    try:
        with open(path, "rb") as file:
            file.seek(begin)
            return file.read(end - begin)
    except OSError:
        return b""


def _inflate(data: bytes) -> bytes:
    """The complete gzip members in a part of a trace, which may begin inside one."""
    if not data.startswith(b"\x1f\x8b"):
        start = data.find(b"\x1f\x8b\x08\x04")
        if start < 0:
            return data  # not compressed
        data = data[start:]
    pieces = []
    while data.startswith(b"\x1f\x8b"):
        decoder = zlib.decompressobj(wbits=31)
        try:
            pieces.append(decoder.decompress(data))
        except zlib.error:
            break
        if not decoder.eof:
            break
        data = decoder.unused_data
    return b"".join(pieces)


def _name_files(peeked: _libcore.Peeked, known: _Known, out: Process) -> None:
    missing = [hash_ for hash_ in out.files if hash_ not in known.paths]
    if missing and peeked.host == os.uname().nodename:
        known.paths.update(_open_files(peeked.pid))
    out.files = {known.paths.get(hash_, f"(file {hash_})"): use for hash_, use in out.files.items()}


def _open_files(pid: int) -> dict[str, str]:
    """The files open now, by their hashes in the trace."""
    from hashlib import md5

    found = {}
    directory = f"/proc/{pid}/fd"
    try:
        for name in os.listdir(directory):
            path = os.readlink(os.path.join(directory, name))
            digest = md5(os.fsencode(path), usedforsecurity=False).digest()
            found[digest[0:16:2].hex()] = path
    except OSError:
        pass
    return found


def total(processes: list[Process], what: str) -> dict[str, Use]:
    """`calls`, `files` or `regions` of all processes together."""
    sums: dict[str, Use] = {}
    weights: dict[str, float] = defaultdict(float)
    for process in processes:
        for key, use in getattr(process, what).items():
            to = sums.setdefault(key, Use())
            to.count += use.count
            to.read += use.read
            to.written += use.written
            weights[key] += use.count
            to.seconds += use.seconds * use.count
    for key, use in sums.items():
        use.seconds = use.seconds / weights[key] if weights[key] else 0
    return sums

"""A strict reader of traces that shares nothing with the product: what it accepts, others will."""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Record = dict[str, Any]

HASH = re.compile(r"[0-9a-f]{16}")
# Arguments that stand for a string, and the records that may say which.
HASHED = {
    "hhash": ("HH",),
    "fhash": ("FH",),
    "cmd_hash": ("SH",),
    "exec_hash": ("SH",),
    "pathname_hash": ("FH", "SH"),
    "newpath_hash": ("FH", "SH"),
    "path2_hash": ("FH", "SH"),
    "path_hash": ("FH", "SH"),
    "fd_out_hash": ("FH",),
    "in_fd_hash": ("FH",),
    "site_hash": ("SH",),
}


# Python's own characters for single bytes, which the same range of ours stands for.
ESCAPED = {0xEF00 + byte: 0xDC00 + byte for byte in range(0x80, 0x100)}


class TraceError(AssertionError):
    """A file that is not what it should be."""


def need(condition: object, path: Path, what: str) -> None:
    if not condition:
        raise TraceError(f"{path}: {what}")


@dataclass(frozen=True)
class Member:
    """One gzip member."""

    offset: int
    size: int
    lines: int
    text: bytes


@dataclass
class Trace:
    path: Path
    lines: list[bytes]
    records: list[Record]
    members: list[Member] = field(default_factory=list)

    @property
    def metadata(self) -> list[Record]:
        return [record for record in self.records if record["ph"] == "M"]

    @property
    def events(self) -> list[Record]:
        """All that is no metadata, `start` and `end` too."""
        return [record for record in self.records if record["ph"] != "M"]

    @property
    def recorded(self) -> list[Record]:
        """What the program itself recorded."""
        return [record for record in self.events if record["cat"] != "dftracer"]

    def named(self, name: str) -> list[Record]:
        return [record for record in self.records if record["name"] == name]

    def one(self, name: str) -> Record:
        found = self.named(name)
        need(len(found) == 1, self.path, f"{len(found)} records are called {name!r}")
        return found[0]

    def meta(self, name: str, key: str | None = None) -> list[str]:
        """The values of metadata records; with a key, of those that give this key a value."""
        return [
            record["args"]["value"]
            for record in self.metadata
            if record["name"] == name and key in (None, record["args"]["name"])
        ]

    def by_id(self) -> dict[int, Record]:
        return {event["id"]: event for event in self.events}


def hash16(text: str | bytes) -> str:
    raw = text.encode() if isinstance(text, str) else text
    return hashlib.md5(raw).digest()[::2].hex()


def decode(text: str) -> bytes:
    """The bytes that the program gave: U+EF80 to U+EFFF stand for single bytes."""
    return text.translate(ESCAPED).encode("utf-8", "surrogateescape")


def split_members(data: bytes, path: Path) -> list[Member]:
    """The gzip members of a file, found by the size that each header gives."""
    members: list[Member] = []
    offset = 0
    while offset < len(data):
        head = data[offset : offset + 12]
        where = f"member {len(members)} at {offset}: "
        need(len(head) == 12 and head[:3] == b"\x1f\x8b\x08", path, where + "no gzip header")
        need(head[3] == 4, path, where + f"flags {head[3]:#x} instead of FEXTRA alone")
        extra = data[offset + 12 : offset + 12 + int.from_bytes(head[10:12], "little")]
        fields = {}
        at = 0
        while at + 4 <= len(extra):
            length = int.from_bytes(extra[at + 2 : at + 4], "little")
            fields[extra[at : at + 2]] = extra[at + 4 : at + 4 + length]
            at += 4 + length
        need(at == len(extra), path, where + "the extra field does not add up")
        need(len(fields.get(b"DF", b"")) == 8, path, where + "no subfield DF of 8 bytes")
        size = int.from_bytes(fields[b"DF"][:4], "little")
        lines = int.from_bytes(fields[b"DF"][4:], "little")
        need(0 < size <= len(data) - offset, path, where + f"its size {size} leaves the file")
        inflater = zlib.decompressobj(wbits=31)
        try:
            text = inflater.decompress(data[offset : offset + size])
        except zlib.error as error:
            raise TraceError(f"{path}: {where}{error}") from None
        need(inflater.eof and not inflater.unused_data, path, where + f"{size} is not its size")
        need(text.endswith(b"\n"), path, where + "does not end with a whole line")
        found = text.count(b"\n") - text.startswith(b"[\n")
        need(found == lines, path, where + f"holds {found} records, its header says {lines}")
        members.append(Member(offset, size, lines, text))
        offset += size
    return members


def _object(pairs: Iterable[tuple[str, Any]]) -> Record:
    out: Record = {}
    for key, value in pairs:
        if key in out:
            raise ValueError(f"the key {key[:60]!r} is there twice")
        out[key] = value
    return out


def _constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def parse_line(line: bytes) -> Record:
    """One line as RFC 8259 has it."""
    value = json.loads(
        line.decode("utf-8", "strict"), object_pairs_hook=_object, parse_constant=_constant
    )
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


METADATA_KEYS = ["id", "name", "cat", "pid", "tid", "ph", "args"]
SPAN_KEYS = ["id", "name", "cat", "pid", "tid", "ts", "dur", "ph", "args"]
MOMENT_KEYS = (
    ["id", "name", "cat", "pid", "tid", "ts", "ph", "args"],
    SPAN_KEYS,  # other writers give a moment a duration of 0
)


FLOW = re.compile(r"0x[0-9a-f]{16}")
FLOW_ENDS = (["flow_in"], ["flow_out"], ["flow_in", "flow_out"])


def _shape_problem(record: Record) -> str:
    """What is wrong with a record by itself; empty for nothing."""
    for key, kind in (("id", int), ("name", str), ("cat", str), ("ph", str), ("args", dict)):
        if not isinstance(record.get(key), kind):
            return f"{key} is missing or no {kind.__name__}"
    if not _whole(record["id"]) or record["id"] == 0:
        return "id"
    for key in ("pid", "tid"):
        if not _whole(record.get(key)) or not 0 < record[key] < 1 << 32:
            return key
    phase, keys, args = record["ph"], list(record), record["args"]
    if phase == "M":
        if keys != METADATA_KEYS:
            return "keys"
        right = list(args) == ["hhash", "name", "value"]
        return "" if right and all(isinstance(v, str) for v in args.values()) else "args"
    if phase not in ("X", "i", "C"):
        return "ph"
    if not _whole(record.get("ts")) or not _whole(record.get("dur", 0)):
        return "ts or dur"
    if phase == "X" and "bind_id" in record:  # an end of a flow
        ends = keys[len(SPAN_KEYS) + 1 :]
        if not FLOW.fullmatch(str(record["bind_id"])) or ends not in FLOW_ENDS:
            return "flow"
        if any(record[end] is not True for end in ends):
            return "flow"
        keys = keys[: len(SPAN_KEYS)]
    if keys != SPAN_KEYS if phase == "X" else keys not in MOMENT_KEYS:
        return "keys"
    if phase == "C":
        # Every argument of a counter is drawn as a series, so there are no others.
        return "" if args else "a counter without a value"
    if list(args)[:3] != ["hhash", "p_idx", "level"]:
        return "args begin otherwise"
    if not isinstance(args["p_idx"], int) or not _whole(args["level"]) or args["level"] == 0:
        return "p_idx or level"
    return ""


def _check_hashes(trace: Trace) -> None:
    known: dict[str, set[str]] = {"HH": set(), "FH": set(), "SH": set()}
    for record in trace.metadata:
        if record["name"] not in known:
            continue
        value = record["args"]["value"]
        if not HASH.fullmatch(value) or hash16(decode(record["args"]["name"])) != value:
            raise TraceError(f"{trace.path}: {record}: the hash is not that of the name")
        known[record["name"]].add(value)
    for record in trace.records:
        args = record["args"]
        for key in HASHED.keys() & args.keys():
            if not any(args[key] in known[kind] for kind in HASHED[key]):
                raise TraceError(f"{trace.path}: {record}: {key} is not in this file")
        if record["cat"] == "dftracer" and record["name"] == "start" and "cwd" in args:
            need(args["cwd"] in known["FH"] | known["SH"], trace.path, f"{record}: cwd")


def _tree_problem(event: Record, ids: dict[int, Record], open_parents: bool) -> str:
    """What is wrong with an event's place among the others."""
    if event["ph"] == "C":
        return ""
    parent, level = event["args"]["p_idx"], event["args"]["level"]
    if parent == -1:
        return "" if level == 1 else "level without a parent"
    if parent not in ids:
        if not open_parents:
            return "its parent is not in the file"
        return "" if parent > 0 and level > 1 else "p_idx or level"
    above = ids[parent]
    if level != above["args"]["level"] + 1 and level != 0xFFFF:
        return f"level, with the parent {above}"
    return "" if event["pid"] == above["pid"] else "child of another process"


def _check_tree(trace: Trace, open_parents: bool) -> None:
    ids: dict[int, Record] = {}
    for event in trace.events:
        if event["id"] in ids:
            raise TraceError(f"{trace.path}: id {event['id']} twice: {event}")
        ids[event["id"]] = event
    for event in trace.events:
        problem = _tree_problem(event, ids, open_parents)
        if problem:
            raise TraceError(f"{trace.path}: {event}: {problem}")


def read(path: str | Path, *, open_parents: bool = False, ended: bool = True) -> Trace:
    """Reads and checks one file. open_parents: spans that never ended may be named as parents.
    ended: the last record must be `end`."""
    path = Path(path)
    data = path.read_bytes()
    need(data, path, "is empty")
    members: list[Member] = []
    if path.name.endswith(".gz"):
        members = split_members(data, path)
        data = b"".join(member.text for member in members)
    need(data.startswith(b"[\n"), path, "the first line is not [")
    need(data.endswith(b"\n"), path, "the last line is not whole")
    lines = data[2:-1].split(b"\n") if len(data) > 2 else []
    records = []
    for number, line in enumerate(lines, 2):
        try:
            records.append(parse_line(line))
        except ValueError as error:
            raise TraceError(f"{path}:{number}: {error}: {line[:200]!r}") from None
    trace = Trace(path, lines, records, members)
    for record in records:
        problem = _shape_problem(record)
        if problem:
            raise TraceError(f"{path}: {record}: {problem}")
    _check_hashes(trace)
    _check_tree(trace, open_parents)
    need(records, path, "holds no record")
    if ended:
        last = records[-1]
        need((last["name"], last["cat"]) == ("end", "dftracer"), path, f"ends with {last}")
    return trace


def files(directory: str | Path) -> list[Path]:
    """The traces of a directory, by name."""
    return sorted(
        path
        for path in Path(directory).iterdir()
        if path.name.endswith((".pfw", ".pfw.gz")) and not path.name.startswith(".")
    )


def read_directory(
    directory: str | Path, *, open_parents: bool = False, ended: bool = True
) -> list[Trace]:
    return [read(path, open_parents=open_parents, ended=ended) for path in files(directory)]


def read_one(directory: str | Path, *, open_parents: bool = False, ended: bool = True) -> Trace:
    """The only trace of a directory, in which there is nothing else of ours either."""
    directory = Path(directory)
    found = files(directory)
    need(len(found) == 1, directory, f"holds {[path.name for path in found]}, not one trace")
    need(not spools(directory), directory, f"holds spools: {spools(directory)}")
    return read(found[0], open_parents=open_parents, ended=ended)


def spools(directory: str | Path) -> list[Path]:
    """Hidden files of the tracer: spools, notes about spools, and files that are being made."""
    return sorted(path for path in Path(directory).iterdir() if path.name.startswith("."))


def crossings(events: Iterable[Record]) -> list[tuple[Record, Record]]:
    """Pairs of spans of one thread that overlap without one holding the other."""
    out = []
    by_thread: dict[tuple[int, int], list[Record]] = {}
    for event in events:
        if event["ph"] == "X":
            by_thread.setdefault((event["pid"], event["tid"]), []).append(event)
    for spans in by_thread.values():
        spans.sort(key=lambda span: (span["ts"], -span["dur"]))
        open_spans: list[Record] = []
        for span in spans:
            while open_spans and open_spans[-1]["ts"] + open_spans[-1]["dur"] <= span["ts"]:
                open_spans.pop()
            if open_spans:
                outer = open_spans[-1]
                if span["ts"] + span["dur"] > outer["ts"] + outer["dur"]:
                    out.append((outer, span))
                    continue
            open_spans.append(span)
    return out

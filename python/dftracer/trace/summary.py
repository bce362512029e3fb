"""One pass over trace files: processes, events by name, files used, time, damage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dftracer import _reader, _secrets
from dftracer.trace.files import PathLike
from dftracer.trace.stream import Damage


@dataclass
class Row:
    """The events of one name. Times are in nanoseconds."""

    cat: str
    name: str
    count: int = 0
    total: int = 0
    shortest: int = 0
    longest: int = 0
    p50: int = 0
    p90: int = 0
    p99: int = 0
    # On files, not on pipes and the like; None if no call has a known number of bytes.
    read_bytes: int | None = 0
    write_bytes: int | None = 0
    # Calls that moved a number of bytes that the trace does not contain.
    read_unknown: int = 0
    write_unknown: int = 0


@dataclass
class Process:
    """Fields in the order of the reader's tuples."""

    pid: int
    host: str = ""
    rank: str = ""
    name: str = ""
    command: str = ""
    program: str = ""
    cwd: str = ""
    ppid: int | None = None
    run: str = ""
    key: str = ""
    threads: int = 0
    events: int = 0
    records: int = 0
    total: int = 0
    read_bytes: int | None = 0  # as in Row
    write_bytes: int | None = 0
    read_unknown: int = 0
    write_unknown: int = 0
    first: int | None = None
    last: int | None = None
    start: int | None = None  # of its first `start` record
    end: int | None = (
        None  # of its last `end` record; of a crashed process, the time of its last event
    )
    cpu: int | None = None  # CPU time in nanoseconds, if its `end` record contains it
    cpu_wait: int | None = None  # the same, that its main thread waited for a processor
    starts: int = 0
    ends: int = 0
    recovered: bool = False
    lost: int = 0
    promised: int | None = None
    ring_requests: int = 0  # of io_uring that only the kernel saw
    trace: str = ""

    @property
    def started(self) -> bool:
        return self.starts > 0

    @property
    def ended(self) -> bool:
        return self.ends > 0


@dataclass
class UsedFile:
    """A file that the traced programs used."""

    path: str
    count: int
    total: int
    reads: int
    writes: int
    read_bytes: int | None
    write_bytes: int | None
    read_unknown: int = 0
    write_unknown: int = 0
    mapped_bytes: int = 0  # lengths of its mappings


@dataclass
class Summary:
    """Summary of one trace file."""

    path: Path
    size: int = 0
    events: int = 0
    records: int = 0
    document: bool = False
    ours: bool = False
    run: str = ""
    troubles: dict[str, int] = field(default_factory=dict)
    damaged: bool = False
    # A merged file may contain processes of two hosts with the same pid.
    processes: dict[tuple[int, str], Process] = field(default_factory=dict)
    rows: dict[tuple[str, str], Row] = field(default_factory=dict)
    metadata: Counter[str] = field(default_factory=Counter)
    first: int | None = None
    last: int | None = None
    sample: list[str] = field(default_factory=list)

    @property
    def status(self) -> str:
        """How the file ended, in a few words."""
        words = (
            ("cannot_read", "not readable"),
            ("empty_file", "empty"),
            ("no_records", "no trace"),
            ("bad_member", "damaged"),
            ("rubbish", "damaged"),
            ("cut_member", "cut short"),
            ("cut_line", "cut short"),
        )
        for kind, text in words:
            if kind in self.troubles:
                return text
        lines = sum(
            self.troubles.get(kind, 0) for kind in ("bad_line", "not_a_record", "long_line")
        )
        if lines:
            return f"{lines:,} unreadable lines"
        if self.damaged:
            return "damaged"
        if self.document:
            return "whole"
        started = [process for process in self.processes.values() if process.started]
        if not started or not all(process.ended for process in started):
            return "no end record"
        if any(process.recovered for process in started):
            return "recovered after a sudden end"
        return "ended cleanly"


@dataclass
class TraceSummary:
    """Summary of all files together; `files` has one per file, if requested."""

    damage: Damage
    files: list[Summary]
    rows: list[Row]
    processes: list[Process]
    used: list[UsedFile]
    hosts: dict[str, str]
    # Bytes through pipes, sockets and terminals, which `rows` and `processes` leave out. Known if
    # the summary is by path.
    pipes: dict[str, Any] = field(default_factory=dict)
    events: int = 0
    records: int = 0
    size: int = 0
    first: int | None = None
    last: int | None = None


def summarise_all(
    paths: Sequence[PathLike],
    *,
    threads: int = 0,
    by_file: bool = False,
    by_path: bool = True,
    samples: int = 0,
    progress: Callable[[int], object] | None = None,
) -> TraceSummary:
    """Reads all files once, with several threads; memory use does not grow with their size."""
    found = _reader.summarise(
        paths, threads=threads, by_file=by_file, by_path=by_path, samples=samples, progress=progress
    )
    return summary_of(found, by_file=by_file)


def summary_of(found: dict[str, Any], *, by_file: bool = False) -> TraceSummary:
    """From what the reader found, by itself or beside a stream."""
    files = [_file(file, facts) for file, facts in zip(found["files"], found["facts"])]
    processes = []
    names = [str(file.path) for file in files]
    found["processes"].reverse()
    while found["processes"]:  # removed one by one: there may be a million
        file, *facts, _version = found["processes"].pop()
        process = Process(*facts)
        process.trace = names[file]
        process.command = _secrets.shown(process.command).replace(";", " ")
        processes.append(process)
        files[file].processes[process.pid, process.host] = process
    rows = []
    for item in found["names"]:
        row = _row(item)
        rows.append(row)
        if by_file:
            files[item["file"]].rows[row.cat, row.name] = row
    used = [
        UsedFile(
            item["path"],
            item["count"],
            item["total_ns"],
            item["reads"],
            item["writes"],
            **_bytes(item),
            mapped_bytes=item["mapped_bytes"],
        )
        for item in found["paths"]
    ]
    damage = Damage.of(found)
    _check_totals(files, damage)
    firsts = [file.first for file in files if file.first is not None]
    lasts = [file.last for file in files if file.last is not None]
    return TraceSummary(
        damage,
        files,
        rows,
        processes,
        used,
        found["hosts"],
        _bytes(found["pipes"]),
        events=found["total"]["events"],
        records=found["total"]["records"],
        size=sum(file.size for file in files),
        first=min(firsts, default=None),
        last=max(lasts, default=None),
    )


def summarise(path: PathLike, sample_lines: int = 3) -> Summary:
    """Summary of one file."""
    return summarise_all([path], by_file=True, by_path=False, samples=sample_lines).files[0]


def _file(item: dict[str, Any], facts: dict[str, Any]) -> Summary:
    report = item["report"]
    return Summary(
        path=Path(item["path"]),
        size=item["size"],
        events=report["events"],
        records=report["records"],
        document=item["document"],
        ours=item["ours"],
        run=item["run"],
        troubles=dict(report["troubles"]),
        damaged=report["damaged"],
        metadata=Counter(facts["metadata"]),
        first=facts["first_ns"],
        last=facts["last_ns"],
        sample=list(facts["sample"]),
    )


def _row(item: dict[str, Any]) -> Row:
    return Row(
        cat=item["cat"],
        name=item["name"],
        count=item["count"],
        total=item["total_ns"],
        shortest=item["min_ns"],
        longest=item["max_ns"],
        p50=item["p50_ns"],
        p90=item["p90_ns"],
        p99=item["p99_ns"],
        **_bytes(item),
    )


def _bytes(item: dict[str, Any]) -> dict[str, Any]:
    """An unknown sum is None, not 0."""
    found = {}
    for way in ("read", "write"):
        total, unknown = item[f"{way}_bytes"], item[f"{way}_unknown"]
        found[f"{way}_bytes"] = None if unknown and not total else total
        found[f"{way}_unknown"] = unknown
    return found


def _check_totals(files: list[Summary], damage: Damage) -> None:
    """Checks the number of records that the end record of a file states."""
    for file in files:
        if not file.ours or file.damaged or len(file.processes) != 1:
            continue
        # A merge adds records, a piece has only some, a repair has lost some.
        if file.metadata["MP"] or file.metadata["repaired"]:
            continue
        (process,) = file.processes.values()
        # A process that execs or starts again counts from its last start.
        if process.starts != 1 or process.ends != 1 or process.promised is None:
            continue
        if file.records - 1 != process.promised:
            detail = f"{file.records - 1} records, the end record states {process.promised}"
            text = "the number of records differs from the end record"
            file.troubles["wrong_total"] = 1
            file.damaged = True
            damage.add("wrong_total", str(file.path), text, detail)

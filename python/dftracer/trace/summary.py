"""One pass over a trace file: its processes, its events by name, its time, its health."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from dftracer.trace.lines import Health, Record, read_records

# The tracer's own records: facts about the process, not events of the application.
OWN_CATEGORY = "dftracer"
# Spans that cross others stand on lanes of their own: the thread, with a number above these bits.
THREAD_MASK = (1 << 22) - 1
# Units a second of each DFTRACER_TIME_METRIC.
TIME_METRICS = {"NS": 1_000_000_000, "US": 1_000_000, "MS": 1_000, "SEC": 1}


@dataclass
class Row:
    count: int = 0
    total: int = 0
    longest: int = 0


@dataclass
class Process:
    pid: int
    host: str = ""
    rank: str = ""
    command: str = ""
    threads: set[int] = field(default_factory=set)
    events: int = 0
    started: bool = False
    ended: bool = False
    recovered: bool = False
    lost: int = 0


@dataclass
class Summary:
    path: Path
    size: int = 0
    health: Health = field(default_factory=Health)
    # Two processes of one pid on two hosts may share a file that was merged.
    processes: dict[tuple[int, str], Process] = field(default_factory=dict)
    rows: dict[tuple[str, str], Row] = field(default_factory=dict)
    metadata: Counter[str] = field(default_factory=Counter)
    strings: dict[str, str] = field(default_factory=dict)
    first: int | None = None
    last: int | None = None
    metric: str = "US"
    sample: list[Record] = field(default_factory=list)

    @property
    def units_a_second(self) -> int:
        return TIME_METRICS[self.metric]

    @property
    def events(self) -> int:
        return sum(row.count for row in self.rows.values())

    @property
    def status(self) -> str:
        """How the file ended, in a few words."""
        if self.health.corrupt:
            return "damaged"
        if self.health.truncated:
            return "cut short"
        if self.health.bad_lines:
            return f"{self.health.bad_lines:,} unreadable lines"
        started = [process for process in self.processes.values() if process.started]
        if not started or not all(process.ended for process in started):
            return "no end record"
        if any(process.recovered for process in started):
            return "recovered after a sudden end"
        return "ended cleanly"


def summarise(path: Path, sample_lines: int = 3) -> Summary:
    """Reads the whole file once, in constant memory but for the distinct names."""
    summary = Summary(path, size=path.stat().st_size)
    for record in read_records(path, summary.health):
        args = record.get("args")
        if not isinstance(args, dict):
            args = {}
        process = _process_of(summary, record, args)
        if record.get("cat") == OWN_CATEGORY:
            _note_own(summary, process, record, args)
        else:
            _note_event(summary, process, record)
            if len(summary.sample) < sample_lines:
                summary.sample.append(record)
    for process in summary.processes.values():
        process.host = summary.strings.get(process.host, process.host)
        process.command = summary.strings.get(process.command, "").replace(";", " ")
    return summary


def _process_of(summary: Summary, record: Record, args: Record) -> Process:
    pid = record.get("pid")
    number = pid if isinstance(pid, int) else 0
    host = args.get("hhash", args.get("hostname"))
    if host is None:  # a counter's arguments are its series: it names no host
        known = (key for key in summary.processes if key[0] == number)
        key = next(known, (number, ""))
    else:
        key = (number, str(host))
    process = summary.processes.get(key)
    if process is None:
        process = summary.processes[key] = Process(pid=key[0], host=key[1])
    return process


def _note_own(summary: Summary, process: Process, record: Record, args: Record) -> None:
    name = str(record.get("name", ""))
    subject, value = args.get("name"), args.get("value")
    if name == "start":
        process.started = True
        process.command = str(args.get("cmd_hash", ""))
        _note_time(summary, record)
    elif name == "end":
        process.ended = True
        process.recovered = bool(args.get("recovered"))
        _note_time(summary, record)
    elif name == "lost":
        lost = args.get("events")
        process.lost += lost if isinstance(lost, int) else 0
    elif name in ("HH", "FH", "SH"):
        summary.strings[str(value)] = str(subject)
    elif name == "PR" and subject == "rank":
        process.rank = str(value)
    elif name == "CM" and subject == "time_metric" and value in TIME_METRICS:
        summary.metric = str(value)
    summary.metadata[name] += 1


def _note_event(summary: Summary, process: Process, record: Record) -> None:
    key = (str(record.get("cat", "")), str(record.get("name", "")))
    row = summary.rows.get(key)
    if row is None:
        row = summary.rows[key] = Row()
    duration = record.get("dur", 0)
    if not isinstance(duration, (int, float)):
        duration = 0
    row.count += 1
    row.total += int(duration)
    row.longest = max(row.longest, int(duration))
    process.events += 1
    tid = record.get("tid")
    if isinstance(tid, int):
        process.threads.add(tid & THREAD_MASK)
    _note_time(summary, record)


def _note_time(summary: Summary, record: Record) -> None:
    start, duration = record.get("ts"), record.get("dur", 0)
    if not isinstance(start, (int, float)) or not isinstance(duration, (int, float)):
        return
    end = int(start + duration)
    summary.first = int(start) if summary.first is None else min(summary.first, int(start))
    summary.last = end if summary.last is None else max(summary.last, end)

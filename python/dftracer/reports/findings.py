"""What is worth a look: rules, each with the numbers of this trace behind it.

A rule looks at the tables and gives the time that it concerns, the time which that is a part of,
and its evidence; or nothing. The table RULES says from which share on it is told, how grave it is,
and what to try. Where a program trains, I/O that nobody waited for is no finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Optional

from dftracer.reports.model import SCHEMAS, Table
from dftracer.reports.text import counted, duration, percent, size

SMALL = 16 << 10  # bytes of a transfer that costs its latency, not its size
MANY = 1000  # calls from which on a habit is one
SYNCS = ("fsync", "fdatasync", "msync", "syncfs", "sync_file_range", "sync")

Row = dict[str, Any]


@dataclass
class Case:
    """What a rule found."""

    title: str
    evidence: str
    concerns: int
    whole: int
    timed: bool = True  # these are nanoseconds

    @property
    def share(self) -> float:
        return self.concerns / self.whole if self.whole > 0 else 0.0


@dataclass
class Facts:
    """The tables, and sums that several rules need."""

    tables: dict[str, list[Row]]
    overview: Row = field(default_factory=dict)
    split: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rows = self.tables["overview"]
        self.overview = rows[0] if rows else {}
        names = [c.name for c in SCHEMAS["epochs"].columns if c.name.endswith("_ns")]
        self.split = {name: sum(e[name] for e in self.tables["epochs"]) for name in names}

    @property
    def processes(self) -> list[Row]:
        return self.tables["processes"]

    @property
    def trains(self) -> bool:
        return self.split["dur_ns"] > 0

    def lifetime(self, wanted: Callable[[Row], Any] = lambda process: True) -> int:
        return sum(
            process["last_ns"] - process["first_ns"]
            for process in self.processes
            if process["first_ns"] is not None and wanted(process)
        )

    @property
    def io_lifetime(self) -> int:
        """How long the processes lived that did I/O."""
        return self.lifetime(lambda process: process["ops"])

    @property
    def exposed(self) -> bool:
        """Whether anybody waited for I/O."""
        if not self.trains:
            return True
        fetch = self.split["fetch_ns"] / self.split["dur_ns"]
        computing = [p for p in self.processes if p["compute_ns"]]
        life = self.lifetime(lambda process: process["compute_ns"])
        unhidden = sum(p["unhidden_io_ns"] for p in computing) / life if life > 0 else 0.0
        return fetch >= 0.05 or unhidden >= 0.05

    def transfers(self, direction: str) -> list[Row]:
        """Of files, by size; what goes through pipes has no class."""
        io = {layer["cat"] for layer in self.tables["layers"] if layer["class"] == "io"}
        return [
            row
            for row in self.tables["sizes"]
            if row["direction"] == direction and row["bytes"] and row["cat"] in io
        ]

    def calls(self, wanted: Callable[[Row], Any]) -> list[Row]:
        return [call for call in self.tables["calls"] if call["class"] == "io" and wanted(call)]


Rule = Callable[[Facts], Optional[Case]]


def _total(rows: list[Row], column: str) -> int:
    return sum(row[column] for row in rows)


def _median(values: list[int]) -> int:
    return sorted(values)[len(values) // 2] if values else 0


def waiting_for_data(facts: Facts) -> Case | None:
    waited, whole = facts.split["fetch_ns"], facts.split["dur_ns"]
    steps = facts.tables["steps"]
    if not waited:
        return None
    waits = [step["fetch_ns"] for step in steps]
    workers = sum(process["role"] == "worker" for process in facts.processes)
    return Case(
        f"Training waits for data {percent(waited / whole)} of its time",
        f"{duration(waited)} of {duration(whole)} in {counted(len(steps), 'step')} passed in "
        f"fetching a batch; half of the steps waited {duration(_median(waits))} or more, the "
        f"longest {duration(max(waits))}; {counted(workers, 'worker process', 'worker processes')}",
        waited,
        whole,
    )


def unhidden_io(facts: Facts) -> Case | None:
    computing = [p for p in facts.processes if p["compute_ns"] and p["io_ns"]]
    unhidden, io = _total(computing, "unhidden_io_ns"), _total(computing, "io_ns")
    whole = facts.lifetime(lambda process: process["compute_ns"])
    if not unhidden:
        return None
    return Case(
        f"I/O that no compute hides takes {percent(unhidden / max(whole, 1))} of the time",
        f"{counted(len(computing), 'computing process', 'computing processes')} spent "
        f"{duration(io)} in I/O calls, {duration(unhidden)} of it "
        f"({percent(unhidden / io)}) while none of their threads computed",
        unhidden,
        whole,
    )


def io_bound(facts: Facts) -> Case | None:
    if facts.trains or facts.overview.get("compute_ns"):
        return None
    busy = _total(facts.processes, "io_ns")
    whole = facts.io_lifetime
    top = max(facts.calls(lambda call: True), key=lambda call: call["total_ns"], default=None)
    if not busy or top is None:
        return None
    return Case(
        f"The program is in I/O calls {percent(busy / max(whole, 1))} of its time",
        f"{duration(busy)} of {duration(whole)}; most of it in {top['name']}: "
        f"{counted(top['count'], 'call')}, {duration(top['total_ns'])}",
        busy,
        whole,
    )


def _small(facts: Facts, direction: str) -> Case | None:
    rows = facts.transfers(direction)
    small = [row for row in rows if row["upper"] <= SMALL]
    count, every = _total(small, "count"), _total(rows, "count")
    if count < MANY or count < every / 2 or not facts.exposed:
        return None
    taken, moved = _total(small, "total_ns"), _total(small, "bytes")
    name = max(small, key=lambda row: row["count"])["name"]
    return Case(
        f"{percent(count / every)} of the {direction}s are small",
        f"{counted(count, direction)} of less than {SMALL >> 10} KiB, {size(moved / count)} on "
        f"average, took {duration(taken)} for {size(moved)}; most of them are {name}",
        taken,
        facts.io_lifetime,
    )


def small_reads(facts: Facts) -> Case | None:
    return _small(facts, "read")


def small_writes(facts: Facts) -> Case | None:
    return _small(facts, "write")


def rereads(facts: Facts) -> Case | None:
    files = [file for file in facts.tables["files"] if file["reread_bytes"]]
    again, read = _total(files, "reread_bytes"), facts.overview.get("read_bytes") or 0
    if again < 1 << 20 or 2 * again < read or not facts.exposed:
        return None
    in_reads = _total(facts.transfers("read"), "total_ns")
    most = max(files, key=lambda file: file["reread_bytes"])
    times = most["read_bytes"] / max(most["read_bytes"] - most["reread_bytes"], 1)
    return Case(
        f"{percent(again / read)} of the bytes read had been read before",
        f"{size(read)} were read of at most {size(read - again)} of data: {size(again)} again, "
        f"from {counted(len(files), 'file')}; {most['fname']} {times:.1f} times over; reads took "
        f"{duration(in_reads)}",
        in_reads * again // read,
        facts.io_lifetime,
    )


def metadata_storm(facts: Facts) -> Case | None:
    meta = facts.calls(lambda call: call["bandwidth"] is None and call["name"] not in SYNCS)
    count = _total(meta, "count")
    every = _total(facts.calls(lambda call: True), "count")
    if count < MANY or not facts.exposed:
        return None
    taken = _total(meta, "total_ns")
    top = sorted(meta, key=lambda call: -call["total_ns"])[:3]
    names = ", ".join(f"{c['name']} {c['count']:,} ({duration(c['total_ns'])})" for c in top)
    return Case(
        f"Calls that move no data take {percent(taken / max(facts.io_lifetime, 1))} of the time",
        f"{counted(count, 'call')} of {every:,} I/O calls open, close, look at or seek in "
        f"{counted(len(facts.tables['files']), 'file')} and took {duration(taken)}: {names}",
        taken,
        facts.io_lifetime,
    )


def random_access(facts: Facts) -> Case | None:
    files = [file for file in facts.tables["files"] if file["random"]]
    jumps = _total(files, "random")
    every = sum(f["sequential"] + f["strided"] + f["random"] for f in facts.tables["files"])
    if jumps < MANY or 2 * jumps < every or not facts.exposed:
        return None
    taken = _total(files, "random_ns")
    most = max(files, key=lambda file: file["random"])
    return Case(
        f"{percent(jumps / every)} of the transfers jump within their file",
        f"{jumps:,} of {every:,} transfers that follow another one begin neither where it ended "
        f"nor at a constant distance; {most['fname']} alone {most['random']:,}, "
        f"{size(most['mean_size'] or 0)} a transfer; they took {duration(taken)}",
        taken,
        facts.io_lifetime,
    )


def failed_calls(facts: Facts) -> Case | None:
    failing = facts.calls(lambda call: call["errors"] >= MANY)
    if not failing or not facts.exposed:
        return None
    worst = max(failing, key=lambda call: call["error_ns"])
    taken = _total(failing, "error_ns")
    return Case(
        f"{counted(_total(failing, 'errors'), 'I/O call')} failed",
        f"{worst['errors']:,} of {worst['count']:,} {worst['name']} failed, at "
        f"{duration(worst['error_ns'] / worst['errors'])} a call; all failures took "
        f"{duration(taken)}",
        taken,
        facts.io_lifetime,
    )


def syncs(facts: Facts) -> Case | None:
    found = facts.calls(lambda call: call["name"] in SYNCS)
    taken = _total(found, "total_ns")
    if not taken:
        return None
    longest = max(found, key=lambda call: call["max_ns"])
    return Case(
        f"Waiting until writes are on disk takes {percent(taken / max(facts.io_lifetime, 1))} "
        "of the time",
        f"{counted(_total(found, 'count'), 'call')} of {longest['name']} and its like took "
        f"{duration(taken)}, the longest {duration(longest['max_ns'])}",
        taken,
        facts.io_lifetime,
    )


def _straggler(facts: Facts, kind: str, measures: tuple[str, ...], least: float) -> Row | None:
    found = [
        row
        for row in facts.tables["stragglers"]
        if row["kind"] == kind and row["measure"] in measures and (row["ratio"] or 0) >= least
    ]
    return max(found, key=lambda row: (row["value"] - row["median"]) * row["count"], default=None)


def slow_worker(facts: Facts) -> Case | None:
    row = _straggler(facts, "worker", ("item time",), 1.5)
    if row is None or not facts.exposed:
        return None
    process = facts.processes[row["process"]]
    return Case(
        f"One worker is {row['ratio']:.1f} times as slow as the others",
        f"process {process['pid']} on {process['host'] or '?'} took {duration(row['value'])} an "
        f"item, the median worker {duration(row['median'])}, for {counted(row['count'], 'item')}",
        (row["value"] - row["median"]) * row["count"],
        process["last_ns"] - process["first_ns"],
    )


def unbalanced_rank(facts: Facts) -> Case | None:
    row = _straggler(facts, "rank", ("step time", "fetch time", "compute time"), 1.2)
    if row is None:
        return None
    process = facts.processes[row["process"]]
    who = f"rank {row['rank']}" if row["rank"] is not None else f"process {process['pid']}"
    steps = [s["dur_ns"] for s in facts.tables["steps"] if s["process"] == row["process"]]
    return Case(
        f"{who[0].upper()}{who[1:]} is slower than the others: {row['measure']} "
        f"{row['ratio']:.2f} times the median",
        f"{duration(row['value'])} a step against {duration(row['median'])}, over "
        f"{counted(row['count'], 'step')}, on {process['host'] or '?'}",
        (row["value"] - row["median"]) * row["count"],
        sum(steps),
    )


def checkpoint_stalls(facts: Facts) -> Case | None:
    layers = [row for row in facts.tables["layers"] if row["class"] == "checkpoint"]
    taken = _total(layers, "union_ns")
    calls = [row for row in facts.tables["calls"] if row["class"] == "checkpoint"]
    if not taken:
        return None
    longest = max(calls, key=lambda call: call["max_ns"])
    return Case(
        "Saving or loading the state stops the program for a while",
        f"{counted(_total(calls, 'count'), 'checkpoint')} took {duration(taken)}; the longest, "
        f"{longest['name']}, {duration(longest['max_ns'])}",
        taken,
        facts.lifetime(lambda process: process["role"] == "main"),
    )


def _part_of_steps(column: str, title: str) -> Rule:
    def rule(facts: Facts) -> Case | None:
        taken, whole = facts.split[column], facts.split["dur_ns"]
        if not taken:
            return None
        steps = facts.tables["steps"]
        most = max(steps, key=lambda step: step[column])
        return Case(
            f"{title} {percent(taken / whole)} of the time of training steps",
            f"{duration(taken)} of {duration(whole)} in {counted(len(steps), 'step')}; "
            f"half of the steps have {duration(_median([s[column] for s in steps]))} or more, "
            f"step {most['step']} of epoch {most['epoch']} {duration(most[column])}",
            taken,
            whole,
        )

    return rule


def uneven_steps(facts: Facts) -> Case | None:
    # The first step of a process compiles, warms up and starts workers.
    later, seen = [], set()
    for step in facts.tables["steps"]:
        if step["process"] in seen:
            later.append(step)
        seen.add(step["process"])
    usual = _median([step["dur_ns"] for step in later])
    slow = [step for step in later if step["dur_ns"] > 3 * usual]
    if len(later) < 10 or not slow:
        return None
    extra = _total(slow, "dur_ns") - usual * len(slow)
    worst = max(slow, key=lambda step: step["dur_ns"])
    return Case(
        f"{counted(len(slow), 'step')} of {len(later):,} took over three times the usual",
        f"the median step takes {duration(usual)}; these took {duration(extra)} more, the "
        f"longest, step {worst['step']} of epoch {worst['epoch']}, {duration(worst['dur_ns'])}",
        extra,
        _total(later, "dur_ns"),
    )


def lost_events(facts: Facts) -> Case | None:
    lost, events = facts.overview.get("lost") or 0, facts.overview.get("events") or 0
    if not lost:
        return None
    who = sum(process["lost"] > 0 for process in facts.processes)
    return Case(
        f"{counted(lost, 'event')} could not be recorded",
        f"{lost:,} lost, {events:,} recorded, in {counted(who, 'process', 'processes')}: "
        "the numbers of this report are too small",
        lost,
        lost + events,
        timed=False,
    )


@dataclass(frozen=True)
class Told:
    """A rule, the shares from which on it is low, medium and high, and what to try."""

    name: str
    rule: Rule
    shares: tuple[float, float, float]
    advice: str


RULES = (
    Told(
        "waiting-for-data",
        waiting_for_data,
        (0.10, 0.15, 0.30),
        "more DataLoader workers (num_workers, prefetch_factor, persistent_workers), cheaper "
        "decoding, or data nearer to the node; the findings about I/O say which",
    ),
    Told(
        "unhidden-io",
        unhidden_io,
        (0.10, 0.15, 0.30),
        "read ahead in workers or threads, so that I/O and compute overlap",
    ),
    Told(
        "io-bound",
        io_bound,
        (0.50, 0.70, 0.90),
        "look at the calls and files below: fewer, larger and sequential transfers, several at a "
        "time, or faster storage",
    ),
    Told(
        "small-reads",
        small_reads,
        (0.03, 0.10, 0.25),
        "read larger pieces: a buffer of 1 MiB or more, or samples packed into larger files "
        "(tar shards, HDF5 chunks, Parquet row groups)",
    ),
    Told(
        "small-writes",
        small_writes,
        (0.03, 0.10, 0.25),
        "write through a larger buffer, or collect records before writing",
    ),
    Told(
        "rereads",
        rereads,
        (0.03, 0.10, 0.25),
        "keep the data in memory or on a local disk after the first pass, if it fits",
    ),
    Told(
        "metadata-storm",
        metadata_storm,
        (0.05, 0.10, 0.25),
        "pack many small files into few large ones, keep files open, list a directory once",
    ),
    Told(
        "random-access",
        random_access,
        (0.03, 0.10, 0.25),
        "sort or group what is read, shuffle shards and buffers and not single records, or "
        "bring the file into memory first",
    ),
    Told(
        "failed-calls",
        failed_calls,
        (0.01, 0.05, 0.20),
        "see which paths are tried: a search path that is too long, or a file that is missing",
    ),
    Told(
        "syncs",
        syncs,
        (0.05, 0.10, 0.25),
        "sync less often, or from a thread of its own",
    ),
    Told(
        "slow-worker",
        slow_worker,
        (0.05, 0.15, 0.30),
        "look at what this worker reads and where it runs: one shard on slow storage, a busy core",
    ),
    Told(
        "unbalanced-rank",
        unbalanced_rank,
        (0.05, 0.15, 0.30),
        "compare its share of the data, its host and its device with those of the others: all "
        "ranks wait for the slowest",
    ),
    Told(
        "checkpoint-stalls",
        checkpoint_stalls,
        (0.05, 0.10, 0.25),
        "checkpoint less often, asynchronously, or each rank its own part to fast storage first",
    ),
    Told(
        "communication",
        _part_of_steps("communication_ns", "Communication takes"),
        (0.25, 0.35, 0.50),
        "larger batches a rank, gradient accumulation, overlap with the backward pass, or look "
        "for the rank that the others wait for",
    ),
    Told(
        "transfers",
        _part_of_steps("transfer_ns", "Copying to and from devices takes"),
        (0.15, 0.25, 0.40),
        "pinned memory and non_blocking copies, or preprocessing on the device",
    ),
    Told(
        "unattributed",
        _part_of_steps("unattributed_ns", "Nothing that is traced takes"),
        (0.30, 2.0, 2.0),
        "annotate what runs between the regions, or profile the Python code there",
    ),
    Told(
        "uneven-steps",
        uneven_steps,
        (0.10, 0.20, 0.40),
        "see in the timeline what these steps do: evaluation, checkpoints, a new shard, a full "
        "page cache",
    ),
    Told(
        "lost-events",
        lost_events,
        (0.0, 0.001, 0.05),
        "free space where the traces are written, or filter what is recorded",
    ),
)
SEVERITIES = ("low", "medium", "high")


def find(tables: dict[str, Table]) -> Table:
    """The findings, gravest first."""
    facts = Facts({name: table.dicts() for name, table in tables.items()})
    rows = sorted(_judged(facts), key=lambda row: (-SEVERITIES.index(row[1]), -row[5], row[0]))
    return Table(SCHEMAS["findings"], rows)


def _judged(facts: Facts) -> Iterator[tuple[str, str, str, str, int | None, float, str]]:
    for told in RULES:
        case = told.rule(facts)
        if case is None or case.share < told.shares[0]:
            continue
        severity = SEVERITIES[sum(case.share >= share for share in told.shares[1:])]
        share, time = min(case.share, 1.0), case.concerns if case.timed else None
        yield told.name, severity, case.title, case.evidence, time, share, told.advice

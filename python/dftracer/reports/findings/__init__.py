"""What is worth a look: rules, each with the numbers of this trace behind it.

A rule looks at the tables and gives the time that it concerns, the time which that is a part of,
and its evidence; or nothing. The table RULES says from which share on it is told, how grave it is,
and what to try. Where a program trains, I/O that nobody waited for is no finding.

Findings about I/O are shares of the time in which processes were busy: a process that only waits
for its children, on a pipe, or sleeps, makes them neither larger nor smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, Optional

from dftracer._format import counted, duration, percent, size
from dftracer.reports.bounds import busy_words
from dftracer.reports.dataloader_workers import Start, at_a_time, starts, waits
from dftracer.reports.model import SCHEMAS, Table
from dftracer.reports.store import SMALL, SYNCS

MANY = 1000  # calls from which on a habit is one
# A call of libc on a stream that takes less than this has only touched its buffer.
BUFFERED = 1_000  # nanoseconds, mean of the small calls of a name
# However large its share, what concerns less time than this is not medium, or not high.
FLOORS = (100_000_000, 500_000_000)
# What concerns less is not told at all: of a rule about I/O, and of any other.
IO_FLOOR = 20_000_000
FLOOR = 1_000_000
# What of a step is the rank's own.
OWN = ("own time", "fetch time", "compute time")
RESTARTED = "started anew for each pass over the data (persistent_workers is off)"
# Of calls: what they do, where they neither move data nor wait for it.
METADATA = ("open", "close", "duplicate", "seek", "map", "metadata")

Row = dict[str, Any]


@dataclass
class Case:
    """What a rule found."""

    title: str
    evidence: str
    concerns: int
    whole: int
    base: str  # what `whole` is, in words: "of the 5.03 s that the job took"
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
    starts: list[Start] = field(default_factory=list)

    def __post_init__(self) -> None:
        rows = self.tables["overview"]
        self.overview = rows[0] if rows else {}
        names = [c.name for c in SCHEMAS["steps"].columns if c.name.endswith("_ns")]
        self.split = {name: _total(self.tables["steps"], name) for name in names}
        self.starts = starts(self.tables["processes"], self.tables["steps"])

    @property
    def processes(self) -> list[Row]:
        return self.tables["processes"]

    @property
    def trains(self) -> bool:
        return self.split["dur_ns"] > 0

    def lifetime(self, wanted: Callable[[Row], Any] = lambda process: True) -> int:
        return sum(
            process["life_ns"]
            for process in self.processes
            if process["life_ns"] is not None and wanted(process)
        )

    @property
    def busy(self) -> int:
        """How long processes neither waited for others nor slept."""
        return self.overview.get("busy_ns") or 0

    @property
    def of_busy(self) -> str:
        return busy_words(self.overview)

    def wall(self, total: int) -> int:
        """Summed durations of I/O calls as a part of the time in which any was open.

        Threads that do I/O at once, and calls inside of calls, have a sum that no clock has seen.
        """
        io = self.overview.get("io_ns") or 0
        every = _total(self.calls(lambda call: True), "total_ns")
        return total if every <= io else total * io // every

    def place(self, kinds: Collection[str], total: int) -> str:
        """Where calls of these kinds took their time: a file, or else a directory."""
        rows = [row for row in self.tables["costs"] if row["kind"] in kinds]
        files = [row for row in rows if row["place"] == "file"]
        folders = [row for row in rows if row["place"] == "directory"]
        file = max(files, key=lambda row: row["total_ns"], default=None)
        folder = max(folders, key=lambda row: row["total_ns"], default=None)
        if file is None:
            return ""
        if folder is None or folder["files"] == 1 or 2 * file["total_ns"] >= total:
            return f"; most on {_path(file['path'])}: {_cost(file)}"
        return (
            f"; most in {_path(folder['path'])}: {_cost(folder)} on "
            f"{counted(folder['files'], 'file')}, {_path(file['path'])} alone {_cost(file)}"
        )

    @property
    def exposed(self) -> bool:
        """Whether anybody waited for I/O."""
        if not self.trains:
            return True
        waited = self.split["fetch_ns"] - sum(waits(self.starts).values())
        fetch = waited / self.split["dur_ns"]
        computing = [p for p in self.processes if p["compute_ns"]]
        life = self.lifetime(lambda process: process["compute_ns"])
        unhidden = sum(p["unhidden_io_ns"] for p in computing) / life if life > 0 else 0.0
        return fetch >= 0.05 or unhidden >= 0.05

    def top_file(self, kind: str) -> str | None:
        rows = (r for r in self.tables["costs"] if r["kind"] == kind and r["place"] == "file")
        most = max(rows, key=lambda row: row["total_ns"], default=None)
        return None if most is None else most["path"]

    def transfers(self, direction: str) -> list[Row]:
        """Of files, by size; what goes through pipes has no class."""
        io = {layer["cat"] for layer in self.tables["layers"] if layer["class"] == "io"}
        return [
            row
            for row in self.tables["sizes"]
            if row["direction"] == direction and row["bytes"] and row["cat"] in io
        ]

    def buffered(self, direction: str) -> set[str]:
        """Calls of libc whose small transfers stay in a buffer, which then is moved at once."""
        sums: dict[str, list[int]] = {}
        for row in self.transfers(direction):
            if row["cat"] == "STDIO" and row["upper"] <= SMALL:
                of = sums.setdefault(row["name"], [0, 0])
                of[0] += row["total_ns"]
                of[1] += row["count"]
        return {name for name, (total, count) in sums.items() if total < BUFFERED * count}

    def calls(self, wanted: Callable[[Row], Any]) -> list[Row]:
        return [call for call in self.tables["calls"] if call["class"] == "io" and wanted(call)]


Rule = Callable[[Facts], Optional[Case]]


def _total(rows: list[Row], column: str) -> int:
    return sum(row[column] for row in rows)


def _path(text: str) -> str:
    """A name may hold anything, and a terminal must not act on it."""
    clean = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return clean if len(clean) <= 120 else f"…{clean[-119:]}"


def _cost(row: Row) -> str:
    return f"{counted(row['calls'], 'call')}, {duration(row['total_ns'])}"


def _median(values: list[int]) -> int:
    return sorted(values)[len(values) // 2] if values else 0


def waiting_for_data(facts: Facts) -> Case | None:
    started = waits(facts.starts)
    steps = facts.tables["steps"]
    waited_each = [step["fetch_ns"] - started.get(_key(step), 0) for step in steps]
    waited, whole = sum(waited_each), facts.split["dur_ns"]
    if not waited:
        return None
    base = f"of the {duration(whole)} that its steps took"
    return Case(
        f"Training waits for data {percent(waited / whole)} {base}",
        f"{duration(waited)} in {counted(len(steps), 'step')} passed in fetching a batch; half of "
        f"the steps waited {duration(_median(waited_each))} or more, the longest "
        f"{duration(max(waited_each))}{_first(steps, waited_each)}; {_workers(facts)}",
        waited,
        whole,
        base=base,
    )


def _first(steps: list[Row], waited: list[int]) -> str:
    """If the first steps of epochs wait most: for queues, or for workers that record nothing."""
    first: dict[tuple[int, int | None], int] = {}
    for step, each in zip(steps, waited):
        first.setdefault((step["process"], step["epoch"]), each)
    total = sum(first.values())
    if len(first) == len(steps) or 2 * total < sum(waited):
        return ""
    return f"; {duration(total)} of it in the first step of an epoch"


def _key(step: Row) -> tuple[int, int]:
    return step["process"], step["start_ns"]


def _workers(facts: Facts) -> str:
    every = sum(process["role"] == "worker" for process in facts.processes)
    text = counted(every, "worker process", "worker processes")
    most = at_a_time(facts.processes)
    if most < every:
        text += f", {most:,} at a time"
    if _restarts(facts):
        text += f", {RESTARTED}"
    waited = sum(waits(facts.starts).values())
    if waited:
        text += f"; the wait until they had started, {duration(waited)}, is not counted"
    return text


def _restarts(facts: Facts) -> bool:
    return len(facts.starts) > len({start.parent for start in facts.starts})


def worker_start(facts: Facts) -> Case | None:
    waited, whole = sum(waits(facts.starts).values()), facts.split["dur_ns"]
    if not waited:
        return None
    longest = max(start.waited_ns for start in facts.starts)
    most = max(start.workers for start in facts.starts)
    base = f"of the {duration(whole)} that training steps took"
    evidence = (
        f"{duration(waited)} in {counted(len(facts.tables['steps']), 'step')} passed before the "
        f"first item of a new worker; {counted(len(facts.starts), 'start')} of "
        f"{counted(most, 'worker')}, the longest wait {duration(longest)}"
    )
    if _restarts(facts):
        evidence += f"; workers were {RESTARTED}"
    return Case(
        f"Waiting for DataLoader workers to start takes {percent(waited / whole)} {base}",
        evidence,
        waited,
        whole,
        base,
    )


def unhidden_io(facts: Facts) -> Case | None:
    computing = [p for p in facts.processes if p["compute_ns"] and p["io_ns"]]
    unhidden, io = _total(computing, "unhidden_io_ns"), _total(computing, "io_ns")
    whole = facts.lifetime(lambda process: process["compute_ns"])
    if not unhidden:
        return None
    return Case(
        f"I/O that no compute hides takes {percent(unhidden / max(whole, 1))} of the time of "
        "computing processes",
        f"{counted(len(computing), 'computing process', 'computing processes')} spent "
        f"{duration(io)} in I/O calls, {duration(unhidden)} of it "
        f"({percent(unhidden / io)}) while none of their threads computed",
        unhidden,
        whole,
        base=f"of the {duration(whole)} that computing processes took",
    )


def io_bound(facts: Facts) -> Case | None:
    if facts.trains or facts.overview.get("compute_ns"):
        return None
    busy = _total(facts.processes, "io_ns")
    top = max(facts.calls(lambda call: True), key=lambda call: call["total_ns"], default=None)
    if not busy or top is None:
        return None
    most = "".join(
        f"; costliest file {_path(file['fname'])}: {duration(file['total_ns'])}"
        for file in facts.tables["files"][:1]
    )
    return Case(
        f"I/O calls take {percent(min(busy / max(facts.busy, 1), 1))} {facts.of_busy}",
        f"{duration(busy)}, most of it in {top['name']}: "
        f"{counted(top['count'], 'call')}, {duration(top['total_ns'])}{most}",
        busy,
        facts.busy,
        base=facts.of_busy,
    )


def _small(facts: Facts, direction: str) -> Case | None:
    buffered = facts.buffered(direction)
    rows = [
        row
        for row in facts.transfers(direction)
        if row["cat"] != "STDIO" or row["upper"] > SMALL or row["name"] not in buffered
    ]
    small = [row for row in rows if row["upper"] <= SMALL]
    count, every = _total(small, "count"), _total(rows, "count")
    if count < MANY or count < every / 2 or not facts.exposed:
        return None
    taken, moved = _total(small, "total_ns"), _total(small, "bytes")
    name = max(small, key=lambda row: row["count"])["name"]
    kinds = [f"small {direction}"]
    if any(row["cat"] == "STDIO" for row in small):
        kinds.append(f"small STDIO {direction}")
    return Case(
        f"{percent(count / every)} of the {direction}s are small",
        f"{counted(count, direction)} of less than {SMALL >> 10} KiB, {size(moved / count)} on "
        f"average, took {duration(taken)} for {size(moved)}; most of them are {name}"
        f"{facts.place(kinds, taken)}",
        facts.wall(taken),
        facts.busy,
        base=facts.of_busy,
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
        f"from {counted(len(files), 'file')}; {_path(most['fname'])} {times:.1f} times over; reads "
        f"took {duration(in_reads)}",
        facts.wall(in_reads * again // read),
        facts.busy,
        base=facts.of_busy,
    )


def metadata_storm(facts: Facts) -> Case | None:
    meta = facts.calls(lambda call: call["role"] in METADATA)
    count = _total(meta, "count")
    every = _total(facts.calls(lambda call: True), "count")
    if count < MANY or not facts.exposed:
        return None
    taken = _total(meta, "total_ns")
    top = sorted(meta, key=lambda call: -call["total_ns"])[:3]
    names = ", ".join(f"{c['name']} {c['count']:,} ({duration(c['total_ns'])})" for c in top)
    share = facts.wall(taken) / max(facts.busy, 1)
    return Case(
        f"Calls that move no data take {percent(min(share, 1))} {facts.of_busy}",
        f"{counted(count, 'call')} of {every:,} I/O calls open, close, look at or seek in "
        f"{counted(len(facts.tables['files']), 'file')} and took {duration(taken)}: {names}"
        f"{facts.place(['metadata'], taken)}",
        facts.wall(taken),
        facts.busy,
        base=facts.of_busy,
    )


def random_access(facts: Facts) -> Case | None:
    # Of a file that was mostly mapped, the calls say little.
    told = [file for file in facts.tables["files"] if file["pattern"] != "mapped"]
    files = [file for file in told if file["random"]]
    jumps = _total(files, "random")
    every = sum(file["sequential"] + file["strided"] + file["random"] for file in told)
    if jumps < MANY or 2 * jumps < every or not facts.exposed:
        return None
    taken = _total(files, "random_ns")
    most = max(files, key=lambda file: file["random"])
    return Case(
        f"{percent(jumps / every)} of the transfers jump within their file",
        f"{jumps:,} of {every:,} transfers that follow another one begin neither where it ended "
        f"nor at a constant distance; {_path(most['fname'])} alone {most['random']:,}, "
        f"{size(most['mean_size'] or 0)} per transfer; they took {duration(taken)}",
        facts.wall(taken),
        facts.busy,
        base=facts.of_busy,
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
        f"{duration(worst['error_ns'] / worst['errors'])} per call; all failures took "
        f"{duration(taken)}{facts.place(['failed'], taken)}",
        facts.wall(taken),
        facts.busy,
        base=facts.of_busy,
    )


def syncs(facts: Facts) -> Case | None:
    found = facts.calls(lambda call: call["name"] in SYNCS)
    taken = _total(found, "total_ns")
    if not taken:
        return None
    longest = max(found, key=lambda call: call["max_ns"])
    share = facts.wall(taken) / max(facts.busy, 1)
    return Case(
        f"Waiting until writes are on disk takes {percent(min(share, 1))} {facts.of_busy}",
        f"{counted(_total(found, 'count'), 'call')} of {longest['name']} and its like took "
        f"{duration(taken)}, the longest {duration(longest['max_ns'])}"
        f"{facts.place(['sync'], taken)}",
        facts.wall(taken),
        facts.busy,
        base=facts.of_busy,
    )


def lock_waits(facts: Facts) -> Case | None:
    calls = [call for call in facts.tables["calls"] if call["cat"] in ("POSIX lock", "STDIO lock")]
    taken = facts.overview.get("lock_ns") or 0
    if not taken or not calls:
        return None
    longest = max(calls, key=lambda call: call["max_ns"])
    every = _total(calls, "total_ns")
    users = [file["processes"] for file in facts.tables["files"]
             if file["fname"] == facts.top_file("lock")]  # fmt: skip
    shared = f", which {counted(users[0], 'process uses', 'processes use')}" if users else ""
    return Case(
        f"Waiting for locks takes {percent(min(taken / max(facts.busy, 1), 1))} {facts.of_busy}",
        f"{counted(_total(calls, 'count'), 'call')} of {longest['name']} and its like took "
        f"{duration(every)}, the longest {duration(longest['max_ns'])}"
        f"{facts.place(['lock'], every)}{shared}",
        taken,
        facts.busy,
        base=facts.of_busy,
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
        process["life_ns"],
        base=f"of the {duration(process['life_ns'])} that the worker took",
    )


def unbalanced_rank(facts: Facts) -> Case | None:
    # The step time of all ranks is that of the slowest, and a rank that waits does so in
    # collectives or in its backward pass. So a rank is slow if what remains of its steps is long.
    own = {
        row["process"]: row["value"] - row["median"]
        for row in facts.tables["stragglers"]
        if row["kind"] == "rank" and row["measure"] == "own time"
    }
    best: tuple[int, Row] | None = None
    for row in facts.tables["stragglers"]:
        if row["kind"] != "rank" or row["measure"] not in OWN or (row["ratio"] or 0) < 1.2:
            continue
        more = min(row["value"] - row["median"], own[row["process"]])
        # A part that explains the whole says more than the whole.
        weight = more if row["measure"] == "own time" else more * 5 // 4
        if more > 0 and (best is None or weight > best[0]):
            best = weight, row
    if best is None:
        return None
    row = best[1]
    more = min(row["value"] - row["median"], own[row["process"]])
    process = facts.processes[row["process"]]
    who = f"rank {row['rank']}" if row["rank"] is not None else f"process {process['pid']}"
    steps = [s["dur_ns"] for s in facts.tables["steps"] if s["process"] == row["process"]]
    return Case(
        f"{who[0].upper()}{who[1:]} is slower than the others: {row['measure']} "
        f"{row['ratio']:.2f} times the median",
        f"{duration(row['value'])} a step against {duration(row['median'])}, over "
        f"{counted(row['count'], 'step')}, on {process['host'] or '?'}; communication and backward "
        "passes, in which ranks wait for each other, are not counted",
        more * row["count"],
        sum(steps),
        base=f"of the {duration(sum(steps))} that its steps took",
    )


def checkpoint_stalls(facts: Facts) -> Case | None:
    layers = [row for row in facts.tables["layers"] if row["class"] == "checkpoint"]
    taken = _total(layers, "union_ns")
    calls = [row for row in facts.tables["calls"] if row["class"] == "checkpoint"]
    if not taken:
        return None
    longest = max(calls, key=lambda call: call["max_ns"])
    whole = facts.lifetime(lambda process: process["role"] == "main")
    return Case(
        "Saving or loading the state stops the program for a while",
        f"{counted(_total(calls, 'count'), 'checkpoint')} took {duration(taken)}; the longest, "
        f"{longest['name']}, {duration(longest['max_ns'])}",
        taken,
        whole,
        base=f"of the {duration(whole)} that main processes took",
    )


def _part_of_steps(column: str, title: str) -> Rule:
    def rule(facts: Facts) -> Case | None:
        taken, whole = facts.split[column], facts.split["dur_ns"]
        if not taken:
            return None
        steps = facts.tables["steps"]
        most = max(steps, key=lambda step: step[column])
        base = f"of the {duration(whole)} that training steps took"
        return Case(
            f"{title} {percent(taken / whole)} {base}",
            f"{duration(taken)} in {counted(len(steps), 'step')}; half of the steps have "
            f"{duration(_median([s[column] for s in steps]))} or more, "
            f"step {most['step']} of epoch {most['epoch']} {duration(most[column])}",
            taken,
            whole,
            base=base,
        )

    return rule


def uneven_steps(facts: Facts) -> Case | None:
    # The first step of a process compiles and warms up; starting workers is a rule of its own.
    later, seen, started = [], set(), waits(facts.starts)
    for step in facts.tables["steps"]:
        if step["process"] in seen:
            later.append({**step, "dur_ns": step["dur_ns"] - started.get(_key(step), 0)})
        seen.add(step["process"])
    usual = _median([step["dur_ns"] for step in later])
    slow = [step for step in later if step["dur_ns"] > 3 * usual]
    if len(later) < 10 or not slow:
        return None
    extra, whole = _total(slow, "dur_ns") - usual * len(slow), _total(later, "dur_ns")
    worst = max(slow, key=lambda step: step["dur_ns"])
    return Case(
        f"{counted(len(slow), 'step')} of {len(later):,} took over three times the usual",
        f"the median step takes {duration(usual)}; these took {duration(extra)} more, the "
        f"longest, step {worst['step']} of epoch {worst['epoch']}, {duration(worst['dur_ns'])}",
        extra,
        whole,
        base=f"of the {duration(whole)} that steps but the first took",
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
        base="of all events",
    )


@dataclass(frozen=True)
class Told:
    """A rule, the shares from which on it is low, medium and high, and what to try."""

    name: str
    rule: Rule
    shares: tuple[float, float, float]
    advice: str
    floor: int = FLOOR  # nanoseconds that it must concern


RULES = (
    Told(
        "waiting-for-data",
        waiting_for_data,
        (0.10, 0.15, 0.30),
        "more DataLoader workers (num_workers, prefetch_factor, persistent_workers), cheaper "
        "decoding, or data nearer to the node; the findings about I/O say which",
    ),
    Told(
        "worker-start",
        worker_start,
        (0.05, 0.15, 0.30),
        "fork or forkserver instead of spawn, fewer imports in the main module, a smaller dataset "
        "object, or fewer workers; persistent_workers=True keeps them from one epoch to the next",
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
        "fewer, larger and sequential transfers, several at a time, or faster storage; the tables "
        "of calls and files tell which cost most",
        IO_FLOOR,
    ),
    Told(
        "small-reads",
        small_reads,
        (0.03, 0.10, 0.25),
        "read larger pieces: a buffer of 1 MiB or more, or samples packed into larger files "
        "(tar shards, HDF5 chunks, Parquet row groups)",
        IO_FLOOR,
    ),
    Told(
        "small-writes",
        small_writes,
        (0.03, 0.10, 0.25),
        "write through a larger buffer, or collect records before writing",
        IO_FLOOR,
    ),
    Told(
        "rereads",
        rereads,
        (0.03, 0.10, 0.25),
        "keep the data in memory or on a local disk after the first pass, if it fits",
        IO_FLOOR,
    ),
    Told(
        "metadata-storm",
        metadata_storm,
        (0.05, 0.10, 0.25),
        "pack many small files into few large ones, keep files open, list a directory once",
        IO_FLOOR,
    ),
    Told(
        "random-access",
        random_access,
        (0.03, 0.10, 0.25),
        "sort or group what is read, shuffle shards and buffers and not single records, or "
        "bring the file into memory first",
        IO_FLOOR,
    ),
    Told(
        "failed-calls",
        failed_calls,
        (0.01, 0.05, 0.20),
        "shorten the search path that is tried, or create the file that is missing",
        IO_FLOOR,
    ),
    Told(
        "syncs",
        syncs,
        (0.05, 0.10, 0.25),
        "sync less often, or from a thread of its own",
        IO_FLOOR,
    ),
    Told(
        "lock-waits",
        lock_waits,
        (0.05, 0.10, 0.25),
        "hold the lock for a shorter time, lock parts of the file or a file per process, or let "
        "one process write for all",
        IO_FLOOR,
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
        "see in the timeline what these steps do: checkpoints, logging, a new shard, a full page "
        "cache",
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


def _judged(facts: Facts) -> Iterator[tuple[str, str, str, str, int | None, float, str, str]]:
    for told in RULES:
        case = told.rule(facts)
        if case is None or case.share < told.shares[0]:
            continue
        if case.timed and case.concerns < told.floor:
            continue
        grave = sum(case.share >= share for share in told.shares[1:])
        if case.timed:
            grave = min(grave, sum(case.concerns >= floor for floor in FLOORS))
        share, time = min(case.share, 1.0), case.concerns if case.timed else None
        base = case.base
        evidence = case.evidence
        if base not in case.title and case.timed:
            evidence += f". That is {duration(case.concerns)}, {percent(share)} {base}"
        yield told.name, SEVERITIES[grave], case.title, evidence, time, share, told.advice, base

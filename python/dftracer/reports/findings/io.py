"""Rules about I/O calls. Their shares are of the time in which processes were busy."""

from __future__ import annotations

from dftracer._format import counted, duration, percent, rate, size
from dftracer.reports.findings.facts import (
    IO_FLOOR,
    Case,
    Facts,
    Rule,
    shown_path,
    sum_of,
)
from dftracer.reports.store import SMALL, SYNCS

MANY = 1000  # calls: fewer are not a pattern
# Storage is slow if transfers of at least SMALL bytes on average move less than this per second.
# Files of which less was moved than LEAST_MOVED do not tell.
SLOW_RATE = 50e6
LEAST_MOVED = 1 << 20
# Small transfers concern at most so many times what they would take at the median of their call.
STALL_TIMES = 4
# Major page faults on a file: fewer are not a pattern.
FEW_FAULTS = 20
# What calls do that neither move data nor wait for it.
METADATA = ("open", "close", "duplicate", "seek", "map", "metadata")


def unhidden_io(facts: Facts) -> Case | None:
    computing = [p for p in facts.processes if p["compute_ns"] and p["io_ns"]]
    unhidden, io = sum_of(computing, "unhidden_io_ns"), sum_of(computing, "io_ns")
    # Batches that a process makes for itself are waits for data, which have a rule of their own.
    made = [row for row in facts.tables["batches"] if row["worker_process"] == row["process"]]
    waited = sum(row["waited_reading_ns"] or 0 for row in made)
    unhidden, io = max(unhidden - waited, 0), max(io - waited, 0)
    whole = facts.lifetime(lambda process: process["compute_ns"])
    if not unhidden:
        return None
    aside = ", batches aside," if waited else ""
    files = tuple(file["fname"] for file in facts.tables["files"] if "/" in file["fname"])
    most = f"; the costliest file of the run is {shown_path(files[0])}" if files else ""
    return Case(
        f"I/O that is not hidden by compute takes {percent(unhidden / max(whole, 1))} of the time "
        "of computing processes",
        f"{counted(len(computing), 'computing process', 'computing processes')} spent "
        f"{duration(io)} in I/O calls{aside or ','} {duration(unhidden)} of it "
        f"({percent(unhidden / io)}) while none of their threads computed{most}",
        unhidden,
        whole,
        base=f"of the {duration(whole)} that computing processes took",
        files=files,
    )


def io_bound(facts: Facts) -> Case | None:
    if facts.trains or facts.overview.get("compute_ns"):
        return None
    busy = sum_of(facts.processes, "io_ns")
    top = max(facts.calls(lambda call: True), key=lambda call: call["total_ns"], default=None)
    if not busy or top is None:
        return None
    most = "".join(
        f"; costliest file {shown_path(file['fname'])}: {duration(file['total_ns'])}"
        for file in facts.tables["files"][:1]
    )
    return Case(
        f"I/O calls take {percent(min(busy / max(facts.busy, 1), 1))} {facts.of_busy}",
        f"{duration(busy)}, most of it in {top['name']}: "
        f"{counted(top['count'], 'call')}, {duration(top['total_ns'])}{most}",
        busy,
        facts.busy,
        base=facts.of_busy,
        files=tuple(file["fname"] for file in facts.tables["files"] if "/" in file["fname"]),
    )


def slow_storage(facts: Facts) -> Case | None:
    """Transfers that are large enough, and slow: of any program, or what one that trains writes."""
    slow = []
    for file in facts.tables["files"]:
        moved = (file["read_bytes"] or 0) + (file["write_bytes"] or 0)
        if moved < LEAST_MOVED or (file["mean_size"] or 0) < SMALL or file["pattern"] == "mapped":
            continue
        if file["pattern"] == "none" or (facts.trains and not file["write_bytes"]):
            continue
        spent = file["total_ns"] - _aside(facts, file["fname"])
        if spent > 0 and moved * 1e9 / spent < SLOW_RATE:
            slow.append({**file, "spent_ns": spent, "moved": moved})
    if not slow or not facts.exposed:
        return None
    taken, moved = sum_of(slow, "spent_ns"), sum_of(slow, "moved")
    slow.sort(key=lambda file: (-file["spent_ns"], file["fname"]))
    most = slow[0]
    way = "writes" if (most["write_bytes"] or 0) > (most["read_bytes"] or 0) else "reads"
    time, whole, base = facts.wall(taken), facts.busy, facts.of_busy
    if facts.trains:
        # Of the steps alone: a long start-up must not hide what delays each of them.
        time, whole = min(time, facts.split["loose_io_ns"]), facts.split["dur_ns"]
        base = f"of the {duration(whole)} that training steps took"
    return Case(
        f"{way.capitalize()} of {counted(len(slow), 'file')} run at {rate(moved * 1e9 / taken)}",
        f"{size(moved)} took {duration(taken)}, {size(most['mean_size'])} per call; most on "
        f"{shown_path(most['fname'])}: {duration(most['spent_ns'])} at "
        f"{rate(most['moved'] * 1e9 / most['spent_ns'])}",
        time,
        whole,
        base=base,
        files=tuple(file["fname"] for file in slow),
        estimated=facts.scaled(),
    )


def _aside(facts: Facts, path: str) -> int:
    """Time of calls on a file that move no data, as far as it is among the costliest."""
    kinds = ("metadata", "sync", "lock")
    return sum(
        row["total_ns"]
        for row in facts.tables["costs"]
        if row["place"] == "file" and row["path"] == path and row["kind"] in kinds
    )


def cold_page_faults(facts: Facts) -> Case | None:
    """Pages of mapped files that were read from storage one by one."""
    cold = [row for row in facts.tables["mappings"] if row["major_faults"] >= FEW_FAULTS]
    if not cold or not facts.exposed:
        return None
    waited = sum_of(cold, "major_ns")
    faults = sum_of(cold, "major_faults")
    most = max(cold, key=lambda row: (row["major_ns"], row["fname"]))
    touched = most["touched_bytes"]
    told = ""
    if touched is not None and most["ranges"]:
        told = (
            f", {size(touched)} of {size(most['mapped_bytes'])} in "
            f"{counted(most['ranges'], 'piece')}"
        )
    lines = [row for row in facts.tables["lines"] if "mmap" in (row["callee"] or "")]
    by = f"; mapped by {shown_path(lines[0]['place'])}" if lines else ""
    return Case(
        f"Page faults on mapped files wait for storage {counted(faults, 'time')}",
        f"{duration(waited)} in {counted(faults, 'major page fault')}, "
        f"{duration(waited / faults)} each; most on {shown_path(most['fname'])}: "
        f"{duration(most['major_ns'])}{told}{by}",
        waited,
        facts.busy,
        base=facts.of_busy,
        files=tuple(row["fname"] for row in cold),
    )


def reopened_files(facts: Facts) -> Case | None:
    files = [file for file in facts.tables["files"] if file["opens"] >= MANY]
    if not files or not facts.exposed:
        return None
    taken = sum(_metadata_time(facts, file["fname"]) for file in files)
    most = max(files, key=lambda file: (_metadata_time(facts, file["fname"]), file["opens"]))
    return Case(
        f"{counted(len(files), 'file is', 'files are')} opened again and again",
        f"{shown_path(most['fname'])} was opened {most['opens']:,} times by "
        f"{counted(most['processes'] or 0, 'process', 'processes')}; opening, closing and looking "
        f"at {counted(len(files), 'such file')} took {duration(taken)}",
        facts.wall(taken),
        facts.busy,
        base=facts.of_busy,
        files=tuple(file["fname"] for file in files),
        estimated=facts.scaled(),
    )


def _metadata_time(facts: Facts, path: str) -> int:
    """Of calls that opened, closed or looked at a file, and did not fail."""
    rows = [r for r in facts.tables["costs"] if r["place"] == "file" and r["path"] == path]
    times: dict[str, int] = {row["kind"]: row["total_ns"] for row in rows}
    return max(times.get("metadata", 0) - times.get("failed", 0), 0)


def _small(facts: Facts, direction: str) -> Case | None:
    buffered = facts.buffered(direction)
    rows = [
        row
        for row in facts.transfers(direction)
        if row["cat"] != "STDIO" or row["upper"] > SMALL or row["name"] not in buffered
    ]
    small = [row for row in rows if row["upper"] <= SMALL]
    count, every = sum_of(small, "count"), sum_of(rows, "count")
    if count < MANY or count < every / 2 or not facts.exposed:
        return None
    taken, moved = sum_of(small, "total_ns"), sum_of(small, "bytes")
    # A few calls that take long wait for storage, however much they move.
    usual = STALL_TIMES * sum(row["count"] * facts.median_of(row) for row in small)
    name = max(small, key=lambda row: row["count"])["name"]
    kinds = [f"small {direction}"]
    if any(row["cat"] == "STDIO" for row in small):
        kinds.append(f"small STDIO {direction}")
    return Case(
        f"{percent(count / every)} of the {direction}s are small",
        f"{counted(count, direction)} of less than {SMALL >> 10} KiB, {size(moved / count)} on "
        f"average, took {duration(taken)} for {size(moved)}; most of them are {name}"
        f"{facts.place(kinds, taken)}",
        facts.wall(min(taken, usual)),
        facts.busy,
        base=facts.of_busy,
        files=facts.places(kinds),
        estimated=facts.scaled() or usual < taken,
    )


def small_reads(facts: Facts) -> Case | None:
    return _small(facts, "read")


def small_writes(facts: Facts) -> Case | None:
    return _small(facts, "write")


def rereads(facts: Facts) -> Case | None:
    files = [file for file in facts.tables["files"] if file["reread_bytes"]]
    again, read = sum_of(files, "reread_bytes"), facts.overview.get("read_bytes") or 0
    if again < 1 << 20 or 2 * again < read or not facts.exposed:
        return None
    in_reads = sum_of(facts.transfers("read"), "total_ns")
    most = max(files, key=lambda file: file["reread_bytes"])
    times = most["read_bytes"] / max(most["read_bytes"] - most["reread_bytes"], 1)
    return Case(
        f"{percent(again / read)} of the bytes read had been read before",
        f"{size(read)} were read from at most {size(read - again)} of data, {size(again)} of it "
        f"again, in {counted(len(files), 'file')}; {shown_path(most['fname'])} was read "
        f"{times:.1f} times; reads took {duration(in_reads)}",
        facts.wall(in_reads * again // read),
        facts.busy,
        base=facts.of_busy,
        files=tuple(f["fname"] for f in sorted(files, key=lambda f: -f["reread_bytes"])),
        estimated=True,  # in proportion to bytes
    )


def metadata_storm(facts: Facts) -> Case | None:
    meta = facts.calls(lambda call: call["role"] in METADATA)
    count = sum_of(meta, "count")
    every = sum_of(facts.calls(lambda call: True), "count")
    if count < MANY or not facts.exposed:
        return None
    taken = sum_of(meta, "total_ns")
    again = reopened_files(facts)
    if again is not None and 2 * again.concerns >= facts.wall(taken):
        return None  # the same calls, with a better name
    top = sorted(meta, key=lambda call: -call["total_ns"])[:3]
    names = ", ".join(f"{c['name']} {c['count']:,} ({duration(c['total_ns'])})" for c in top)
    share = facts.wall(taken) / max(facts.busy, 1)
    return Case(
        f"Calls that move no data take {percent(min(share, 1))} {facts.of_busy}",
        f"{count:,} of {every:,} I/O calls open, close, stat or seek in "
        f"{counted(len(facts.tables['files']), 'file')} and took {duration(taken)}: {names}"
        f"{facts.place(['metadata'], taken)}",
        facts.wall(taken),
        facts.busy,
        base=facts.of_busy,
        files=facts.places(["metadata"]),
        estimated=facts.scaled(),
    )


def random_access(facts: Facts) -> Case | None:
    # The calls on a file that was mostly mapped say little.
    known = [file for file in facts.tables["files"] if file["pattern"] != "mapped"]
    files = [file for file in known if file["random"]]
    jumps = sum_of(files, "random")
    every = sum(file["sequential"] + file["strided"] + file["random"] for file in known)
    if jumps < MANY or 2 * jumps < every or not facts.exposed:
        return None
    taken = sum_of(files, "random_ns")
    most = max(files, key=lambda file: file["random"])
    return Case(
        f"{percent(jumps / every)} of the transfers are random",
        f"{jumps:,} of {every:,} transfers begin neither where the previous one ended nor at a "
        f"constant distance; {shown_path(most['fname'])} alone {most['random']:,}, "
        f"{size(most['mean_size'] or 0)} per transfer; they took {duration(taken)}",
        facts.wall(taken),
        facts.busy,
        base=facts.of_busy,
        files=tuple(f["fname"] for f in sorted(files, key=lambda f: -f["random_ns"])),
        estimated=facts.scaled(),
    )


def failed_calls(facts: Facts) -> Case | None:
    failing = facts.calls(lambda call: call["errors"] >= MANY)
    if not failing or not facts.exposed:
        return None
    worst = max(failing, key=lambda call: call["error_ns"])
    taken = sum_of(failing, "error_ns")
    return Case(
        f"{counted(sum_of(failing, 'errors'), 'I/O call')} failed",
        f"{worst['errors']:,} of {worst['count']:,} {worst['name']} failed, at "
        f"{duration(worst['error_ns'] / worst['errors'])} per call; all failures took "
        f"{duration(taken)}{facts.place(['failed'], taken)}",
        facts.wall(taken),
        facts.busy,
        base=facts.of_busy,
        files=facts.places(["failed"]),
        estimated=facts.scaled(),
    )


def syncs(facts: Facts) -> Case | None:
    found = facts.calls(lambda call: call["name"] in SYNCS)
    taken = sum_of(found, "total_ns")
    if not taken:
        return None
    longest = max(found, key=lambda call: call["max_ns"])
    share = facts.wall(taken) / max(facts.busy, 1)
    return Case(
        f"Syncing writes to disk takes {percent(min(share, 1))} {facts.of_busy}",
        f"{counted(sum_of(found, 'count'), 'call')} of {longest['name']} and similar took "
        f"{duration(taken)}, the longest {duration(longest['max_ns'])}"
        f"{facts.place(['sync'], taken)}",
        facts.wall(taken),
        facts.busy,
        base=facts.of_busy,
        files=facts.places(["sync"]),
        estimated=facts.scaled(),
    )


def lock_waits(facts: Facts) -> Case | None:
    calls = [call for call in facts.tables["calls"] if call["cat"] in ("POSIX lock", "STDIO lock")]
    taken = facts.overview.get("lock_ns") or 0
    if not taken or not calls:
        return None
    longest = max(calls, key=lambda call: call["max_ns"])
    every = sum_of(calls, "total_ns")
    users = [file["processes"] for file in facts.tables["files"]
             if file["fname"] == facts.top_file("lock")]  # fmt: skip
    shared = f", which {counted(users[0], 'process uses', 'processes use')}" if users else ""
    return Case(
        f"Waiting for locks takes {percent(min(taken / max(facts.busy, 1), 1))} {facts.of_busy}",
        f"{counted(sum_of(calls, 'count'), 'call')} of {longest['name']} and similar took "
        f"{duration(every)}, the longest {duration(longest['max_ns'])}"
        f"{facts.place(['lock'], every)}{shared}",
        taken,
        facts.busy,
        base=facts.of_busy,
        files=facts.places(["lock"]),
    )


# What says more than that I/O takes long.
PATTERNS = (
    *("small-reads", "small-writes", "rereads", "metadata-storm", "random-access", "failed-calls"),
    *("syncs", "slow-storage", "reopened-files"),
)

RULES = (
    Rule(
        "unhidden-io",
        unhidden_io,
        (0.10, 0.15, 0.30),
        "read ahead in workers or threads, so that I/O and compute overlap",
        explained_by=(*PATTERNS, "checkpoint-stalls"),
    ),
    Rule(
        "io-bound",
        io_bound,
        (0.50, 0.70, 2.0),
        "fewer, larger, sequential transfers, several at a time, or faster storage; the tables of "
        "calls and files show which cost most",
        IO_FLOOR,
        explained_by=PATTERNS,
    ),
    Rule(
        "slow-storage",
        slow_storage,
        (0.10, 0.25, 0.50),
        "move these files to faster storage (a local disk, memory), or transfer several at a time",
        IO_FLOOR,
    ),
    Rule(
        "cold-page-faults",
        cold_page_faults,
        (0.05, 0.15, 0.40),
        "read the file in order, or ahead of use (madvise MADV_WILLNEED, or reading it once); with "
        "scattered accesses, MADV_RANDOM avoids fetching neighbors that are not needed",
        IO_FLOOR,
    ),
    Rule(
        "reopened-files",
        reopened_files,
        (0.05, 0.10, 0.25),
        "open the file once and keep it open, or keep its content in memory",
        IO_FLOOR,
    ),
    Rule(
        "small-reads",
        small_reads,
        (0.03, 0.10, 0.25),
        "read larger blocks: a buffer of 1 MiB or more, or samples packed into larger files "
        "(tar shards, HDF5 chunks, Parquet row groups)",
        IO_FLOOR,
    ),
    Rule(
        "small-writes",
        small_writes,
        (0.03, 0.10, 0.25),
        "write through a larger buffer, or collect records before writing",
        IO_FLOOR,
    ),
    Rule(
        "rereads",
        rereads,
        (0.03, 0.10, 0.25),
        "cache the data in memory or on a local disk after the first pass, if it fits",
        IO_FLOOR,
    ),
    Rule(
        "metadata-storm",
        metadata_storm,
        (0.05, 0.10, 0.25),
        "pack many small files into few large ones, keep files open, list a directory once",
        IO_FLOOR,
        explained_by=("failed-calls",),
    ),
    Rule(
        "random-access",
        random_access,
        (0.03, 0.10, 0.25),
        "sort or group reads, shuffle shards and buffers instead of single records, or load the "
        "file into memory first",
        IO_FLOOR,
    ),
    Rule(
        "failed-calls",
        failed_calls,
        (0.01, 0.05, 0.20),
        "shorten the search path, or create the missing file",
        IO_FLOOR,
    ),
    Rule(
        "syncs",
        syncs,
        (0.05, 0.10, 0.25),
        "sync less often, or from a separate thread",
        IO_FLOOR,
    ),
    Rule(
        "lock-waits",
        lock_waits,
        (0.05, 0.10, 0.25),
        "hold the lock for a shorter time, lock ranges of the file, use a file per process, or let "
        "one process write for all",
        IO_FLOOR,
    ),
)

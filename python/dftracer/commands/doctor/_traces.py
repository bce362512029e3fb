"""The checks of `dftracer doctor` on traces: why they are empty or incomplete."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dftracer import _reader
from dftracer._format import counted, size
from dftracer.commands._cli.progress import Progress
from dftracer.commands._cli.recovery import recover_directory
from dftracer.commands.doctor._check import Check, fail, ok, warn
from dftracer.trace.files import not_a_trace
from dftracer.trace.lines import Health, find_traces, read_records
from dftracer.trace.summary import summarise_all

# `untraced` of an exec (docs/interception.md).
_UNTRACED = {
    1: "statically linked",
    2: "of another architecture",
    3: "set-uid",
    4: "without LD_PRELOAD",
    5: "with another C library",
    6: "a Go program, whose runtime makes system calls without libc",
}
_COUNTS = (
    *("calls", "filtered", "read_seen", "read_total", "write_seen", "write_total"),
    *("storage_read", "rings", "ring_requests"),
)
_CALLS = ("POSIX", "STDIO", "IO_URING", "AIO")
_ENOUGH = 1_000_000  # bytes: smaller gaps are not reported
_RING = "anon_inode:[io_uring]"


@dataclass
class Sums:
    """Totals over all files."""

    files: int = 0
    health: dict[Path, Health] = field(default_factory=dict)
    strangers: dict[Path, str] = field(default_factory=dict)
    names: Counter[tuple[str, str]] = field(default_factory=Counter)
    processes: set[tuple[Any, Any]] = field(default_factory=set)
    runs: set[str] = field(default_factory=set)
    started: int = 0
    ended: int = 0
    recovered: int = 0
    lost: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    untraced: Counter[tuple[str, int]] = field(default_factory=Counter)
    paths: dict[str, str] = field(default_factory=dict)
    mapped: Counter[str] = field(default_factory=Counter)  # bytes, by file
    told: Counter[str] = field(default_factory=Counter)  # of these, such whose use is known
    touched: Counter[str] = field(default_factory=Counter)  # and what was used
    rings: int = 0

    @property
    def events(self) -> int:
        return sum(self.names.values())


def check_traces(paths: Sequence[str], *, recover: bool) -> Iterator[Check]:
    directories = sorted(
        {path if os.path.isdir(path) else os.path.dirname(path) or "." for path in paths}
    )
    alive = 0
    for directory in directories:
        if recover and os.path.isdir(directory):
            found = recover_directory(directory)
            alive += found.alive
            if found.recovered:
                crashed = counted(found.recovered, "crashed process", "crashed processes")
                yield ok("spools", f"recovered {found.events:,} events of {crashed}")
            if found.unknown:
                yield warn(
                    "spools",
                    f"{counted(found.unknown, 'spool')} of processes on another host or in another "
                    f"container: run dftracer recover --force {directory} once they have ended",
                )
            if found.broken:
                yield fail("spools", f"{counted(found.broken, 'spool')} cannot be read")
    if alive:
        verb = "is" if alive == 1 else "are"
        what = counted(alive, "process", "processes")
        yield ok("running", f"{what} {verb} still recording; the results below may be incomplete")
    traces = find_traces(paths)
    if not traces:
        yield _no_files(paths, alive)
        return
    sums = _read(traces)
    for check in (_files, _processes, _events, _lost, _untraced, _filtered, _unseen, _gap, _share):
        yield from check(sums)


def _no_files(paths: Sequence[str], alive: int) -> Check:
    where = ", ".join(paths)
    if alive:
        return ok("files", f"none yet in {where}: events are still in the spools")
    return fail(
        "files",
        f"no traces in {where}. A process that records nothing leaves no file. Was the program "
        "started with `dftracer run` or DFTRACER_ENABLE=1? Is it statically linked? What did it "
        "print to stderr at its end? `dftracer doctor` checks the installation",
    )


def _read(traces: Sequence[Path]) -> Sums:
    sums = Sums(files=len(traces))
    with Progress.of_files(traces) as progress:
        for path in traces:
            health = sums.health[path] = Health()
            reason = not_a_trace(path)
            if reason is not None:
                sums.strangers[path] = reason
                continue
            if _reader.probe([path])[0]["document"]:
                _note_document(sums, path, health)
            else:
                for record in read_records(path, health):
                    _note(sums, record)
            progress.advance(path.stat().st_size)
    return sums


def _note_document(sums: Sums, path: Path, health: Health) -> None:
    """One JSON document, as torch.profiler writes it, without a record per line."""
    found = summarise_all([path])
    health.lines = found.records
    health.truncated = "cut_line" in found.damage.troubles
    health.bad_lines = sum(found.damage.troubles.values())
    for process in found.processes:
        sums.processes.add((str(process.pid), process.host))
    for row in found.rows:
        sums.names[(row.cat, row.name)] += row.count


def _note(sums: Sums, record: dict[str, Any]) -> None:
    args = record.get("args")
    if not isinstance(args, dict):
        args = {}
    name, category = str(record.get("name")), str(record.get("cat"))
    # In a damaged record this may be any type, even one that cannot be hashed.
    sums.processes.add((str(record.get("pid")), str(args.get("hhash"))))
    if category == "dftracer":
        if name == "start":
            sums.started += 1
            sums.runs.add(str(args.get("run")))
        elif name == "end":
            sums.ended += 1
            sums.recovered += bool(args.get("recovered"))
            sums.lost += _number(args.get("lost"))
            for key in _COUNTS:
                sums.counts[key] += _number(args.get(key))
        elif name == "FH":
            sums.paths[str(args.get("value"))] = str(args.get("name"))
        return
    if record.get("ph") == "M":
        return
    sums.names[(category, name)] += 1
    if name in ("mmap", "mmap64", "io_uring_setup") and category == "POSIX":
        _note_unseen(sums, name, args)
    if name == "touched" and category == "MMAP":
        path = sums.paths.get(str(args.get("fhash")), "")
        sums.told[path] += _number(args.get("length"))
        sums.touched[path] += _number(args.get("touched"))
    if "untraced" in args:
        program = args.get("file") or sums.paths.get(str(args.get("fhash")), "?")
        sums.untraced[(os.path.basename(str(program)), _number(args["untraced"]))] += 1


def _note_unseen(sums: Sums, name: str, args: dict[str, Any]) -> None:
    """I/O without a call: mapped memory, and io_uring, known by its setup or its mapping."""
    path = sums.paths.get(str(args.get("fhash")), "")
    if name == "io_uring_setup":
        sums.rings += _number(args.get("ret", 0)) >= 0
    elif path == _RING:
        sums.rings = max(sums.rings, 1)
    elif "errno" not in args and path.startswith("/"):
        sums.mapped[path] += _number(args.get("length"))


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _files(sums: Sums) -> Iterator[Check]:
    for path, health in sums.health.items():
        if path in sums.strangers:
            yield fail("files", f"{path}: {sums.strangers[path]}")
        elif health.corrupt:
            yield fail("files", f"{path}: damaged; read up to the damage")
        elif health.truncated:
            yield fail("files", f"{path}: truncated; read up to the end")
        elif health.bad_lines:
            yield fail("files", f"{path}: {counted(health.bad_lines, 'unreadable line')}")
        elif health.lines == 0:
            yield fail("files", f"{path}: contains no records")
    runs = "" if len(sums.runs) <= 1 else f", from {len(sums.runs)} runs"
    yield ok("files", f"{counted(sums.files, 'file')}{runs}")


def _processes(sums: Sums) -> Iterator[Check]:
    parts = [counted(len(sums.processes), "process", "processes")]
    if sums.recovered:
        parts.append(f"{sums.recovered} ended without exit() (recovered)")
    # An exec continues the file without an end record.
    missing = len({pid for pid, _ in sums.processes}) - sums.ended
    if missing > 0:
        parts.append(f"{missing} without an end record (still running, or not recovered yet)")
    yield (warn if missing > 0 else ok)("processes", ", ".join(parts))


def _events(sums: Sums) -> Iterator[Check]:
    calls = sum(n for (cat, _), n in sums.names.items() if cat in _CALLS)
    text = f"{counted(sums.events, 'event')}: {calls:,} I/O calls, {sums.events - calls:,} others"
    yield (ok if sums.events else fail)("events", text)


def _lost(sums: Sums) -> Iterator[Check]:
    if sums.lost:
        yield fail(
            "losses",
            f"{counted(sums.lost, 'event')} lost (disk full?); the events named `lost` show when",
        )
    else:
        yield ok("losses", "no event was lost")


def _untraced(sums: Sums) -> Iterator[Check]:
    for (program, why), number in sums.untraced.most_common(10):
        yield warn("untraced", f"{number} x {program}: {_UNTRACED.get(why, f'reason {why}')}")


def _filtered(sums: Sums) -> Iterator[Check]:
    calls, filtered = sums.counts["calls"], sums.counts["filtered"]
    if calls == 0:
        return
    text = f"{filtered:,} of {counted(calls, 'call')} were on files that are not recorded"
    if filtered >= calls and sums.events == 0:
        yield fail("filter", f"{text}: see --data-dir and DFTRACER_DATA_DIR; `all` records them")
    elif filtered > 0.9 * calls:
        yield warn("filter", f"{text}: check DFTRACER_DATA_DIR")
    else:
        yield ok("filter", text)


def _unseen(sums: Sums) -> Iterator[Check]:
    requests = sums.counts["ring_requests"]
    seen = sum(n for (cat, _), n in sums.names.items() if cat == "IO_URING")
    if requests:
        rings = counted(sums.counts["rings"], "ring")
        yield warn(
            "io_uring",
            f"{counted(requests, 'request')} in {rings} of io_uring went unseen: the program makes "
            "the system calls by instructions of its own. The kernel counted them; their bytes are "
            "not known (see docs/interception.md)",
        )
    elif sums.rings and not seen:
        yield warn(
            "io_uring",
            "the program set up io_uring, and no request was seen there: it made none, or was "
            "killed, or its trace is of an earlier release (see docs/interception.md)",
        )
    elif seen and not sums.recovered:
        yield ok("io_uring", "every request that the kernel completed was seen")
    mapped = sum(sums.mapped.values())
    if not mapped:
        return
    text = f"{size(mapped)} of {counted(len(sums.mapped), 'file')} were mapped into memory"
    unknown = _unknown_use(sums)
    if sums.told:
        text += f", {size(sum(sums.touched.values()))} of it touched"
    if sum(unknown.values()) > _ENOUGH:
        (most, length), *_ = unknown.most_common(1)
        yield warn(
            "mapped",
            f"{text}; what was touched of {size(sum(unknown.values()))} is not known, most of it "
            f"of {most} ({size(length)})",
        )
    else:
        yield ok("mapped", text)


def _unknown_use(sums: Sums) -> Counter[str]:
    """Bytes of mappings of which the trace does not say what was touched, by file."""
    return sums.mapped - sums.told


def _gap(sums: Sums) -> Iterator[Check]:
    unseen = []
    if sums.counts["ring_requests"] or (
        sums.rings and not any(cat == "IO_URING" for cat, _ in sums.names)
    ):
        unseen.append("io_uring")
    if sum(_unknown_use(sums).values()) > _ENOUGH:
        unseen.append("mapped memory")
    for what, verb in (("read", "read"), ("write", "written")):
        seen, total = sums.counts[f"{what}_seen"], sums.counts[f"{what}_total"]
        if total == 0 and seen == 0:
            continue
        text = f"{size(seen)} of {size(total)} {verb} went through recorded calls"
        if total > _ENOUGH and seen < total / 2:
            yield warn(
                "gap",
                f"{text}: the rest was not intercepted (raw system calls, see "
                "docs/interception.md)",
            )
        elif unseen:
            yield warn("gap", f"{text}; {' and '.join(unseen)} is in neither number")
        else:
            yield ok("gap", text)


def _share(sums: Sums) -> Iterator[Check]:
    if sums.events < 1000:
        return
    (category, name), number = sums.names.most_common(1)[0]
    share = number / sums.events
    if share > 0.5:
        yield warn("share", f"{share:.0%} of all events are {name} ({category})")

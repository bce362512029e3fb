"""What the time of a run went to: in one line, and what it is bound by, for every kind of run.

Of a run that trains, it is bound by the activity that took most of the time of its training
processes from their first to their last step, and by start-up only if that is long; any other run,
by what took most of the time in which its processes were busy, or of the job. docs/report.md
explains the words.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dftracer._format import counted, duration, percent
from dftracer.reports.schema import WAITING

Row = dict[str, Any]

# Smaller shares are left out, unless they are the largest.
LEAST = 0.01
# CPU time that explains so much of a time explains all of it.
MOSTLY = 0.8
# Shorter start-ups are not worth a word: nanoseconds, of one training process.
LEAST_START = 30_000_000_000
# Parts that are shown have at least this share.
LEAST_SHOWN = 0.05

ANOTHER = "waiting for another process"
OUTSIDE = "work outside traced calls"
FAULTING = "reading mapped files"
# Parts of the table `breakdown`, and what they mean; the others keep their names.
PARTS = {
    "unattributed": OUTSIDE,
    "between steps": OUTSIDE,
    f"{WAITING}: reading": "reading",
    f"{WAITING}: decoding": "decoding",
    f"{WAITING}: collating": "collating",
    f"{WAITING}: garbage collection": "garbage collection",
    f"{WAITING}: worker start-up": "start-up of workers",
    f"{WAITING}: not yet begun": "moving batches",
    f"{WAITING}: waiting for its turn": "moving batches",
    f"{WAITING}: queue transfer": "moving batches",
    f"{WAITING}: pinning": "moving batches",
    f"{WAITING}: unattributed": WAITING,
}


def base_of(overview: Row) -> tuple[int, str]:
    """The time that shares of the job refer to, and its name."""
    busy, job = overview["busy_ns"] or 0, overview["job_ns"] or 0
    whole = max(busy, job)
    if busy <= job * 1.01:
        return whole, f"of the {duration(whole)} that {_subject(overview)} took"
    return whole, busy_words(overview)


def busy_words(overview: Row) -> str:
    """The name of the time that findings about I/O refer to."""
    busy, job = overview["busy_ns"] or 0, overview["job_ns"] or 0
    if abs(busy - job) <= 0.01 * job:
        return f"of the {duration(job)} that {_subject(overview)} took"
    who = counted(overview["processes"] or 0, "process", "processes")
    verb = "was" if overview["processes"] == 1 else "were"
    return f"of the {duration(busy)} that {who} {verb} busy"


def _subject(overview: Row) -> str:
    runs = overview["runs"] or 1
    return "the job" if runs == 1 else f"{runs} runs"


def bound_by(overview: Row) -> str | None:
    """Shares, largest first; None if there is no time to divide."""
    whole, words = base_of(overview)
    if not whole:
        return None
    quiet = max(whole - (overview["busy_ns"] or 0), 0)
    stores = min(overview["store_wait_ns"] or 0, quiet)
    network = min(overview["net_wait_ns"] or 0, quiet - stores)
    parts = [
        (overview["io_ns"] or 0, "I/O calls"),
        (overview["lock_ns"] or 0, "waiting for locks"),
        (computing(overview), "compute regions"),
        (faulting(overview), FAULTING),
        (other(overview), _other_name(overview)),
        (stores, "waiting for object stores"),
        (network, "waiting for the network"),
        (quiet - stores - network, _quiet_name(overview)),
    ]
    parts.sort(key=lambda part: -part[0])
    shares = [
        f"{name} {percent(time / whole)}"
        for at, (time, name) in enumerate(parts)
        if at == 0 or time >= LEAST * whole
    ]
    cpu = "" if overview["cpu_ns"] is None else f" ({duration(overview['cpu_ns'])} of CPU time)"
    return f"{', '.join(shares)}, {words}{cpu}"


def computing(overview: Row) -> int:
    """Time in compute regions, without I/O."""
    return max((overview["compute_ns"] or 0) - (overview["hidden_io_ns"] or 0), 0)


def faulting(overview: Row) -> int:
    """Time in which pages of mapped files came from storage, as far as nothing else explains it."""
    inside = (overview["io_ns"] or 0) + (overview["lock_ns"] or 0) + computing(overview)
    rest = max((overview["busy_ns"] or 0) - inside, 0)
    return min(overview["fault_wait_ns"] or 0, rest)


def other(overview: Row) -> int:
    """Busy time in none of these."""
    inside = (overview["io_ns"] or 0) + (overview["lock_ns"] or 0) + computing(overview)
    return max((overview["busy_ns"] or 0) - inside - faulting(overview), 0)


def _other_name(overview: Row) -> str:
    """CPU, if the CPU time explains it even if I/O calls never waited."""
    cpu = overview["cpu_ns"]
    if computing(overview):
        return "outside traced calls and regions"
    if cpu is not None and cpu - (overview["io_ns"] or 0) >= MOSTLY * other(overview):
        return "CPU"
    return "outside traced calls"


def _quiet_name(overview: Row) -> str:
    """What processes mostly did while none of them was busy, as far as known."""
    kinds = (
        (overview["pipe_wait_ns"] or 0, "waiting on pipes, sockets and terminals"),
        (overview["untraced_child_ns"] or 0, "waiting for programs that are not traced"),
        (overview["idle_ns"] or 0, "asleep or in untraced waits"),
    )
    most = max(kinds)
    return most[1] if most[0] else "no process running"


def bound(tables: dict[str, Any]) -> tuple[str, str] | None:
    """The word, and the largest parts in one line; None if there is no time to divide."""
    if not len(tables["overview"]):
        return None
    overview = tables["overview"].dicts()[0]
    breakdown = tables["breakdown"].dicts()
    if breakdown:
        parts, words = _training(breakdown, tables["steps"].dicts())
    else:
        parts, words = _others(overview)
    whole = sum(parts.values())
    if whole <= 0:
        return None
    order = sorted(parts, key=lambda part: -parts[part])
    shown = [
        f"{part} {percent(parts[part] / whole)}"
        for at, part in enumerate(order)
        if at == 0 or parts[part] >= LEAST_SHOWN * whole
    ]
    return order[0], f"{', '.join(shown)}, of the {duration(whole)} {words}"


def _training(breakdown: Iterable[Row], steps: Iterable[Row]) -> tuple[dict[str, int], str]:
    parts: dict[str, int] = {}
    started: dict[int, int] = {}
    for row in breakdown:
        part: str = row["part"]
        if part == "start-up":
            started[row["process"]] = row["time_ns"]
        elif part != "shut-down":
            _add(parts, PARTS.get(part, part), row["time_ns"])
    io = writing = collected = 0
    for step in steps:
        loose = step["loose_io_ns"] or 0
        io += loose
        writing += step["loose_write_ns"] or 0
        # Collections between the regions of a step; those inside a region are part of it.
        collected += min(step["gc_ns"] or 0, step["unattributed_ns"] - loose)
    _add(parts, OUTSIDE, -io - collected)
    _add(parts, "writing", writing)
    _add(parts, "reading", io - writing)
    _add(parts, "garbage collection", collected)
    long = [time for time in started.values() if time >= LEAST_START]
    _add(parts, "start-up", sum(long))
    from_start = ", start-up included" if long else ""
    count = len(started)
    who = "the training process" if count == 1 else f"{count:,} training processes"
    return {part: max(time, 0) for part, time in parts.items()}, (
        f"from the first to the last step of {who}{from_start}"
    )


def _add(parts: dict[str, int], part: str, time: int) -> None:
    if time:
        parts[part] = parts.get(part, 0) + time


def _others(overview: Row) -> tuple[dict[str, int], str]:
    whole, words = base_of(overview)
    io, busy = overview["io_ns"] or 0, overview["busy_ns"] or 0
    reading, writing = overview["reading_ns"] or 0, overview["writing_ns"] or 0
    # Of time that no call explains, a processor was used for as much as the CPU time proves.
    rest, proven = other(overview), (overview["cpu_ns"] or 0) - io - computing(overview)
    on_cpu = rest if proven >= MOSTLY * rest else max(proven, 0)
    parts: dict[str, int] = {}
    _add(parts, "reading", reading + faulting(overview))
    _add(parts, "writing", writing)
    _add(parts, "metadata", max(io - reading - writing, 0))
    _add(parts, ANOTHER, overview["lock_ns"] or 0)
    _add(parts, "compute", computing(overview) + on_cpu)
    _add(parts, OUTSIDE, rest - on_cpu)
    quiet = max(whole - busy, 0)
    network = min(overview["net_wait_ns"] or 0, quiet)
    _add(parts, "network", network)
    _add(parts, _quiet(overview), quiet - network)
    return parts, words.partition(duration(whole))[2].strip() or words


def _quiet(overview: Row) -> str:
    """While nothing was busy. A process that sleeps is what others that wait for it wait for."""
    waited = (overview["pipe_wait_ns"] or 0) + (overview["untraced_child_ns"] or 0)
    quiet = max((overview["job_ns"] or 0) - (overview["busy_ns"] or 0), 0)
    return ANOTHER if waited and 2 * (overview["idle_ns"] or 0) < quiet else "idle"

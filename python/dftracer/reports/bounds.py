"""What the time of a run went to: in one line, and what it is bound by, for every kind of run.

Of a run that trains, it is bound by the activity that took most of the time of its training
processes from their first to their last step; start-up is named beside it. Any other run, by what
took most of the time in which its processes were busy, or of the job. docs/report.md explains the
words.
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
# Shorter start-ups of training processes are not worth a word: nanoseconds, and a share of the time
# that they trained.
LEAST_START = 1_000_000_000
LEAST_START_SHARE = 0.1
# Parts that are shown have at least this share.
LEAST_SHOWN = 0.05

ANOTHER = "waiting for another process"
OUTSIDE = "work outside traced calls"
FAULTING = "reading mapped files"
PROCESSOR = "waiting for a processor"
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
        (overview["mpi_ns"] or 0, "calls of MPI"),
        (other(overview) - processor_wait(overview), _other_name(overview)),
        (processor_wait(overview), PROCESSOR),
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
    inside += faulting(overview) + (overview["mpi_ns"] or 0)
    return max((overview["busy_ns"] or 0) - inside, 0)


def proven(overview: Row) -> int:
    """Of busy time in none of these, what was spent on a processor even if I/O calls never waited
    and regions always computed."""
    used = (overview["cpu_ns"] or 0) - (overview["io_ns"] or 0) - computing(overview)
    # Most libraries of MPI use a processor while they wait.
    return min(max(used - (overview["mpi_ns"] or 0), 0), other(overview))


def processor_wait(overview: Row) -> int:
    """Of the same, what main threads waited for a processor: what is not proven to be CPU time, at
    most. Waits inside calls and regions are part of these."""
    return min(overview["cpu_wait_ns"] or 0, other(overview) - proven(overview))


def _other_name(overview: Row) -> str:
    """CPU, if the CPU time explains it even if I/O calls never waited."""
    if computing(overview):
        return "outside traced calls and regions"
    rest = other(overview) - processor_wait(overview)
    if overview["cpu_ns"] is not None and proven(overview) >= MOSTLY * rest:
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
        parts, words = _training(breakdown, tables["steps"].dicts(), tables["processes"].dicts())
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


def _training(
    breakdown: Iterable[Row], steps: Iterable[Row], processes: Iterable[Row]
) -> tuple[dict[str, int], str]:
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
    parts = {part: max(time, 0) for part, time in parts.items()}
    count = len(started)
    who = "the training process" if count == 1 else f"{count:,} training processes"
    words = f"from the first to the last step of {who}"
    longest = max(started.values(), default=0)
    if longest >= max(LEAST_START, LEAST_START_SHARE * sum(parts.values()) / max(count, 1)):
        words += f", after {'' if count == 1 else 'up to '}{duration(longest)} of start-up"
    those = [row for row in processes if row["process"] in started]
    waited = sum(row["cpu_wait_ns"] or 0 for row in those)
    if waited >= LEAST_SHOWN * sum(row["life_ns"] or 0 for row in those) > 0:
        words += f"; {duration(waited)} of {'its' if count == 1 else 'their'} life was {PROCESSOR}"
    return parts, words


def _add(parts: dict[str, int], part: str, time: int) -> None:
    if time:
        parts[part] = parts.get(part, 0) + time


def _others(overview: Row) -> tuple[dict[str, int], str]:
    whole, words = base_of(overview)
    io, busy = overview["io_ns"] or 0, overview["busy_ns"] or 0
    reading, writing = overview["reading_ns"] or 0, overview["writing_ns"] or 0
    # Of time that no call explains, a processor was used for as much as the CPU time proves.
    on_cpu, waited = proven(overview), processor_wait(overview)
    rest = other(overview) - waited
    on_cpu = rest if on_cpu >= MOSTLY * rest else on_cpu
    mpi = overview["mpi_ns"] or 0
    parts: dict[str, int] = {}
    _add(parts, "reading", reading + faulting(overview))
    _add(parts, "writing", writing)
    _add(parts, "metadata", max(io - reading - writing, 0))
    _add(parts, ANOTHER, overview["lock_ns"] or 0)
    _add(parts, "MPI", mpi)
    _add(parts, "compute", computing(overview) + on_cpu)
    _add(parts, OUTSIDE, rest - on_cpu)
    _add(parts, PROCESSOR, waited)
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

"""What the time of a job went to, in one line: I/O, locks, waiting for others, or none of these."""

from __future__ import annotations

from typing import Any

from dftracer._format import counted, duration, percent

Row = dict[str, Any]

# Smaller shares are left out, unless they are the largest.
LEAST = 0.01


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
    parts = [
        (overview["io_ns"] or 0, "I/O calls"),
        (overview["lock_ns"] or 0, "waiting for locks"),
        (_computing(overview), "compute regions"),
        (_other(overview), _other_name(overview)),
        (stores, "waiting for object stores"),
        (quiet - stores, _quiet_name(overview)),
    ]
    parts.sort(key=lambda part: -part[0])
    shares = [
        f"{name} {percent(time / whole)}"
        for at, (time, name) in enumerate(parts)
        if at == 0 or time >= LEAST * whole
    ]
    cpu = "" if overview["cpu_ns"] is None else f" ({duration(overview['cpu_ns'])} of CPU time)"
    return f"{', '.join(shares)}, {words}{cpu}"


def _computing(overview: Row) -> int:
    """Time in compute regions, without I/O."""
    return max((overview["compute_ns"] or 0) - (overview["hidden_io_ns"] or 0), 0)


def _other(overview: Row) -> int:
    """Busy time in none of these."""
    inside = (overview["io_ns"] or 0) + (overview["lock_ns"] or 0) + _computing(overview)
    return max((overview["busy_ns"] or 0) - inside, 0)


def _other_name(overview: Row) -> str:
    """CPU, if the CPU time explains it even if I/O calls never waited."""
    cpu, other = overview["cpu_ns"], _other(overview)
    if _computing(overview):
        return "outside traced calls and regions"
    if cpu is not None and cpu - (overview["io_ns"] or 0) >= 0.8 * other:
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

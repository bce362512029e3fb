"""Rules about processes that wait for others: at the other end of a pipe, or for a child."""

from __future__ import annotations

from dftracer._format import counted, duration
from dftracer._names import shorten
from dftracer.reports.findings.facts import Case, Facts, Row, Rule
from dftracer.reports.programs import program_name

# Programs whose purpose is to start others and to wait for them.
STARTERS = (
    *("sh", "bash", "dash", "zsh", "make", "gmake", "ninja", "cmake", "xargs", "parallel"),
    *("cc", "gcc", "g++", "c++", "clang", "clang++", "collect2", "srun", "mpirun", "torchrun"),
)


def _job(facts: Facts) -> tuple[int, str]:
    job = facts.overview.get("job_ns") or 0
    runs = facts.overview.get("runs") or 1
    return job, f"of the {duration(job)} that {'the job' if runs == 1 else f'{runs} runs'} took"


def _named(process: Row) -> str:
    return shorten((process["command"] or "").strip(), 60) or f"process {process['pid']}"


def pipe_waits(facts: Facts) -> Case | None:
    """A process that waits at a pipe while the one at its other end sleeps.

    One that is busy at the other end is no finding: a pipeline is as fast as its slowest part."""
    ends: dict[tuple[str | None, str], list[Row]] = {}
    for row in facts.tables["pipes"]:
        if row["pipe"].startswith("pipe:"):
            host = facts.processes[row["process"]]["host"]
            ends.setdefault((host, row["pipe"]), []).append(row)
    best: tuple[int, Row, Row, Row, bool] | None = None
    for rows in ends.values():
        for row in rows:
            waiter = facts.processes[row["process"]]
            for way, back in (("write", "reads"), ("read", "writes")):
                waited = min(row[f"{way}_ns"], waiter["pipe_wait_ns"])
                others = [r for r in rows if r[back] and r["process"] != row["process"]]
                idle = [facts.processes[r["process"]] for r in others]
                slow = max(idle, key=lambda process: process["idle_ns"], default=None)
                if slow is None or 2 * slow["idle_ns"] < waited:
                    continue
                if best is None or waited > best[0]:
                    best = waited, waiter, slow, row, way == "write"
    if best is None:
        return None
    waited, waiter, slow, row, writes = best
    job, base = _job(facts)
    does = "writing to" if writes else "reading from"
    at_end = "reads" if writes else "fills"
    calls = counted(row["writes" if writes else "reads"], "call")
    return Case(
        f"A process waits for {duration(waited)} {does} a pipe that another one {at_end} slowly",
        f"{_named(waiter)} spent {duration(waited)} in {calls} {does} it; at the other end, "
        f"{_named(slow)} slept, or waited for what is not traced, for {duration(slow['idle_ns'])} "
        f"of {duration(slow['life_ns'])}",
        waited,
        job,
        base=base,
    )


def _starts_others(command: str) -> bool:
    first = command.split()[0].rsplit("/", 1)[-1] if command.split() else ""
    return first in STARTERS or program_name(command) in STARTERS


def child_waits(facts: Facts) -> Case | None:
    """A program that waits for children which sleep."""
    if facts.trains:
        return None
    best: tuple[int, Row, list[Row]] | None = None
    for process in facts.processes:
        if _starts_others(process["command"] or ""):
            continue
        children = [p for p in facts.processes if p["parent"] == process["process"]]
        asleep = sum(child["idle_ns"] for child in children)
        waited = min(process["child_wait_ns"], asleep)
        if waited and (best is None or waited > best[0]):
            best = waited, process, children
    if best is None:
        return None
    waited, process, children = best
    slowest = max(children, key=lambda child: child["idle_ns"])
    job, base = _job(facts)
    return Case(
        f"A process waits for {duration(waited)} for children that sleep",
        f"{_named(process)} waited {duration(process['child_wait_ns'])} for "
        f"{counted(len(children), 'child', 'children')}, which slept, or waited for what is not "
        f"traced, for {duration(sum(child['idle_ns'] for child in children))}; most in "
        f"{_named(slowest)}: {duration(slowest['idle_ns'])} of {duration(slowest['life_ns'])}",
        waited,
        job,
        base=base,
    )


RULES = (
    Rule(
        "pipe-waits",
        pipe_waits,
        (0.20, 0.40, 2.0),
        "find out what the process at the other end waits for, let it read or write larger pieces, "
        "or run several of it",
    ),
    Rule(
        "child-waits",
        child_waits,
        (0.20, 0.40, 2.0),
        "find out what the child waits for, or go on meanwhile: start it in the background and "
        "collect its result later",
        explained_by=("pipe-waits", "lock-waits"),
    ),
)

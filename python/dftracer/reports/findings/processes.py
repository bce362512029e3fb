"""Rules about processes: a rank or a worker that is slower than its peers, and lost events."""

from __future__ import annotations

from dftracer._format import counted, duration
from dftracer.reports.findings.facts import Case, Facts, Row, Rule, median

# The parts of a step that do not depend on other ranks.
OWN = ("own time", "fetch time", "compute time")
# A worker that takes so many times the median per item is slow.
LEAST_RATIO = 1.5


def _straggler(facts: Facts, kind: str, measures: tuple[str, ...], least: float) -> Row | None:
    found = [
        row
        for row in facts.tables["stragglers"]
        if row["kind"] == kind and row["measure"] in measures and (row["ratio"] or 0) >= least
    ]
    return max(found, key=lambda row: (row["value"] - row["median"]) * row["count"], default=None)


def slow_worker(facts: Facts) -> Case | None:
    row = _straggler(facts, "worker", ("item time",), LEAST_RATIO)
    if row is None or not facts.exposed or _only_some_batches(facts, row["process"]):
        return None
    process = facts.processes[row["process"]]
    return Case(
        f"One worker takes {row['ratio']:.1f} times as long as the others",
        f"process {process['pid']} on {process['host'] or '?'} took {duration(row['value'])} per "
        f"item, the median worker {duration(row['median'])}, for {counted(row['count'], 'item')}",
        (row["value"] - row["median"]) * row["count"],
        process["life_ns"],
        base=f"of the {duration(process['life_ns'])} that the worker took",
    )


def _only_some_batches(facts: Facts, worker: int) -> bool:
    """Whether a few batches explain most of its excess: then these are to blame, which is a finding
    about waits for data, and not the worker."""
    made: dict[int, list[int]] = {}
    users: dict[int, int] = {}
    for batch in facts.tables["batches"]:
        if batch["worker_process"] is not None:
            made.setdefault(batch["worker_process"], []).append(batch["work_ns"])
            users[batch["worker_process"]] = batch["process"]
    if worker not in made:
        return False
    every = sorted(median(work) for p, work in made.items() if users[p] == users[worker])
    usual = every[(len(every) - 1) // 2]
    excess = sum(made[worker]) - usual * len(made[worker])
    return (median(made[worker]) - usual) * len(made[worker]) < excess / 2


def unbalanced_rank(facts: Facts) -> Case | None:
    # All ranks have the step time of the slowest one; the others wait in collectives or in the
    # backward pass. So a rank is slow if the rest of its steps takes long.
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
        # A part that explains the difference says more than the total.
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
        f"{duration(row['value'])} per step compared with {duration(row['median'])}, over "
        f"{counted(row['count'], 'step')}, on {process['host'] or '?'}; communication and the "
        "backward pass, in which ranks wait for each other, are not counted",
        more * row["count"],
        sum(steps),
        base=f"of the {duration(sum(steps))} that its steps took",
    )


def lost_events(facts: Facts) -> Case | None:
    lost, events = facts.overview.get("lost") or 0, facts.overview.get("events") or 0
    if not lost:
        return None
    who = sum(process["lost"] > 0 for process in facts.processes)
    return Case(
        f"{counted(lost, 'event')} could not be recorded",
        f"{lost:,} lost, {events:,} recorded, in {counted(who, 'process', 'processes')}: "
        "the numbers in this report are too small",
        lost,
        lost + events,
        timed=False,
        base="of all events",
    )


RULES = (
    Rule(
        "slow-worker",
        slow_worker,
        (0.05, 0.15, 0.30),
        "check what this worker reads and where it runs: a shard on slow storage, a busy core",
    ),
    Rule(
        "unbalanced-rank",
        unbalanced_rank,
        (0.05, 0.15, 0.30),
        "compare its share of the data, its host and its device with the others: all ranks wait "
        "for the slowest",
    ),
    Rule(
        "lost-events",
        lost_events,
        (0.0, 0.001, 0.05),
        "free space where traces are written, or record less (--data-dir)",
    ),
)

"""Rules about processes: a rank or a worker that is slower than its peers, and lost events."""

from __future__ import annotations

from dftracer._format import counted, duration
from dftracer.reports.findings.facts import Case, Facts, Row, Rule, median, sum_of
from dftracer.reports.slow_steps import BEFORE

# The parts of a step that do not depend on other ranks.
OWN = ("own time", "fetch time", "compute time")
# A worker that takes so many times the median per item is slow.
LEAST_RATIO = 1.5
# What a late rank did longer than the others, in words, and what to try.
REASONS = {
    "fetch": (
        BEFORE["fetch_ns"],
        "look at the data of this rank: its shards, its storage, its DataLoader workers; the table "
        "slow_steps has its waits",
    ),
    "compute": (
        BEFORE["compute_ns"],
        "give each rank the same work (batch size, lengths of samples), and compare its processor "
        "or device with those of the others",
    ),
    "checkpoint": (
        BEFORE["checkpoint_ns"],
        "let every rank write its part, or write checkpoints asynchronously",
    ),
    "transfer": (
        BEFORE["transfer_ns"],
        "compare the size of its batches and its device with those of the others",
    ),
    "communication": (
        BEFORE["communication_ns"],
        "look at what this rank exchanges with single others",
    ),
    "io": (
        BEFORE["io_ns"],
        "move what only this rank reads or writes (logs, samples) off the training loop",
    ),
    "unattributed": (
        BEFORE["unattributed_ns"],
        "annotate or profile what this rank does between its regions: logging, metrics, a slower "
        "processor",
    ),
}


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
    numbers = {b["worker_process"]: b["worker"] for b in facts.tables["batches"]}
    number = numbers.get(row["process"])
    who = "" if number is None else f"worker {number}, "
    return Case(
        f"One worker takes {row['ratio']:.1f} times as long as the others",
        f"{who}process {process['pid']} on {process['host'] or '?'} took "
        f"{duration(row['value'])} per item, the median worker {duration(row['median'])}, for "
        f"{counted(row['count'], 'item')}",
        (row["value"] - row["median"]) * row["count"],
        process["life_ns"],
        base=f"of the {duration(process['life_ns'])} that the worker took",
        estimated=True,  # compared with the median
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
    steps = sum(row["steps"] for row in facts.tables["arrivals"])
    if steps and 2 * steps >= len(facts.tables["steps"]):
        return _late_rank(facts)
    return _slow_rank(facts)  # collectives that are not recorded, or not on all ranks


def _late_rank(facts: Facts) -> Case | None:
    """The rank that the others wait for in the median step. It is known by when it comes to
    collectives: waiting in them looks like work to every other measure."""
    row = max(facts.tables["arrivals"], key=lambda each: each["net_ns"] * each["steps"])
    if row["uncertainty_ns"] is None or row["net_ns"] <= row["uncertainty_ns"]:
        return None
    process = facts.processes[row["process"]]
    who = f"rank {row['rank']}" if row["rank"] is not None else f"process {process['pid']}"
    others = [s for s in facts.tables["steps"] if s["process"] != row["process"]]
    ranks = max(len({step["process"] for step in others}), 1)
    whole = sum_of(others, "dur_ns") // ranks
    base = f"of the {duration(whole)} that the steps of another rank took"
    if not whole:
        every = [p["life_ns"] or 0 for p in facts.processes if p["process"] != row["process"]]
        whole = max(every, default=0)
        base = f"of the {duration(whole)} that another process took"
    within = (
        f"; the clocks of the hosts agree within {duration(row['uncertainty_ns'])}"
        if row["uncertainty_ns"]
        else ""
    )
    # Not more than was waited in all, however regular.
    waiting = max(len(facts.tables["arrivals"]) - 1, 1)
    concerns = min(row["net_ns"] * row["steps"], row["given_ns"] // waiting)
    spends, advice = REASONS.get(row["reason"] or "", ("", ""))
    before = (
        f"; before these it spent {duration(row['reason_ns'])} more than the others {spends}"
        if spends
        else ""
    )
    return Case(
        f"{who[0].upper()}{who[1:]} comes late to collectives: the others wait "
        f"{duration(row['net_ns'])} a step for it{f', which it spends {spends}' if spends else ''}",
        f"it came last to {row['last']:,} of {counted(row['collectives'], 'collective')}, "
        f"{duration(row['median_late_ns'] or 0)} after the others in the median{before}; they "
        f"waited {duration(row['given_ns'])} for it, and it waited {duration(row['waited_ns'])} "
        f"for them; it ran on {process['host'] or '?'}{within}",
        concerns,
        whole,
        base=base,
        advice=advice,
    )


def _slow_rank(facts: Facts) -> Case | None:
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

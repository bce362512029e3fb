"""Rules about training: steps, and what they wait for."""

from __future__ import annotations

from dftracer._format import counted, duration, percent
from dftracer.reports.dataloader_workers import at_a_time, waits
from dftracer.reports.findings.facts import Case, Check, Facts, Row, Rule, median, sum_of

RESTARTED = "restarted for each pass over the data (persistent_workers is off)"


def waiting_for_data(facts: Facts) -> Case | None:
    started = waits(facts.starts)
    steps = facts.tables["steps"]
    waited_each = [step["fetch_ns"] - started.get(_key(step), 0) for step in steps]
    waited, whole = sum(waited_each), facts.split["dur_ns"]
    if not waited:
        return None
    base = f"of the {duration(whole)} that training steps took"
    return Case(
        f"Training waits for data for {percent(waited / whole)} {base}",
        f"{counted(len(steps), 'step')} spent {duration(waited)} fetching batches; the median wait "
        f"was {duration(median(waited_each))}, the longest "
        f"{duration(max(waited_each))}{_first(steps, waited_each)}; {_workers(facts)}",
        waited,
        whole,
        base=base,
    )


def _first(steps: list[Row], waited: list[int]) -> str:
    """Set if the first steps of epochs wait most: for queues, or for workers without a trace."""
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
        text += f"; the {duration(waited)} until they had started are not counted"
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
        f"{counted(len(facts.tables['steps']), 'step')} waited {duration(waited)} for the first "
        f"item of new workers; {counted(len(facts.starts), 'start')} of "
        f"{counted(most, 'worker')}, the longest wait was {duration(longest)}"
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


def checkpoint_stalls(facts: Facts) -> Case | None:
    layers = [row for row in facts.tables["layers"] if row["class"] == "checkpoint"]
    taken = sum_of(layers, "union_ns")
    calls = [row for row in facts.tables["calls"] if row["class"] == "checkpoint"]
    if not taken:
        return None
    longest = max(calls, key=lambda call: call["max_ns"])
    whole = facts.lifetime(lambda process: process["role"] == "main")
    return Case(
        "Checkpoints stop the program",
        f"{counted(sum_of(calls, 'count'), 'checkpoint')} took {duration(taken)}; the longest, "
        f"{longest['name']}, {duration(longest['max_ns'])}",
        taken,
        whole,
        base=f"of the {duration(whole)} that main processes took",
    )


def _part_of_steps(column: str, title: str) -> Check:
    def rule(facts: Facts) -> Case | None:
        taken, whole = facts.split[column], facts.split["dur_ns"]
        if not taken:
            return None
        steps = facts.tables["steps"]
        most = max(steps, key=lambda step: step[column])
        base = f"of the {duration(whole)} that training steps took"
        return Case(
            f"{title} {percent(taken / whole)} {base}",
            f"{duration(taken)} in {counted(len(steps), 'step')}; the median step has "
            f"{duration(median([s[column] for s in steps]))}, "
            f"step {most['step']} of epoch {most['epoch']} {duration(most[column])}",
            taken,
            whole,
            base=base,
        )

    return rule


def uneven_steps(facts: Facts) -> Case | None:
    # The first step of a process compiles and warms up; starting workers has its own rule.
    later, seen, started = [], set(), waits(facts.starts)
    for step in facts.tables["steps"]:
        if step["process"] in seen:
            later.append({**step, "dur_ns": step["dur_ns"] - started.get(_key(step), 0)})
        seen.add(step["process"])
    usual = median([step["dur_ns"] for step in later])
    slow = [step for step in later if step["dur_ns"] > 3 * usual]
    if len(later) < 10 or not slow:
        return None
    extra, whole = sum_of(slow, "dur_ns") - usual * len(slow), sum_of(later, "dur_ns")
    worst = max(slow, key=lambda step: step["dur_ns"])
    return Case(
        f"{len(slow):,} of {counted(len(later), 'step')} took more than three times the median",
        f"the median step takes {duration(usual)}; the slow ones took {duration(extra)} more; the "
        f"longest, step {worst['step']} of epoch {worst['epoch']}, took "
        f"{duration(worst['dur_ns'])}",
        extra,
        whole,
        base=f"of the {duration(whole)} that all steps but the first took",
    )


RULES = (
    Rule(
        "waiting-for-data",
        waiting_for_data,
        (0.10, 0.15, 0.30),
        "more DataLoader workers (num_workers, prefetch_factor, persistent_workers), cheaper "
        "decoding, or data closer to the node; the findings about I/O show which",
    ),
    Rule(
        "worker-start",
        worker_start,
        (0.05, 0.15, 0.30),
        "fork or forkserver instead of spawn, fewer imports in the main module, a smaller dataset "
        "object, or fewer workers; persistent_workers=True keeps workers between epochs",
    ),
    Rule(
        "checkpoint-stalls",
        checkpoint_stalls,
        (0.05, 0.10, 0.25),
        "checkpoint less often or asynchronously, or let each rank write its part to fast storage",
    ),
    Rule(
        "communication",
        _part_of_steps("communication_ns", "Communication takes"),
        (0.25, 0.35, 0.50),
        "larger batches per rank, gradient accumulation, overlap with the backward pass, or find "
        "the rank that the others wait for",
    ),
    Rule(
        "transfers",
        _part_of_steps("transfer_ns", "Copying to and from devices takes"),
        (0.15, 0.25, 0.40),
        "pinned memory and non_blocking copies, or preprocessing on the device",
    ),
    Rule(
        "unattributed",
        _part_of_steps("unattributed_ns", "Untraced work takes"),
        (0.30, 2.0, 2.0),
        "annotate the code between the regions, or profile it",
    ),
    Rule(
        "uneven-steps",
        uneven_steps,
        (0.10, 0.20, 0.40),
        "look at these steps in the timeline: checkpoints, logging, a new shard, a full page cache",
    ),
)

"""Rules about training: steps, and what they wait for."""

from __future__ import annotations

from dftracer._format import counted, duration, percent, size
from dftracer.reports.dataloader_workers import at_a_time, waits
from dftracer.reports.findings.facts import (
    Case,
    Check,
    Facts,
    Row,
    Rule,
    median,
    shown_path,
    sum_of,
)
from dftracer.reports.slow_steps import LEAST_WAIT
from dftracer.reports.whatif import best_change, gain

# Causes of slow steps, as the end of "8 of them …", and what to try.
CAUSES = {
    "reading": (
        "reading",
        "move this data closer (a local disk, fewer and larger reads), or read ahead: more "
        "workers, or a larger prefetch_factor",
    ),
    "decoding": (
        "decoding",
        "cheaper decoding or transforms, decoded data in a cache, or more DataLoader workers",
    ),
    "collating": ("collating", "a cheaper collate_fn, or smaller batches"),
    "garbage collection": (
        "collecting garbage",
        "fewer Python objects in the dataset, gc.freeze() before training, or gc.disable() in "
        "workers",
    ),
    "not yet begun": (
        "before a worker began their batch",
        "a larger prefetch_factor, so that workers have something to do while training catches up",
    ),
    "waiting for its turn": (
        "behind another batch in the queue",
        "smaller batches in the queue: return tensors and not Python objects, or pin memory less",
    ),
    "queue transfer": (
        "for the transfer from the worker",
        "smaller samples, tensors in place of Python objects, or batches in shared memory",
    ),
    "pinning": ("for pinned memory", "pin_memory=False, or smaller batches"),
    "too few workers": (
        "with too few workers",
        "more DataLoader workers (num_workers), or cheaper reading and decoding: every worker was "
        "busy",
    ),
    "first batch": (
        "for the first batches of a pass",
        "fewer and longer passes, persistent_workers=True, or smaller first batches",
    ),
    "unattributed": (
        "for reasons that are not traced",
        "trace the workers (dftracer run --torch), and annotate what the dataset does",
    ),
}

# What making a batch consists of.
MAKING = ("reading", "decoding", "collating")

RESTARTED = "restarted for each pass over the data (persistent_workers is off)"


def waiting_for_data(facts: Facts) -> Case | None:
    started = waits(facts.starts)
    steps = facts.tables["steps"]
    waited_each = [step["fetch_ns"] - started.get(_key(step), 0) for step in steps]
    waited, whole = sum(waited_each), facts.split["dur_ns"]
    if not waited:
        return None
    base = f"of the {duration(whole)} that training steps took"
    late = [
        {**row, "late_ns": row["late_ns"] - started.get(_key(row), 0)}
        for row in facts.tables["slow_steps"]
        if row["cause"] in CAUSES and _waited(row)
    ]
    late = [row for row in late if row["late_ns"] >= LEAST_WAIT]
    if late:
        return _late_steps(facts, late, (waited, whole, base))
    return Case(
        f"Training waits for data for {percent(waited / whole)} {base}",
        f"{counted(len(steps), 'step')} spent {duration(waited)} fetching batches; the median wait "
        f"was {duration(median(waited_each))}, the longest "
        f"{duration(max(waited_each))}{_first(steps, waited_each)}; {_workers(facts)}",
        waited,
        whole,
        base=base,
    )


def _waited(row: Row) -> bool:
    """Whether it is late because of its batch, and not slow by itself."""
    return row["batch"] is not None


def _late_steps(facts: Facts, late: list[Row], time: tuple[int, int, str]) -> Case:
    """With lineage: which steps waited, and for what."""
    waited, whole, base = time
    groups: dict[str, list[Row]] = {}
    for row in late:
        groups.setdefault(row["cause"], []).append(row)
    order = sorted(groups, key=lambda cause: -sum_of(groups[cause], "late_ns"))
    top = groups[order[0]]
    files: dict[str, int] = {}
    for row in top:
        if row["file"] is not None:
            files[row["file"]] = files.get(row["file"], 0) + row["late_ns"]
    words, advice = CAUSES[order[0]]
    busy = _busy_with(facts, top) if order[0] == "too few workers" else None
    if busy is not None:
        doing, files = busy
        words += f" that were {CAUSES[doing][0]}"
        advice = CAUSES[doing][1] if doing == "reading" else advice
    file = max(files, key=lambda name: files[name], default=None)
    if file is not None and 2 * files[file] >= sum(files.values()) and busy is not None:
        words += f" {shown_path(file)}"
    elif file is not None and 2 * files[file] >= sum_of(top, "late_ns"):
        top = [row for row in top if row["file"] == file]
        words += f" {shown_path(file)}"
    each = ", ".join(
        f"{cause} {len(groups[cause]):,} ({duration(sum_of(groups[cause], 'late_ns'))})"
        for cause in order
    )
    steps = counted(len(facts.tables["steps"]), "step")
    worst = max(late, key=lambda row: row["late_ns"])
    if len(top) < len(late):
        words = f"{len(top):,} of them {words} ({duration(sum_of(top, 'late_ns'))})"
    told = sum_of(late, "late_ns")
    rest = f"; other waits: {duration(waited - told)}" if waited > told else ""
    return Case(
        f"{len(late):,} of {steps} waited {duration(told)} for data: {words}",
        f"late steps by cause: {each}{rest}; the latest: {worst['chain']}; {_workers(facts)}",
        waited,
        whole,
        base,
        advice=advice + _gain(facts),
        files=tuple(sorted(files, key=lambda name: -files[name])),
    )


def _gain(facts: Facts) -> str:
    """What the best change of the loader's settings would gain, as the end of an advice."""
    best = best_change(facts.tables["whatif"])
    return f". Predicted with {gain([best], best['change'])}" if best is not None else ""


def _busy_with(facts: Facts, late: list[Row]) -> tuple[str, dict[str, int]] | None:
    """What workers spent most of the time on in the batches of these steps, and on which files."""
    keys = {(row["process"], row["loader"], row["pass"], row["batch"]) for row in late}
    made = [
        batch
        for batch in facts.tables["batches"]
        if (batch["process"], batch["loader"], batch["pass"], batch["batch"]) in keys
    ]
    spent = {part: sum(batch[f"{part}_ns"] or 0 for batch in made) for part in MAKING}
    doing = max(spent, key=lambda part: spent[part])
    if not spent[doing]:
        return None
    files: dict[str, int] = {}
    for batch in made if doing == "reading" else ():
        if batch["file"] is not None:
            files[batch["file"]] = files.get(batch["file"], 0) + (batch["file_ns"] or 0)
    return doing, files


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
    starts = waits(facts.starts)
    waited, whole = sum(starts.values()), facts.split["dur_ns"]
    if not waited:
        return None
    late = sum(each > 0 for each in starts.values())
    longest = max(start.waited_ns for start in facts.starts)
    most = max(start.workers for start in facts.starts)
    base = f"of the {duration(whole)} that training steps took"
    evidence = (
        f"{late:,} of {counted(len(facts.tables['steps']), 'step')} waited {duration(waited)} for "
        f"the first item of new workers; {counted(len(facts.starts), 'start')} of "
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
    written = [file for file in facts.tables["files"] if file["write_bytes"]]
    written.sort(key=lambda file: (-file["write_bytes"], file["fname"]))
    most = "".join(
        f"; the largest file written is {shown_path(file['fname'])}: {size(file['write_bytes'])}"
        for file in written[:1]
    )
    return Case(
        "Checkpoints stop the program",
        f"{counted(sum_of(calls, 'count'), 'checkpoint')} took {duration(taken)}; the longest, "
        f"{longest['name']}, {duration(longest['max_ns'])}{most}",
        taken,
        whole,
        base=f"of the {duration(whole)} that main processes took",
        files=tuple(file["fname"] for file in written),
    )


def garbage_collection(facts: Facts) -> Case | None:
    steps = facts.tables["steps"]
    taken, whole = facts.split["gc_ns"], facts.split["dur_ns"]
    if not taken:
        return None
    base = f"of the {duration(whole)} that training steps took"
    most = max(steps, key=lambda step: step["gc_ns"])
    return Case(
        f"Garbage collection takes {percent(taken / whole)} {base}",
        f"{duration(taken)} in {sum(step['gc_ns'] > 0 for step in steps):,} of "
        f"{counted(len(steps), 'step')}, on the training thread; the most, {_step(most)}, "
        f"{duration(most['gc_ns'])}",
        taken,
        whole,
        base,
    )


def evaluation(facts: Facts) -> Case | None:
    epochs = facts.tables["epochs"]
    taken = sum_of(epochs, "evaluation_ns")
    whole = taken + facts.split["dur_ns"]
    if not taken:
        return None
    passes = [row for row in facts.tables["slow_steps"] if row["cause"] == "evaluation"]
    base = f"of the {duration(whole)} that training steps and evaluation took"
    longest = max(passes, key=lambda row: row["late_ns"], default=None)
    worst = f"; the longest: {longest['chain']}" if longest else ""
    return Case(
        f"Evaluation takes {percent(taken / whole)} {base}",
        f"{duration(taken)} in {counted(len(passes) or len(epochs), 'pass', 'passes')} over the "
        f"validation set, {duration(facts.split['dur_ns'])} in "
        f"{counted(len(facts.tables['steps']), 'step')} of training{worst}",
        taken,
        whole,
        base,
    )


def _step(step: Row) -> str:
    epoch = f" of epoch {step['epoch']}" if step["epoch"] is not None else ""
    return f"step {step['step']}{epoch}"


def unattributed(facts: Facts) -> Case | None:
    """Without I/O calls and garbage collections between regions, which are traced."""
    steps = facts.tables["steps"]
    known = [min(step["loose_io_ns"] + step["gc_ns"], step["unattributed_ns"]) for step in steps]
    rest = [{**step, "rest": step["unattributed_ns"] - k} for step, k in zip(steps, known)]
    return _parts(facts, rest, "rest", "Untraced work takes")


def _part_of_steps(column: str, title: str) -> Check:
    return lambda facts: _parts(facts, facts.tables["steps"], column, title)


def _parts(facts: Facts, steps: list[Row], column: str, title: str) -> Case | None:
    taken, whole = sum_of(steps, column), facts.split["dur_ns"]
    if not taken:
        return None
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


def _communication(facts: Facts) -> Case | None:
    """Waiting for a late rank is not communication: that has a rule of its own."""
    steps = [
        {**step, "communication_ns": step["communication_ns"] - step["waited_ns"]}
        for step in facts.tables["steps"]
    ]
    return _part_of_steps("communication_ns", "Communication takes")(
        Facts({**facts.tables, "steps": steps})
    )


def uneven_steps(facts: Facts) -> Case | None:
    # The first step of a process compiles and warms up; starting workers has its own rule, and so
    # have waits whose cause is known.
    later, seen, started = [], set(), waits(facts.starts)
    known = bool(facts.tables["batches"])
    for step in facts.tables["steps"]:
        if step["process"] in seen:
            waited = step["fetch_ns"] if known else started.get(_key(step), 0)
            later.append({**step, "dur_ns": step["dur_ns"] - waited})
        seen.add(step["process"])
    usual = median([step["dur_ns"] for step in later])
    slow = [step for step in later if step["dur_ns"] > 3 * usual]
    if len(later) < 10 or not slow:
        return None
    extra, whole = sum_of(slow, "dur_ns") - usual * len(slow), sum_of(later, "dur_ns")
    worst = max(slow, key=lambda step: step["dur_ns"])
    without = ", waits for data aside" if known else ""
    return Case(
        f"{len(slow):,} of {counted(len(later), 'step')} took more than three times the median",
        f"the median step takes {duration(usual)}{without}; the slow ones took "
        f"{duration(extra)} more; the longest, step {worst['step']} of epoch {worst['epoch']}, "
        f"took {duration(worst['dur_ns'])}{_causes_of(facts, slow) if known else ''}",
        extra,
        whole,
        base=f"of the {duration(whole)} that all steps but the first took{without}",
        estimated=True,  # compared with the median
    )


def _causes_of(facts: Facts, slow: list[Row]) -> str:
    """What made these steps slow, as far as it is known."""
    keys = {_key(step) for step in slow}
    counts: dict[str, int] = {}
    for row in facts.tables["slow_steps"]:
        if _key(row) in keys and not _waited(row) and row["cause"] != "evaluation":
            counts[row["cause"]] = counts.get(row["cause"], 0) + 1
    if not counts:
        return ""
    order = sorted(counts, key=lambda cause: (-counts[cause], cause))
    return f"; what took longer: {', '.join(f'{c} in {counts[c]:,}' for c in order)}"


RULES = (
    Rule(
        "waiting-for-data",
        waiting_for_data,
        (0.10, 0.15, 0.30),
        "more DataLoader workers (num_workers, prefetch_factor, persistent_workers), cheaper "
        "decoding, or data closer to the node; the findings about I/O show which",
        explained_by=("slow-worker", "unbalanced-rank"),
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
        _communication,
        (0.25, 0.35, 0.50),
        "larger batches per rank, gradient accumulation, overlap with the backward pass, or find "
        "the rank that the others wait for",
        explained_by=("unbalanced-rank",),
    ),
    Rule(
        "transfers",
        _part_of_steps("transfer_ns", "Copying to and from devices takes"),
        (0.15, 0.25, 0.40),
        "pinned memory and non_blocking copies, or preprocessing on the device",
    ),
    Rule(
        "unattributed",
        unattributed,
        (0.30, 2.0, 2.0),
        "annotate the code between the regions, or profile it",
    ),
    Rule(
        "garbage-collection",
        garbage_collection,
        (0.05, 0.10, 0.25),
        "fewer Python objects, gc.freeze() before training, or gc.disable() and a collection "
        "between epochs",
    ),
    Rule(
        "evaluation",
        evaluation,
        (0.25, 0.35, 0.50),
        "evaluate less often, on a part of the validation set, or with larger batches",
    ),
    Rule(
        "uneven-steps",
        uneven_steps,
        (0.10, 0.20, 0.40),
        "look at these steps in the timeline: checkpoints, logging, a new shard, a full page cache",
        explained_by=("checkpoint-stalls", "garbage-collection", "evaluation"),
    ),
)

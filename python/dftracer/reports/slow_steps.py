"""Steps that were late, and why: the chain from a step to its batch, its worker and its file.

A step is late if it waited for a batch, or took longer than usual without its waits. Its cause is
judged from the tables of steps and batches; docs/howto/slow-steps.md explains every cause.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dftracer._format import counted, duration, rate
from dftracer._names import shorten
from dftracer.reports.schema import SCHEMAS

Row = dict[str, Any]
Key = tuple[int, int, int, int]  # process, loader, pass, batch

# Waits that are shorter than this, or than this share of the median step, do not make a step late.
LEAST_WAIT = 1_000_000
LEAST_SHARE = 0.05
# A step is slow without its waits if it takes so much longer than the median, and so many times it.
LEAST_EXCESS = 5_000_000
EXCESS_TIMES = 1.5
# A batch is slow if making it takes so many times the median; with fewer batches there is no usual.
SLOW_TIMES = 1.5
LEAST_BATCHES = 4
# A worker that pauses for less than this share of a usual batch is busy all the time.
PAUSE_SHARE = 0.1
# Reads of a first pass are cold if they are slower than COLD, and later passes over the same file
# are as fast as memory, and so many times as fast. Anything less may have another reason.
COLD_TIMES = 4
COLD = 500e6
MEMORY = 1e9
# Batches after a late one that are looked at; loaders keep fewer ahead.
MOST_AHEAD = 256
# Bytes below which a rate says nothing.
LEAST_RATED = 64 << 10

# The parts of a wait, in the order of docs/report.md: column, cause, words after its time.
WAITS = {
    "waited_reading_ns": ("reading", "reading"),
    "waited_decoding_ns": ("decoding", "decoding"),
    "waited_collating_ns": ("collating", "collating"),
    "waited_gc_ns": ("garbage collection", "collecting garbage"),
    "waited_start_ns": ("worker start-up", "until the worker had started"),
    "waited_dispatch_ns": ("not yet begun", "until the worker began it"),
    "waited_turn_ns": ("waiting for its turn", "behind another batch in the queue"),
    "waited_queue_ns": ("queue transfer", "moving it to the training process"),
    "waited_pinning_ns": ("pinning", "pinning its memory"),
    "waited_other_ns": ("unattributed", "unattributed"),
}
# Those in which the worker makes the batch.
MAKING = (
    *("waited_reading_ns", "waited_decoding_ns", "waited_collating_ns", "waited_gc_ns"),
    "waited_other_ns",
)
WORK = {
    "reading_ns": "reading",
    "decoding_ns": "decoding",
    "collating_ns": "collating",
    "gc_ns": "garbage collection",
    "other_ns": "unattributed",
}
# Of the time of a step without its waits.
OWN = {
    "compute_ns": "compute",
    "communication_ns": "communication",
    "transfer_ns": "transfer",
    "checkpoint_ns": "checkpoint",
    "unattributed_ns": "unattributed",
}
STRAGGLER = "a straggling rank"
# What a rank did before it came late to a collective: column, words after its time.
BEFORE = {
    "fetch_ns": "waiting for data",
    "compute_ns": "computing",
    "checkpoint_ns": "in a checkpoint",
    "transfer_ns": "copying to or from devices",
    "communication_ns": "in other communication",
    "io_ns": "in I/O calls",
    "unattributed_ns": "outside traced regions",
}
# Causes of waits, as opposed to those of steps that are slow without them.
DATA_CAUSES = (*(cause for cause, _ in WAITS.values()), "too few workers", "first batch")


def find(
    tables: dict[str, Any],
    evaluations: Iterable[tuple[Any, ...]] = (),
    stragglers: Iterable[Row] = (),
) -> list[tuple[Any, ...]]:
    """Rows of the table, latest first. evaluations: (process, start, duration)."""
    late_ranks = {(row["process"], row["start_ns"]): row for row in stragglers}
    steps = _by_process(tables["steps"].dicts())
    loaders = _Loaders(tables["batches"].dicts(), tables["batch_files"].dicts())
    found: list[Row] = []
    for process, rows in steps.items():
        found += _late(rows, loaders.of_process.get(process, []), loaders)
        found += _kept_waiting(rows, late_ranks)
        found += _slow(rows)
        found += _evaluated(rows, [e for e in evaluations if e[0] == process])
    found.sort(key=lambda row: (-row["late_ns"], row["process"], row["start_ns"]))
    names = [column.name for column in SCHEMAS["slow_steps"].columns]
    return [tuple(row.get(name) for name in names) for row in found]


def _by_process(rows: Iterable[Row]) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = {}
    for row in rows:
        found.setdefault(row["process"], []).append(row)
    return found


def median(values: Sequence[int]) -> int:
    return sorted(values)[len(values) // 2] if values else 0


def _key(batch: Row) -> Key:
    return batch["process"], batch["loader"], batch["pass"], batch["batch"]


@dataclass
class _Usual:
    """Medians of the batches of one loader."""

    work: int = 0
    parts: dict[str, int] = field(default_factory=dict)
    count: int = 0


class _Loaders:
    """Batches by process, by worker and by file."""

    def __init__(self, batches: Sequence[Row], files: Sequence[Row]) -> None:
        self.of_process: dict[int, list[Row]] = {}
        self._usual: dict[tuple[int, int], _Usual] = {}
        self._of_worker: dict[tuple[int, int, int, int], list[Row]] = {}
        self._begun: dict[tuple[int, int, int, int], list[int]] = {}
        self._workers: dict[tuple[int, int, int], list[int]] = {}
        self._known: dict[Key, Row] = {}
        made: dict[tuple[int, int], list[Row]] = {}
        for batch in batches:
            self._known[_key(batch)] = batch
            if batch["wanted_ns"] is not None:
                self.of_process.setdefault(batch["process"], []).append(batch)
            if batch["work_ns"] is not None:
                made.setdefault((batch["process"], batch["loader"]), []).append(batch)
                if batch["worker"] is not None:
                    key = (*_key(batch)[:3], batch["worker"])
                    self._of_worker.setdefault(key, []).append(batch)
        for loader, rows in made.items():
            parts = {part: median([row[part] for row in rows]) for part in WORK}
            self._usual[loader] = _Usual(median([row["work_ns"] for row in rows]), parts, len(rows))
        for of, rows in self._of_worker.items():
            rows.sort(key=lambda row: row["begun_ns"])
            self._begun[of] = [row["begun_ns"] for row in rows]
            self._workers.setdefault(of[:3], []).append(of[3])
        self._rates: dict[str, list[tuple[int, float]]] = {}
        for file in files:
            if file["read_bytes"] >= LEAST_RATED and file["total_ns"]:
                speed = file["read_bytes"] * 1e9 / file["total_ns"]
                self._rates.setdefault(file["fname"], []).append((file["pass"], speed))
        speeds = sorted(speed for rows in self._rates.values() for _, speed in rows)
        self._speed = speeds[len(speeds) // 2] if len(speeds) >= LEAST_BATCHES else 0.0

    def usual(self, batch: Row) -> _Usual:
        return self._usual.get((batch["process"], batch["loader"]), _Usual())

    def is_slow(self, batch: Row) -> bool:
        """Whether making it took longer than usual."""
        usual = self.usual(batch)
        work = batch["work_ns"] or 0
        more = work - usual.work
        return (
            usual.count >= LEAST_BATCHES and work > SLOW_TIMES * usual.work and more >= LEAST_WAIT
        )

    def excess(self, batch: Row) -> str:
        """What took longer than usual of a slow batch."""
        usual = self.usual(batch).parts
        return WORK[max(WORK, key=lambda part: (batch[part] or 0) - usual.get(part, 0))]

    def before(self, batch: Row) -> Row | None:
        """What its worker made before it, in the same pass."""
        key = (*_key(batch)[:3], batch["worker"])
        place = bisect.bisect_left(self._begun[key], batch["begun_ns"])
        return self._of_worker[key][place - 1] if place else None

    def workers(self, batch: Row) -> int:
        return len(self._workers.get(_key(batch)[:3], ()))

    def all_busy(self, batch: Row) -> bool:
        """Whether every worker was making a batch when this one was wanted."""
        pause = PAUSE_SHARE * self.usual(batch).work
        for worker in self._workers.get(_key(batch)[:3], ()):
            key = (*_key(batch)[:3], worker)
            place = bisect.bisect_right(self._begun[key], batch["wanted_ns"])
            if not place:
                return False
            ended = self._of_worker[key][place - 1]["ready_ns"]
            # A worker without another batch in this pass has done its part.
            rests = ended <= batch["wanted_ns"] and place < len(self._begun[key])
            if rests and self._begun[key][place] - ended > pause:
                return False
        return True

    def ahead(self, batch: Row) -> int:
        """Batches that come after it, but were ready before it: an order kept them back."""
        found = 0
        process, loader, number, place = _key(batch)
        for following in range(place + 1, place + 1 + MOST_AHEAD):
            other = self._known.get((process, loader, number, following))
            if other is None:
                break
            kept = other["handed_ns"] is None or other["handed_ns"] > batch["handed_ns"]
            found += (
                other["ready_ns"] is not None and kept and other["ready_ns"] < batch["ready_ns"]
            )
        return found

    def rate(self, batch: Row) -> str:
        """How fast its costliest file was read, and whether that is cold or unusual."""
        if not batch["file_ns"] or (batch["file_bytes"] or 0) < LEAST_RATED:
            return ""
        speed = batch["file_bytes"] * 1e9 / batch["file_ns"]
        rows = self._rates.get(batch["file"], [])
        first = min((number for number, _ in rows), default=0)
        later = sorted(value for number, value in rows if number > first)
        warm = later[len(later) // 2] if later and batch["pass"] == first else 0.0
        if speed < COLD and warm >= max(MEMORY, COLD_TIMES * speed):
            return f" (cold, {rate(speed)})"
        if self._speed >= COLD_TIMES * speed:
            return f" ({rate(speed)}, the median is {rate(self._speed)})"
        return f" ({rate(speed)})"


def _named(step: Row) -> str:
    return f"step {step['step']}" if step["step"] is not None else "the step"


def _row(
    step: Row, late: int, cause: str, chain: str, batch: Row | None = None, **more: Any
) -> Row:
    row = {key: step[key] for key in ("process", "rank", "epoch", "step", "start_ns", "dur_ns")}
    row |= {"late_ns": late, "cause": cause, "chain": chain, **more}
    if batch is not None:
        row |= {key: batch[key] for key in ("loader", "pass", "batch", "worker")}
    return row


def _late(steps: Sequence[Row], batches: Sequence[Row], loaders: _Loaders) -> Iterator[Row]:
    """Steps that waited for their batches."""
    wanted = sorted(batches, key=lambda batch: batch["wanted_ns"])
    moments = [batch["wanted_ns"] for batch in wanted]
    least = max(LEAST_WAIT, LEAST_SHARE * median([step["dur_ns"] for step in steps]))
    before: Row | None = None
    for step in steps:
        low = bisect.bisect_left(moments, step["start_ns"])
        high = bisect.bisect_left(moments, step["start_ns"] + step["dur_ns"])
        used = wanted[low:high]
        late = sum(batch["wait_ns"] for batch in used)
        if used and late >= least:
            batch = max(used, key=lambda one: one["wait_ns"])
            cause, culprit = _cause(batch, loaders)
            file = _file(culprit) if cause == "reading" else None
            chain = _chain(step, before, late, batch, (cause, culprit), loaders)
            yield _row(step, late, cause, chain, batch, file=file)
        before = step


def _cause(batch: Row, loaders: _Loaders) -> tuple[str, Row]:
    """The cause of a wait, and the batch that had it: this one, or one before it."""
    top = max(WAITS, key=lambda part: batch[part])
    if top not in MAKING or batch["begun_ns"] is None:
        return WAITS[top][0], batch
    if loaders.is_slow(batch):
        return loaders.excess(batch), batch
    # A collection here delays a batch that is ready.
    if top == "waited_gc_ns" or batch["worker"] is None:
        return WAITS[top][0], batch
    earlier = loaders.before(batch)
    if earlier is None:
        return "first batch", batch
    if loaders.is_slow(earlier):
        return loaders.excess(earlier), earlier
    if loaders.all_busy(batch):
        return "too few workers", batch
    return WAITS[top][0], batch


def _file(batch: Row) -> str | None:
    """The file that took most of the time of reading."""
    if batch["file"] is None or 2 * (batch["file_ns"] or 0) < (batch["reading_ns"] or 0):
        return None
    return str(batch["file"])


def _reading(batch: Row, loaders: _Loaders) -> str:
    file = _file(batch)
    if file is not None:
        return f"reading {shorten(file, 48)}{loaders.rate(batch)}"
    return f"reading {counted(batch['files'], 'file')}" if batch["files"] else "reading"


def _chain(
    step: Row,
    before: Row | None,
    late: int,
    batch: Row,
    why: tuple[str, Row],
    loaders: _Loaders,
) -> str:
    cause, culprit = why
    who = f", worker {batch['worker']}" if batch["worker"] is not None else ", without workers"
    parts = sorted(((batch[part], part) for part in WAITS if batch[part]), reverse=True)
    shown: list[str] = []
    for value, part in parts:
        if not shown or 20 * value >= batch["wait_ns"]:
            words = _reading(batch, loaders) if part == "waited_reading_ns" else WAITS[part][1]
            shown.append(f"{duration(value)} {words}")
    text = (
        f"{_named(step)} late by {duration(late)}: batch {batch['batch']}{who}, {', '.join(shown)}"
    )
    return text + _readiness(batch, before) + _reason(batch, cause, culprit, loaders)


def _readiness(batch: Row, before: Row | None) -> str:
    if batch["ready_ns"] is None or batch["worker"] is None:
        return ""
    since = batch["ready_ns"] - batch["wanted_ns"]
    if since <= 0:
        return f"; its batch had been ready for {duration(-since)}"
    follows = before is not None and before["start_ns"] + before["dur_ns"] == batch["wanted_ns"]
    moment = f"{_named(before)} ended" if before is not None and follows else "it was wanted"
    return f"; its batch was not ready until {duration(since)} after {moment}"


def _reason(batch: Row, cause: str, culprit: Row, loaders: _Loaders) -> str:
    """What the parts of the wait do not say."""
    if culprit is not batch:
        took = f"batch {culprit['batch']}, which took {duration(culprit['work_ns'])}"
        part = next(column for column, name in WORK.items() if name == cause)
        words = _reading(culprit, loaders) if cause == "reading" else cause
        return (
            f"; worker {batch['worker']} was late with {took} ({duration(culprit[part])} {words})"
        )
    if cause == "too few workers":
        count = counted(loaders.workers(batch), "worker was", "workers were")
        return f"; all {count} busy" if loaders.workers(batch) > 1 else "; its worker was busy"
    if cause == "first batch":
        return f"; nothing was made ahead at the beginning of pass {batch['pass']}"
    if cause in WORK.values() and loaders.is_slow(batch):
        usual = loaders.usual(batch).work
        text = f"; making it took {duration(batch['work_ns'])}, usually {duration(usual)}"
        kept = loaders.ahead(batch) if batch["worker"] is not None else 0
        waited = counted(kept, "later batch was", "later batches were")
        return f"{text}; {waited} ready before it" if kept else text
    return ""


def _kept_waiting(steps: Sequence[Row], late_ranks: dict[tuple[int, int], Row]) -> Iterator[Row]:
    """Steps that waited for a rank which came late to a collective."""
    least = max(LEAST_WAIT, LEAST_SHARE * median([step["dur_ns"] for step in steps]))
    for step in steps:
        late = late_ranks.get((step["process"], step["start_ns"]))
        if late is None or step["waited_ns"] < least:
            continue
        who = f"rank {late['rank']}" if late["rank"] is not None else "another process"
        chain = (
            f"{_named(step)} late by {duration(step['waited_ns'])}: {who} came "
            f"{duration(late['late_ns'])} late to {_collective(late)}{_before(late)}"
        )
        yield _row(step, step["waited_ns"], STRAGGLER, chain, straggler=late["rank"])


def _collective(late: Row) -> str:
    text = f"{late['operation']} {late['seq']}"
    return (
        f"{text} of {late['function']}"
        if late["function"] not in (None, late["operation"])
        else text
    )


def _before(late: Row) -> str:
    """What it did longer than the others, if that explains most of its lateness."""
    top = max(BEFORE, key=lambda part: late[part] or 0)
    more = late[top] or 0
    if 2 * more < late["late_ns"]:
        return ""
    return f"; before, it spent {duration(more)} more than the others {BEFORE[top]}"


def _slow(steps: Sequence[Row]) -> Iterator[Row]:
    """Steps that took longer than usual, apart from waits."""
    steps = [
        {**step, "communication_ns": step["communication_ns"] - step["waited_ns"]} for step in steps
    ]
    own = [step["dur_ns"] - step["fetch_ns"] - step["waited_ns"] for step in steps]
    usual = median(own)
    if len(steps) < LEAST_BATCHES:
        return
    parts = {part: median([step[part] for step in steps]) for part in OWN}
    collected = median([step["gc_ns"] or 0 for step in steps])
    for at, (step, time) in enumerate(zip(steps, own)):
        more = time - usual
        if more < LEAST_EXCESS or time <= EXCESS_TIMES * usual:
            continue
        grown = {part: step[part] - parts[part] for part in OWN}
        top = max(grown, key=lambda part: grown[part])
        cause, more_of_it = OWN[top], duration(max(grown[top], 0))
        words = f"{cause} took {more_of_it} more"
        if cause == "unattributed":
            words = f"{more_of_it} more outside traced regions"
        gc = (step["gc_ns"] or 0) - collected
        if 2 * gc >= more:
            cause = "garbage collection"
            words += f", {duration(gc)} of it collecting garbage"
        elif at == 0:
            cause, words = "first step", f"{words}, in the first step of the process"
        chain = f"{_named(step)} took {duration(more)} longer than usual: {words}"
        yield _row(step, more, cause, chain)


def _evaluated(steps: Sequence[Row], periods: Iterable[tuple[Any, ...]]) -> Iterator[Row]:
    """Evaluation stops training after a step, or before the first one."""
    begins = [step["start_ns"] for step in steps]
    for _, start, spent in periods:
        if spent < LEAST_EXCESS:
            continue
        place = bisect.bisect_right(begins, start)
        step = steps[max(place - 1, 0)]
        side = "after" if place else "before"
        yield _row(
            step, spent, "evaluation", f"evaluation {side} {_named(step)} took {duration(spent)}"
        )

"""What a report knows of a loader that feeds training steps, as the model wants it."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dftracer.reports.whatif.loader import Setup

Row = dict[str, Any]

# Fewer steps than this say nothing about other runs.
LEAST_STEPS = 12
# Training processes that are looked at: those that waited longest.
MOST_PROCESSES = 4
# Share of the batches whose making may be unknown.
MOST_UNKNOWN = 0.01
PREFETCH = 2  # PyTorch's default


@dataclass(eq=False)
class Pass:
    """One pass over a loader. Lists are per batch: work in the order of sending, the rest in the
    order of handing over."""

    reading: list[float] = field(default_factory=list)
    decoding: list[float] = field(default_factory=list)
    other: list[float] = field(default_factory=list)
    bytes: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    own: list[float] = field(default_factory=list)
    # If workers were started for it: how long that took, and from there until each could begin.
    start: float | None = None
    ups: list[float] = field(default_factory=list)
    lead: float = 0.0  # from the end of starting them until the first batch was wanted
    # What ending the workers of the pass before it took; and whether this, and starting these, is
    # part of a step: the last step of a pass ends with its last event, which may be the next start.
    shutdown: float = 0.0
    in_step: bool = False


@dataclass
class Recorded:
    """A loader of one training process."""

    process: int
    rank: int | None
    loader: int
    setup: Setup
    persistent: bool
    passes: list[Pass]
    steps: int  # of the process
    steps_ns: float
    # Of the work of batches without reading, and of reading, the share that uses a processor.
    cpu_share: float = 1.0
    read_cpu_share: float = 0.0
    own_cpu_share: float = 0.0
    cpu_known: bool = True
    imports: bool = False  # whether new workers import modules: they were not forked
    cores: int | None = None  # that the process may use
    sharing: int = 1  # training processes on its host
    assumed: list[str] = field(default_factory=list)

    @property
    def batches(self) -> int:
        return sum(len(one.waits) for one in self.passes)

    @property
    def restarts(self) -> bool:
        return sum(one.start is not None for one in self.passes) > 1


class Unknown(Exception):
    """Why nothing can be predicted."""


def recorded(tables: dict[str, Any]) -> list[Recorded]:
    """Every loader that feeds steps. Raises Unknown."""
    steps = _steps(tables)
    if not steps:
        raise Unknown("the trace has no training steps")
    if not len(tables["batches"]):
        raise Unknown("the trace does not say how batches were made: record it with `--torch`")
    found = _Reader(tables, steps).loaders()
    if not found:
        raise Unknown("no training step uses a batch whose making is known")
    return found


def _steps(tables: dict[str, Any]) -> dict[int, list[tuple[int, int]]]:
    """Beginning and end of the steps of each process."""
    table = tables["steps"]
    places = [table.columns.index(name) for name in ("process", "start_ns", "dur_ns")]
    found: dict[int, list[tuple[int, int]]] = {}
    for row in table.rows:
        process, start, dur = (row[place] for place in places)
        found.setdefault(process, []).append((start, start + dur))
    return found


WANTED = (
    *("process", "loader", "pass", "batch", "worker", "worker_process", "wanted_ns", "begun_ns"),
    *("ready_ns", "handed_ns", "reading_ns", "decoding_ns", "work_ns", "read_bytes"),
)


class _Reader:
    def __init__(self, tables: dict[str, Any], steps: dict[int, list[tuple[int, int]]]) -> None:
        self._steps = steps
        self._processes = {row["process"]: row for row in tables["processes"]}
        self._pins = {
            row["process"]: row["total_ns"]
            for row in tables["input_overlap"]
            if row["activity"] == "pinning"
        }
        self._starts: dict[tuple[int, int, int], Row] = {
            (row["process"], row["loader"], row["pass"]): row for row in tables["worker_starts"]
        }
        table = tables["batches"]
        places = [table.columns.index(name) for name in WANTED]
        self._passes: dict[tuple[int, int], dict[int, list[Row]]] = {}
        self._made: dict[int, int] = {}
        for row in table.rows:
            one = dict(zip(WANTED, [row[place] for place in places]))
            if one["process"] in steps:
                of = self._passes.setdefault((one["process"], one["loader"]), {})
                of.setdefault(one["pass"], []).append(one)
                self._made[one["process"]] = self._made.get(one["process"], 0) + 1

    def loaders(self) -> list[Recorded]:
        waited: dict[int, int] = {}
        for (process, _), passes in self._passes.items():
            for row in _all(passes):
                waited[process] = waited.get(process, 0) + _wait(row)
        chosen = sorted(waited, key=lambda process: -waited[process])[:MOST_PROCESSES]
        found = []
        for (process, loader), passes in sorted(self._passes.items()):
            if process in chosen:
                one = self._loader(process, loader, passes)
                if one is not None:
                    found.append(one)
        return found

    def _loader(self, process: int, loader: int, passes: dict[int, list[Row]]) -> Recorded | None:
        steps = sorted(self._steps[process])
        begins = [begin for begin, _ in steps]

        def step_end(moment: int) -> int | None:
            place = bisect.bisect_right(begins, moment) - 1
            return steps[place][1] if place >= 0 and moment < steps[place][1] else None

        used: list[Pass] = []
        rows: dict[int, list[Row]] = {}
        for number, every in sorted(passes.items()):
            handed = [row for row in every if row["handed_ns"] is not None]
            handed.sort(key=lambda row: row["wanted_ns"])
            # Passes over other data, such as evaluation, are not part of steps.
            inside = sum(step_end(row["wanted_ns"]) is not None for row in handed)
            if not handed or 2 * inside < len(handed):
                continue
            if sum(row["work_ns"] is None for row in handed) > MOST_UNKNOWN * len(handed):
                continue
            rows[number] = handed
            used.append(self._pass((process, loader, number), handed, step_end))
            if len(used) > 1 and used[-1].start is not None:
                start = self._starts[process, loader, number]["start_ns"]
                self._settle_end(used[-2], used[-1], list(rows.values())[-2], start)
        if not used:
            return None
        about = self._processes[process]
        found = Recorded(
            process,
            about["rank"],
            loader,
            Setup(0),
            False,
            used,
            len(steps),
            float(sum(end - begin for begin, end in steps)),
        )
        self._settle(found, rows)
        return found

    def _pass(self, key: tuple[int, int, int], handed: Sequence[Row], step_end: Any) -> Pass:
        found = Pass()
        made = sorted(handed, key=lambda row: row["batch"])
        for row in made:
            reading, decoding = row["reading_ns"] or 0, row["decoding_ns"] or 0
            found.reading.append(float(reading))
            found.decoding.append(float(decoding))
            found.other.append(float(max((row["work_ns"] or 0) - reading - decoding, 0)))
            found.bytes.append(float(row["read_bytes"] or 0))
        for row, following in zip(handed, [*handed[1:], None]):
            found.waits.append(float(_wait(row)))
            end = following["wanted_ns"] if following is not None else step_end(row["wanted_ns"])
            found.own.append(float(max((end or row["handed_ns"]) - row["handed_ns"], 0)))
        start = self._starts.get(key)
        if start is not None:
            found.start = float(start["dur_ns"])
            stop = start["start_ns"] + start["dur_ns"]
            found.lead = float(max(handed[0]["wanted_ns"] - stop, 0))
            begun: dict[int, int] = {}
            for row in made:
                if row["worker"] is not None and row["begun_ns"] is not None:
                    begun.setdefault(row["worker"], row["begun_ns"])
            count = max(start["workers"] or 1, 1)
            for worker, moment in sorted(begun.items()):
                forked = start["start_ns"] + start["dur_ns"] * (worker + 1) / count
                found.ups.append(max(moment - forked, 0.0))
        return found

    def _settle_end(self, one: Pass, following: Pass, handed: Sequence[Row], start: int) -> None:
        """Tells the own time of the last batch of a pass from ending its workers, and from starting
        those of the next."""
        last = handed[-1]["handed_ns"]
        step_end = last + one.own[-1]
        following.in_step = step_end > start
        usual = sorted(one.own[:-1])
        own = float(min(one.own[-1], start - last))
        if following.in_step and usual:
            own = min(own, usual[len(usual) // 2])
        ended = [
            self._processes[row["worker_process"]]["end_ns"]
            for row in handed
            if row["worker_process"] in self._processes
        ]
        ends = max((end for end in ended if end is not None), default=0)
        following.shutdown = max(min(ends, start) - last - own, 0.0)
        if following.in_step:
            # What else is between passes stays: it is part of the step in any case.
            assert following.start is not None
            one.own[-1] = max(one.own[-1] - following.shutdown - following.start, own)

    def _settle(self, found: Recorded, passes: dict[int, list[Row]]) -> None:
        """What holds for all passes: settings, costs of handing over, processors."""
        every = [row for rows in passes.values() for row in rows]
        workers = len({row["worker"] for row in every} - {None})
        key = (found.process, found.loader)
        starts = [row for place, row in sorted(self._starts.items()) if place[:2] == key]
        start: Row = starts[0] if starts else {}
        if workers:
            workers = max(workers, start.get("workers") or 0)
        prefetch = start.get("prefetch")
        if workers and not prefetch:
            prefetch = PREFETCH
            found.assumed.append(f"prefetch_factor={PREFETCH}, which the trace does not contain")
        found.persistent = bool(start.get("persistent"))
        in_order = start.get("in_order") is not False
        limit = workers * (prefetch or 1)
        pinning = self._pins.get(found.process)
        costs = _Costs(limit if in_order else 0)
        for rows in passes.values():
            costs.add(rows)
        found.setup = Setup(
            workers,
            prefetch or PREFETCH,
            in_order,
            reach=costs.middle("reach"),
            pause=costs.middle("pause"),
            transfer=max(costs.middle("came") - costs.middle("take"), 0.0),
            take=costs.middle("take"),
            pin=pinning / self._made[found.process] if pinning and start.get("pins") else None,
        )
        self._settle_processors(found, every, start)

    def _settle_processors(self, found: Recorded, every: Sequence[Row], start: Row) -> None:
        about = self._processes[found.process]
        mains = [p for p in self._steps if self._processes[p]["host"] == about["host"]]
        found.sharing = len(mains)
        found.cores = start.get("cpus")
        work: dict[int, float] = {}
        first: dict[int, int] = {}
        for row in every:
            maker = row["worker_process"]
            if maker is not None and maker != found.process and row["work_ns"]:
                work[maker] = work.get(maker, 0.0) + row["work_ns"]
                first[maker] = min(first.get(maker, row["begun_ns"]), row["begun_ns"])
        found.imports = any(self._processes[maker]["command"] != about["command"] for maker in work)
        used = spent = 0.0
        for maker, length in work.items():
            one = self._processes[maker]
            if one["cpu_ns"] is not None and one["start_ns"] is not None:
                # A worker that was not forked imports modules before its first batch.
                imports = max(first[maker] - one["start_ns"], 0) if found.imports else 0
                used += max(one["cpu_ns"] - imports, 0)
                spent += length
        if spent:
            reading = sum(sum(one.reading) for one in found.passes)
            rest = sum(sum(one.decoding) + sum(one.other) for one in found.passes)
            cpu = min(used / spent, 1.0) * (reading + rest)
            found.cpu_share = min(cpu / rest, 1.0) if rest else 0.0
            found.read_cpu_share = max(min((cpu - rest) / reading, 1.0), 0.0) if reading else 0.0
        else:
            found.cpu_known = False
        self._settle_own(found, every)

    def _settle_own(self, found: Recorded, every: Sequence[Row]) -> None:
        """The share of its own time in which the training process uses a processor: between its
        first and its last start of workers or, if there is one, until its end."""
        about, key = self._processes[found.process], (found.process, found.loader)
        starts = [row for place, row in sorted(self._starts.items()) if place[:2] == key]
        told = [(row["start_ns"], row["cpu_ns"]) for row in starts if row["cpu_ns"] is not None]
        if len(told) == 1 and about["end_ns"] is not None and about["cpu_ns"] is not None:
            told.append((about["end_ns"], about["cpu_ns"]))
        if len(told) < 2:
            return
        (begin, before), (end, after) = told[0], told[-1]
        waited = sum(_wait(row) for row in every if begin <= row["wanted_ns"] < end)
        if end - begin > waited:
            found.own_cpu_share = max(after - before, 0) / (end - begin - waited)


class _Costs:
    """What handing over costs, from the batches that show it."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._seen: dict[str, list[float]] = {"reach": [], "pause": [], "came": [], "take": []}

    def add(self, handed: Sequence[Row]) -> None:
        made = {row["batch"]: row for row in handed}
        ready: dict[int, int] = {}
        for row in sorted(handed, key=lambda row: row["batch"]):
            if row["worker"] is None or row["begun_ns"] is None or row["ready_ns"] is None:
                continue
            wanted, came = row["wanted_ns"], row["ready_ns"]
            if came > wanted:
                self._seen["came"].append(float(row["handed_ns"] - came))
            else:
                self._seen["take"].append(float(row["handed_ns"] - wanted))
            before = ready.get(row["worker"])
            cause = made.get(row["batch"] - self._limit) if self._limit else None
            if before is not None and cause is not None:
                sent = cause["handed_ns"]
                if sent > before:
                    self._seen["reach"].append(float(max(row["begun_ns"] - sent, 0)))
                else:
                    self._seen["pause"].append(float(max(row["begun_ns"] - before, 0)))
            ready[row["worker"]] = came

    def middle(self, name: str) -> float:
        values = sorted(self._seen[name])
        return values[len(values) // 2] if values else 0.0


def _all(passes: dict[int, list[Row]]) -> Iterable[Row]:
    return (row for rows in passes.values() for row in rows)


def _wait(row: Row) -> int:
    if row["handed_ns"] is None or row["wanted_ns"] is None:
        return 0
    return int(max(row["handed_ns"] - row["wanted_ns"], 0))

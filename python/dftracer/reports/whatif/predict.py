"""Step and job times under other settings, with intervals, from what was recorded."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dftracer.reports.whatif.changes import Change
from dftracer.reports.whatif.loader import Setup, Times, simulate
from dftracer.reports.whatif.recorded import Pass, Recorded

# A prediction is refused if that of the recorded run itself is off by more than this.
MOST_OFF = 0.10
# Batches of which a pass is cut into pieces, batches that are simulated in all, and those before a
# piece that only bring the queues into their usual state.
PIECE = 150
LIMIT = 450
LEAD_IN = 64
# Replicates for the interval: resampled runs, and the batches of each. t of 95 %, for 7 degrees.
REPLICATES = 8
RESAMPLED = 64
BLOCK = 8
T_95 = 2.365
# Passes from which on whole passes are resampled, not stretches of batches.
MANY_PASSES = 5


@dataclass
class Piece:
    """Consecutive batches of a pass that are simulated together."""

    source: Pass
    begin: int
    end: int
    lead_in: int = 0  # batches before `begin` that are simulated and not counted
    weight: float = 1.0  # how many such pieces it stands for

    @property
    def starts(self) -> bool:
        return self.begin == 0


@dataclass
class Total:
    """What changes in a whole run: in the time of steps, and between them."""

    steps_ns: float
    between_ns: float


@dataclass
class Prediction:
    """Of one change, for one loader."""

    change: Change
    steps_ns: float  # of all steps of the process
    half_ns: float  # half of the 95 % interval of that
    between_ns: float  # what the time between steps changes by
    notes: list[str]


class Model:
    """A loader that was recorded, calibrated to reproduce its own run."""

    def __init__(self, found: Recorded, cores: int | None = None) -> None:
        self.found = found
        self.cores = cores or found.cores
        self._pieces = _pieces(found.passes)
        self._blocked_share = 1.0
        self.unchanged = Change()
        self._calibrate()
        self.base = self.predict(self.unchanged)

    def predict(self, change: Change) -> Prediction:
        found = self.found
        total = self._whole(change)
        steps = found.steps_ns + total.steps_ns
        half = self._spread(change) * T_95
        if change != self.unchanged:
            half += abs(self.base.steps_ns - found.steps_ns)
        if change.disk is not None and not change.each:
            # All workers share the disk. Batches that were read faster are not read slower.
            read = sum(sum(one.bytes) for one in found.passes)
            steps = max(steps, min(read * 1e9 / change.disk, found.steps_ns))
        return Prediction(change, steps, half, total.between_ns, change.notes(found, self.cores))

    # ---- Whole runs ------------------------------------------------------------------------

    def _whole(self, change: Change) -> Total:
        """What changes against the measured run."""
        more = 0.0
        for piece in self._pieces:
            measured = sum(piece.source.waits[piece.begin : piece.end]) + sum(
                piece.source.own[piece.begin : piece.end]
            )
            more += piece.weight * (self._time(piece, change) - measured)
        between = 0.0
        scale = change.setup(self.found).workers / max(self.found.setup.workers, 1)
        for number, one in enumerate(self.found.passes):
            if one.start is None:
                continue
            spent = one.start * scale + one.shutdown if self._starts(number, change) else 0.0
            changed = spent - one.start - one.shutdown
            if one.in_step:
                more += changed
            else:
                between += changed
        return Total(more, between)

    def _starts(self, number: int, change: Change) -> bool:
        """Whether workers are started for a pass."""
        started = self.found.passes[number].start is not None
        if not change.setup(self.found).workers:
            return False
        persists = self.found.persistent if change.persistent is None else change.persistent
        return started and not (persists and number > 0)

    def _time(self, piece: Piece, change: Change) -> float:
        first = piece.begin - piece.lead_in
        number = self.found.passes.index(piece.source)
        times = self._times(piece.source, first, piece.end, change)
        if first == 0 and self._starts(number, change):
            times.ready = self._ready(piece.source, change)
        run = simulate(times, self._setup(change))
        return sum(run.waits[piece.lead_in :]) + sum(run.own[piece.lead_in :])

    # ---- What is simulated -----------------------------------------------------------------

    def _setup(self, change: Change) -> Setup:
        share = self.found.own_cpu_share
        cores = (self.cores or 0) / self.found.sharing
        return replace(
            change.setup(self.found),
            cores=max(cores, 1.0) if cores else 0.0,
            main_cores=max(share, 1.0),
        )

    def _times(self, one: Pass, begin: int, end: int, change: Change) -> Times:
        found, kept = self.found, self._blocked_share
        blocked, cpu = [], []
        for place in range(begin, end):
            reading = change.reading(one.reading[place], one.bytes[place])
            rest = one.decoding[place] / change.decode + one.other[place]
            busy = rest * found.cpu_share + reading * found.read_cpu_share
            cpu.append(busy)
            blocked.append((reading + rest - busy) * kept)
        share = min(found.own_cpu_share, 1.0)
        own = one.own[begin:end]
        return Times(blocked, cpu, [t * (1 - share) * kept for t in own], [t * share for t in own])

    def _ready(self, one: Pass, change: Change) -> list[float]:
        """When new workers can begin, counted from the first wish for a batch."""
        before, after = self.found.setup.workers, change.setup(self.found).workers
        assert one.start is not None
        start = one.start * after / max(before, 1)
        slower = 1.0
        if self.cores and self.found.imports:
            cores = self.cores / self.found.sharing
            slower = max(after / cores, 1.0) / max(before / cores, 1.0)
        ups = one.ups or [0.0]
        return [
            start * (worker + 1) / after + ups[worker % len(ups)] * slower - start - one.lead
            for worker in range(after)
        ]

    # ---- The interval ----------------------------------------------------------------------

    def _spread(self, change: Change) -> float:
        """The standard error of the time of all steps, by resampling what was recorded."""
        passes = self.found.passes
        chance = random.Random(1)
        means = []
        batches = self.found.batches
        for _ in range(REPLICATES):
            if len(passes) >= MANY_PASSES:
                means.append(self._some_passes(change, chance))
            else:
                means.append(self._some_stretches(change, chance))
        middle = sum(mean for mean, _ in means) / len(means)
        variance = sum((mean - middle) ** 2 * count for mean, count in means) / (len(means) - 1)
        return math.sqrt(variance * batches)

    def _some_passes(self, change: Change, chance: random.Random) -> tuple[float, int]:
        spent, count = 0.0, 0
        while count < RESAMPLED:
            one = chance.choice(self.found.passes[1:])  # the first always starts workers
            end = min(len(one.waits), RESAMPLED)
            spent += self._time(Piece(one, 0, end), change)
            count += end
        return spent / count, count

    def _some_stretches(self, change: Change, chance: random.Random) -> tuple[float, int]:
        """Blocks of consecutive batches, from anywhere, as one pass."""
        parts = Times([], [], [], [])
        setup = self._setup(change)
        lead_in = min(2 * setup.workers * setup.prefetch, LEAD_IN)
        sizes = [len(one.waits) for one in self.found.passes]
        joined: tuple[list[float], ...] = ([], [], [], [])
        while len(joined[0]) < lead_in + RESAMPLED:
            one = chance.choices(self.found.passes, sizes)[0]
            begin = chance.randrange(max(len(one.waits) - BLOCK, 0) + 1)
            some = self._times(one, begin, min(begin + BLOCK, len(one.waits)), change)
            for whole, part in zip(
                joined, (some.blocked, some.cpu, some.own_blocked, some.own_cpu)
            ):
                whole.extend(part)
        parts = Times(*joined)
        run = simulate(parts, setup)
        counted = len(run.waits) - lead_in
        return (sum(run.waits[lead_in:]) + sum(run.own[lead_in:])) / counted, counted

    # ---- Calibration -----------------------------------------------------------------------

    def _calibrate(self) -> None:
        """Where processes shared too few cores, time that looks like waiting was waiting for one.

        The share of it that was not is chosen so that the model takes as long as the run did.
        """
        setup = self._setup(self.unchanged)
        busy = self.found.cpu_share > 0 or self.found.read_cpu_share > 0
        if not setup.cores or not busy:
            return
        if setup.workers + min(self.found.own_cpu_share, setup.main_cores) <= setup.cores:
            return
        low, high = 0.0, 1.0
        if self._whole(self.unchanged).steps_ns <= 0:
            return
        for _ in range(6):
            self._blocked_share = (low + high) / 2
            if self._whole(self.unchanged).steps_ns > 0:
                high = self._blocked_share
            else:
                low = self._blocked_share


def _pieces(passes: Sequence[Pass]) -> list[Piece]:
    """All batches, or if there are many, pieces from all over the run, with their weights."""
    every = []
    for one in passes:
        count = len(one.waits)
        for begin in range(0, count, PIECE):
            end = min(begin + PIECE, count)
            every.append(Piece(one, begin, end, min(begin, LEAD_IN)))
    if sum(len(one.waits) for one in passes) <= LIMIT:
        # Whole passes: nothing has to be brought into its usual state.
        return [Piece(one, 0, len(one.waits)) for one in passes]
    found = []
    # The beginnings of passes wait for new workers, and stand for beginnings alone.
    for pieces in ([p for p in every if p.starts], [p for p in every if not p.starts]):
        if pieces:
            found += _some(pieces, LIMIT / 2)
    return found


def _some(pieces: Sequence[Piece], limit: float) -> list[Piece]:
    size = sum(piece.end - piece.begin for piece in pieces) / len(pieces)
    count = max(1, min(len(pieces), round(limit / size)))
    chosen = [pieces[at * len(pieces) // count] for at in range(count)]
    whole = sum(piece.end - piece.begin for piece in pieces)
    weight = whole / sum(piece.end - piece.begin for piece in chosen)
    return [replace(piece, weight=weight) for piece in chosen]

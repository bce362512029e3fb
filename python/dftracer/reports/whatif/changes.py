"""Changes of a loader's settings and surroundings, and how they are called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dftracer._format import digits, rate
from dftracer.reports.whatif.loader import Setup
from dftracer.reports.whatif.recorded import Pass, Recorded

# Bytes of a batch below which the rate of its reading says nothing.
LEAST_RATED = 64 << 10
WORKERS = (1, 2, 4, 8, 16)
PREFETCH = 4
# Of the work of batches, from which reading matters.
READS = 0.2


@dataclass(frozen=True)
class Change:
    """What differs from the recorded run; the default is nothing."""

    workers: int | None = None
    prefetch: int | None = None
    persistent: bool | None = None
    reads: float = 1.0  # times as fast
    decode: float = 1.0
    disk: float | None = None  # bytes per second
    each: bool = False  # for each worker: they do not share this rate

    def __str__(self) -> str:
        words = []
        if self.workers is not None:
            words.append(f"num_workers={self.workers}")
        if self.prefetch is not None:
            words.append(f"prefetch_factor={self.prefetch}")
        if self.persistent is not None:
            words.append(f"persistent_workers={self.persistent}")
        for factor, name in ((self.reads, "reads"), (self.decode, "decoding")):
            if factor != 1:
                words.append(f"{name} {digits(factor)} times as fast")
        if self.disk is not None:
            words.append(f"reads at {rate(self.disk)}{' each' if self.each else ''}")
        return ", ".join(words) or "unchanged"

    def setup(self, found: Recorded) -> Setup:
        old = found.setup
        return replace(
            old,
            workers=old.workers if self.workers is None else self.workers,
            prefetch=old.prefetch if self.prefetch is None else self.prefetch,
        )

    def reading(self, time: float, read: float) -> float:
        if self.disk is not None:
            time = min(time, read * 1e9 / self.disk)
        return time / self.reads

    def notes(self, found: Recorded, cores: int | None) -> list[str]:
        """What the prediction takes for granted."""
        notes = list(found.assumed)
        old, new = found.setup.workers, self.setup(found).workers
        if new > old:
            if cores is None:
                notes.append("there are cores enough, because their number is unknown")
            elif not found.cpu_known and new > cores:
                notes.append(
                    "decoding uses a processor, because the CPU time of workers is unknown"
                )
            reading = sum(sum(one.reading) for one in found.passes)
            rest = sum(sum(one.decoding) + sum(one.other) for one in found.passes)
            if reading >= READS * (reading + rest) and (self.disk is None or self.each):
                notes.append("reads of more workers at once take as long as those of fewer")
            if not old:
                notes.append("workers start, and hand batches over, in no time")
        return notes


def standard(found: Recorded) -> list[Change]:
    """The changes that are worth a look."""
    setup = found.setup
    changes = [Change(workers=count) for count in WORKERS if count != setup.workers]
    if setup.workers and setup.prefetch < PREFETCH:
        changes.append(Change(prefetch=PREFETCH))
    if setup.workers and not found.persistent and len(found.passes) > 1:
        changes.append(Change(persistent=True))
    if any(any(one.reading) for one in found.passes):
        changes.append(Change(reads=2.0))
    if any(any(one.decoding) for one in found.passes):
        changes.append(Change(decode=2.0))
    disk = fastest(found.passes)
    if disk is not None:
        changes.append(Change(disk=disk, each=True))
    return changes


def fastest(passes: Sequence[Pass]) -> float | None:
    """The rate that the fastest tenth of the batches reads with, in bytes per second."""
    rates = sorted(
        read * 1e9 / time
        for one in passes
        for read, time in zip(one.bytes, one.reading)
        if read >= LEAST_RATED and time > 0
    )
    return rates[len(rates) * 9 // 10] if rates else None

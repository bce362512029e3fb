"""What all measures share: the subjects take turns, and medians of their figures are compared.

The subjects take turns inside every repetition, so that a busy moment of the machine hits all of
them. Where a ratio is the bar, both of its sides come from the same process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from runner import Bench, Figures, Run
from sizes import Sizes
from table import Row

MISSING = "not available"
ORDER = ("bare", "ours", "peer", "lttng")


class Measures:
    """One table of the result; `names` are its measures, a method each."""

    title = ""
    # A file beside this one that goes into the document with the table.
    notes = ""
    names: tuple[str, ...] = ()

    def __init__(self, bench: Bench, sizes: Sizes) -> None:
        self.bench = bench
        self.sizes = sizes
        self.subjects = [s for s in ORDER if s in bench.subjects]

    @classmethod
    def names_with(cls, part: str) -> list[str]:
        return [name for name in cls.names if part in name]

    def rows(self, name: str) -> list[Row]:
        measure: Callable[[], list[Row]] = getattr(self, name)
        return measure()

    def turns(
        self,
        measure: Callable[[str], Run],
        repeats: int | None = None,
        subjects: Sequence[str] | None = None,
        once: Sequence[str] = (),
        seldom: Sequence[str] = (),
    ) -> Runs:
        """Every subject in turn, again and again.

        Those of `once` only the first time, those of `seldom` every fourth.
        """
        runs = Runs({subject: [] for subject in subjects or self.subjects})
        for repeat in range(repeats or self.sizes.repeats):
            for subject, seen in runs.of.items():
                left_out = subject in once or (subject in seldom and repeat % 4 != 0)
                if repeat == 0 or not left_out:
                    seen.append(measure(subject))
        return runs

    def events(self, subject: str, ours: int, peer: int) -> int:
        return peer if subject == "peer" else ours

    def instructions_each(
        self, subject: str, program: str, function: str, events: int, *rest: int | str | Path
    ) -> float:
        """One event is what is added by twice as many; the first event of a thread falls out."""

        def run(count: int) -> int:
            return self.bench.instructions(subject, program, function, count, *rest)

        return (run(2 * events) - run(events)) / events


@dataclass(frozen=True)
class Runs:
    of: dict[str, list[Run]]

    def figures(self, subject: str) -> Iterable[Figures]:
        return (run.figures for run in self.of[subject])

    def median(self, subject: str, key: str) -> float:
        return median(f[key] for f in self.figures(subject))

    def quarter(self, subject: str, key: str) -> float:
        """What a quarter of the runs stayed below: other work on the machine disturbs it least."""
        figures = sorted(f[key] for f in self.figures(subject))
        return figures[(len(figures) - 1) // 4]

    def ratio(self, subject: str, base: str, key: str) -> float:
        """To the runs of `base` before and after each; its median, which drift leaves alone."""
        figures = [f[key] for f in self.figures(subject)]
        others = [f[key] for f in self.figures(base)]
        if len(figures) != len(others):
            return median(figures) / median(others)
        beside = [(a + b) / 2 for a, b in zip(others, [*others[1:], others[-1]])]
        return median(figure / other for figure, other in zip(figures, beside))

    def least(self, subject: str, key: str) -> float:
        return min(f[key] for f in self.figures(subject))

    def greatest(self, subject: str, key: str) -> float:
        return max(f[key] for f in self.figures(subject))

    def each(self, key: str) -> dict[str, float]:
        """The figure divided by the number of events, by subject."""
        return {s: median(f[key] / f["events"] for f in self.figures(s)) for s in self.of}

    def as_json(self) -> dict[str, list[Figures]]:
        return {s: list(self.figures(s)) for s in self.of}

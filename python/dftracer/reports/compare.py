"""Compares two reports: what changed, and whether that is more than noise.

Noise is estimated from repeated steps by batch means: the consecutive steps of a run are cut into
at most `BATCHES` batches, whose means vary as a mean of steps does even if steps are correlated
with the previous ones. From that follows a 95 % confidence interval of the ratio of both means
(Welch's, on the logarithm). A change whose interval contains zero is noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dftracer.errors import DFTracerError
from dftracer.reports.model import Report, Table
from dftracer.reports.schema import PART_COLUMNS, PARTS, derived

if TYPE_CHECKING:
    from dftracer.reports.render.figures import Figure

BATCHES = 12
FEWEST = 3  # repetitions needed to estimate noise

# Student's t: 97.5 % of its mass lies below, by degrees of freedom; the next smaller one is taken.
_T = {
    1: 12.71, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262,
    10: 2.228, 12: 2.179, 15: 2.131, 20: 2.086, 30: 2.042, 60: 2.0, 120: 1.98,
}  # fmt: skip

CHANGES = derived(
    "changes",
    "what changed from the baseline to this run",
    [
        ("measure", "text", "what was measured"),
        ("unit", "text", "ns, bytes or count"),
        ("before", "float", "in the baseline"),
        ("after", "float", "in this run"),
        ("change_percent", "float", "from before to after"),
        ("low_percent", "float", "lower bound of the 95 % confidence interval"),
        ("high_percent", "float", "its upper bound"),
        ("repeats", "text", "repetitions that noise was estimated from, before and after"),
        ("verdict", "text", "slower, faster or noise; None if nothing is repeated"),
    ],
)
CALLS = derived(
    "call_changes",
    "calls and regions whose time changed, largest change first; their noise is unknown",
    [
        ("cat", "text", "the category"),
        ("name", "text", "name of the call"),
        ("change_ns", "int", "of the sum of durations"),
        ("change_percent", "float", "the same, in percent"),
        ("before_ns", "int", "sum of durations in the baseline"),
        ("after_ns", "int", "in this run"),
        ("before_count", "int", "calls in the baseline"),
        ("after_count", "int", "in this run"),
        ("before_mean_ns", "float", "mean duration of a call in the baseline"),
        ("after_mean_ns", "float", "in this run"),
    ],
)
FINDINGS = derived(
    "finding_changes",
    "findings of the two runs",
    [
        ("rule", "text", "name of the rule"),
        ("state", "text", "new, gone, or in both"),
        ("title", "text", "of the finding in this run, or in the baseline if it is gone"),
        ("before_share", "float", "share of the time that it refers to, in the baseline"),
        ("after_share", "float", "in this run"),
    ],
)


@dataclass(frozen=True)
class Change:
    measure: str
    unit: str
    before: float
    after: float
    low: float | None = None  # percent, as `percent`
    high: float | None = None
    repeats: tuple[int, int] | None = None

    @property
    def percent(self) -> float | None:
        return 100 * (self.after / self.before - 1) if self.before else None

    @property
    def verdict(self) -> str:
        if self.low is None or self.high is None:
            return ""
        return "slower" if self.low > 0 else "faster" if self.high < 0 else "noise"

    def row(self) -> tuple[Any, ...]:
        repeats = "{:,} and {:,}".format(*self.repeats) if self.repeats else None
        rest = (self.percent, self.low, self.high, repeats, self.verdict or None)
        return (self.measure, self.unit, self.before, self.after, *rest)


@dataclass
class Comparison:
    """`after` is the run of the report, `before` the baseline."""

    before: Report
    after: Report
    main: Change | None  # decides whether the run is slower or faster
    tables: dict[str, Table]
    limit: float | None = None  # percent

    @property
    def too_slow(self) -> bool:
        """Slower than allowed, and by more than noise where noise is known."""
        if self.main is None or self.limit is None or self.main.percent is None:
            return False
        return self.main.percent > self.limit and self.main.verdict in ("slower", "")

    def _repr_html_(self) -> str:
        from dftracer.reports.render.compare_text import verdict
        from dftracer.reports.render.markup import escaped

        text = f"<p><strong>{escaped(verdict(self)[1])}</strong></p>"
        return text + "".join(table._repr_html_() for table in self.tables.values())

    def figures(self) -> dict[str, Figure]:
        from dftracer.reports.render.plots.compare import PLOTS

        found = (build(self) for build in PLOTS)
        return {figure.name: figure for figure in found if figure is not None}


def parse_limit(words: str) -> float:
    """5% or 5, in percent."""
    try:
        value = float(words.strip().removesuffix("%"))
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise DFTracerError(f"--fail-if-slower: invalid percentage {words!r} (for example 5%)")
    return value


def compare(after: Report, before: Report, limit: float | None = None) -> Comparison:
    changes = _repeated_changes(before, after)
    repeated = next((one for one in changes if one.repeats), None)
    whole = _whole_changes(before, after)
    job = whole[0] if whole else None
    tables = {
        "changes": Table(CHANGES, [one.row() for one in (*changes, *whole)]),
        "call_changes": _call_changes(before, after),
        "finding_changes": _finding_changes(before, after),
    }
    return Comparison(before, after, repeated or job, tables, limit)


def step_times(report: Report) -> list[float]:
    """The time of each step in the slowest process, in order, without the first step of an epoch,
    which starts workers and fills queues."""
    return [group["dur_ns"] for group in _steady(report)]


def _steady(report: Report) -> list[dict[str, float]]:
    groups: dict[tuple[Any, Any], list[dict[str, Any]]] = {}
    table = report.table("steps")
    for row in sorted(table, key=lambda row: (row["start_ns"] or 0, row["process"] or 0)):
        # Steps without a number cannot be matched between processes.
        key = (row["epoch"], row["step"]) if row["step"] is not None else (id(row), None)
        groups.setdefault(key, []).append(row)
    seen: dict[Any, int] = {}
    found = []
    for (epoch, _), rows in groups.items():
        seen[epoch] = seen.get(epoch, 0) + 1
        if seen[epoch] == 1:
            continue
        made = {column: sum(row[column] or 0 for row in rows) / len(rows) for column in _SPLIT}
        made["communication_ns"] -= made["waited_ns"]
        made["dur_ns"] = max(row["dur_ns"] or 0 for row in rows)
        found.append(made)
    return found


_SPLIT = tuple(PART_COLUMNS.values())


def _repeated_changes(before: Report, after: Report) -> list[Change]:
    old, new = _steady(before), _steady(after)
    if min(len(old), len(new)) < FEWEST:
        return _epoch_changes(before, after)
    columns = {"step time": "dur_ns"}
    columns.update({f"step: {PARTS[part]}": column for part, column in PART_COLUMNS.items()})
    found = []
    for measure, column in columns.items():
        values = [[row[column] for row in rows] for rows in (old, new)]
        if any(map(any, values)):
            found.append(change(measure, *values))
    return found


def _epoch_changes(before: Report, after: Report) -> list[Change]:
    values = []
    for report in (before, after):
        longest: dict[Any, float] = {}
        for row in report.table("epochs"):
            key = row["epoch"] if row["epoch"] is not None else row["start_ns"]
            longest[key] = max(longest.get(key, 0), row["dur_ns"] or 0)
        values.append(list(longest.values()))
    if min(map(len, values)) < FEWEST:
        return []
    return [change("epoch time", *values)]


def change(measure: str, before: Sequence[float], after: Sequence[float]) -> Change:
    """The change of a time that was measured repeatedly in both runs."""
    (old, old_error, old_free), (new, new_error, new_free) = _mean(before), _mean(after)
    counts = (len(before), len(after))
    # A checkpoint at the end of one step says nothing about the spread of checkpoints.
    samples = min(sum(value > 0 for value in values) for values in (before, after))
    if old <= 0 or new <= 0 or samples < FEWEST:
        return Change(measure, "ns", old, new, repeats=counts)
    parts = [(old_error / old) ** 2, (new_error / new) ** 2]
    error = math.sqrt(sum(parts))
    free = sum(parts) ** 2 / max(parts[0] ** 2 / old_free + parts[1] ** 2 / new_free, 1e-300)
    reach = _t(free) * error
    low, high = (100 * (new / old * math.exp(sign * reach) - 1) for sign in (-1, 1))
    return Change(measure, "ns", old, new, low, high, counts)


def _mean(values: Sequence[float]) -> tuple[float, float, int]:
    """The mean, its standard error from batch means, and the degrees of freedom."""
    size = -(-len(values) // BATCHES)
    batches = [values[at : at + size] for at in range(0, len(values) - size + 1, size)]
    means = [sum(batch) / len(batch) for batch in batches]
    middle = sum(means) / len(means)
    square = sum((one - middle) ** 2 for one in means) / max(len(means) - 1, 1)
    return sum(values) / len(values), math.sqrt(square / len(means)), max(len(means) - 1, 1)


def _t(free: float) -> float:
    return _T[max((known for known in _T if known <= max(free, 1)), default=1)]


_WHOLE = {
    "job time": ("job_ns", "ns"),
    "I/O time": ("io_ns", "ns"),
    "I/O not hidden": ("unhidden_io_ns", "ns"),
    "compute time": ("compute_ns", "ns"),
    "read": ("read_bytes", "bytes"),
    "written": ("write_bytes", "bytes"),
    "events": ("events", "count"),
    "processes": ("processes", "count"),
}


def _whole_changes(before: Report, after: Report) -> list[Change]:
    rows = [report.table("overview").dicts() for report in (before, after)]
    if not all(rows):
        return []
    old, new = (found[0] for found in rows)
    return [
        Change(measure, unit, old[column] or 0, new[column] or 0)
        for measure, (column, unit) in _WHOLE.items()
        if old[column] or new[column]
    ]


def _call_changes(before: Report, after: Report) -> Table:
    def by_name(report: Report) -> dict[tuple[str, str], dict[str, Any]]:
        return {(row["cat"], row["name"]): row for row in report.table("calls")}

    old, new = by_name(before), by_name(after)
    nothing = {"total_ns": 0, "count": 0, "mean_ns": None}
    rows = []
    for key in {**old, **new}:
        a, b = old.get(key, nothing), new.get(key, nothing)
        moved = b["total_ns"] - a["total_ns"]
        share = 100 * moved / a["total_ns"] if a["total_ns"] else None
        numbers = [side[column] for column in ("total_ns", "count", "mean_ns") for side in (a, b)]
        rows.append((*key, moved, share, *numbers))
    rows.sort(key=lambda row: (-abs(row[2]), row[0] or "", row[1] or ""))
    return Table(CALLS, rows)


def _finding_changes(before: Report, after: Report) -> Table:
    def by_rule(report: Report) -> dict[str, dict[str, Any]]:
        return {row["rule"]: row for row in report.table("findings")}

    old, new = by_rule(before), by_rule(after)
    state: Callable[[str], str] = lambda rule: (  # noqa: E731
        "in both" if rule in old and rule in new else "new" if rule in new else "gone"
    )
    order = {"new": 0, "in both": 1, "gone": 2}
    rules = sorted({**new, **old}, key=lambda rule: order[state(rule)])
    return Table(
        FINDINGS,
        [
            (
                rule,
                state(rule),
                (new.get(rule) or old[rule])["title"],
                old[rule]["share"] if rule in old else None,
                new[rule]["share"] if rule in new else None,
            )
            for rule in rules
        ],
    )

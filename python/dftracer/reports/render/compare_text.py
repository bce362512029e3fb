"""A comparison in words: for the terminal, and at the top of the page."""

from __future__ import annotations

from collections.abc import Callable

from dftracer._format import count, duration, size
from dftracer._layout import Column, name_column, table, wrap
from dftracer.reports.compare import Change, Comparison
from dftracer.reports.render import column_format


def signed(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:+.1f} %" if abs(value) < 9.95 else f"{value:+,.0f} %"


def value_text(value: float, unit: str) -> str:
    writers: dict[str, Callable[[float], str]] = {"ns": duration, "bytes": size, "count": count}
    return writers[unit](value)


def between(one: Change) -> str:
    if one.low is None or one.high is None:
        return ""
    return f"{signed(one.low).removesuffix(' %')} to {signed(one.high)}"


def verdict(comparison: Comparison) -> tuple[str, str]:
    """slower, faster, same or unknown; and the sentence."""
    main = comparison.main
    if main is None:
        return "unknown", "The runs have nothing in common that could be compared."
    sides = f"{value_text(main.before, main.unit)} before, {value_text(main.after, main.unit)} now"
    moved = f"{main.measure} {signed(main.percent)} ({sides})"
    if not main.verdict:
        return (
            "unknown",
            f"{moved[0].upper()}{moved[1:]}. Nothing is repeated in these runs, so the noise is "
            "unknown.",
        )
    if main.verdict == "noise":
        return (
            "same",
            f"No difference beyond noise: {moved}, 95 % confidence interval {between(main)}.",
        )
    known = f"95 % confidence interval {between(main)}"
    return main.verdict, f"{main.verdict.capitalize()}: {moved}, {known}."


def gate(comparison: Comparison) -> str:
    """The verdict of --fail-if-slower; empty without it."""
    limit = comparison.limit
    if limit is None:
        return ""
    if comparison.too_slow:
        return f"slower by more than the allowed {limit:g} %"
    return f"not slower by more than the allowed {limit:g} %"


CHANGES = (
    name_column(""),
    Column("before"),
    Column("now"),
    Column("change"),
    Column("95 % interval", rank=1),
    Column("", right=False),
)
CALLS = (
    name_column("calls"),
    Column("before"),
    Column("now"),
    Column("change"),
    Column("", rank=1),
)


def lines(comparison: Comparison, most_calls: int = 8, width: int = 100) -> list[str]:
    """For the terminal."""
    found = [*wrap(verdict(comparison)[1], width), ""]
    rows = []
    for row in comparison.tables["changes"].dicts():
        one = (value_text(row["before"], row["unit"]), value_text(row["after"], row["unit"]))
        sure = ""
        if row["low_percent"] is not None:
            low, high = signed(row["low_percent"]), signed(row["high_percent"])
            sure = f"{low.removesuffix(' %')} to {high}"
        rest = [signed(row["change_percent"]), sure, row["verdict"] or ""]
        rows.append([row["measure"], *one, *rest])
    found += _indented(table(CHANGES, rows, width - 2))
    calls = [row for row in comparison.tables["call_changes"].dicts() if row["change_ns"]]
    if calls:
        rows = []
        for row in calls[:most_calls]:
            name = f"{row['cat']} {row['name']}"
            times = (duration(row["before_ns"]), duration(row["after_ns"]))
            counts = f"{row['before_count']:,} to {row['after_count']:,} calls"
            if row["before_count"] == row["after_count"]:
                counts = f"{row['after_count']:,} calls"
            rows.append([name, *times, signed(row["change_percent"]), counts])
        found += ["", *_indented(table(CALLS, rows, width - 2))]
    for row in comparison.tables["finding_changes"].dicts():
        if row["state"] != "in both":
            title = f"{row['state']} finding: {column_format.clean(row['title'], 120)}"
            found += ["", *wrap(title, width)]
    if gate(comparison):
        found += ["", gate(comparison)]
    return found


def _indented(found: list[str]) -> list[str]:
    return [f"  {line}" for line in found]

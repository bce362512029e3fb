"""What a comparison says, in words: for the terminal, and on top of the page."""

from __future__ import annotations

from dftracer.reports import units
from dftracer.reports.compare import Change, Comparison


def signed(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:+.1f} %" if abs(value) < 9.95 else f"{value:+,.0f} %"


def value_text(value: float, unit: str) -> str:
    return {"ns": units.duration, "bytes": units.size, "count": units.count}[unit](value)


def between(one: Change) -> str:
    if one.low is None or one.high is None:
        return ""
    return f"{signed(one.low).removesuffix(' %')} to {signed(one.high)}"


def verdict(comparison: Comparison) -> tuple[str, str]:
    """slower, faster, same or unknown; and the sentence."""
    main = comparison.main
    if main is None:
        return "unknown", "There is nothing in both runs that could be compared."
    sides = f"{value_text(main.before, main.unit)} before, {value_text(main.after, main.unit)} now"
    moved = f"{main.measure} {signed(main.percent)} ({sides})"
    if not main.verdict:
        return (
            "unknown",
            f"{moved[0].upper()}{moved[1:]}. Nothing is repeated in these runs, so what is noise "
            "is not known.",
        )
    if main.verdict == "noise":
        return "same", f"No difference beyond noise: {moved}, and by noise alone {between(main)}."
    known = f"{between(main)} with 95 % certainty"
    return main.verdict, f"{main.verdict.capitalize()}: {moved}, {known}."


def gate(comparison: Comparison) -> str:
    """What --fail-if-slower says; nothing if it was not given."""
    limit = comparison.limit
    if limit is None:
        return ""
    if comparison.too_slow:
        return f"slower by more than the {limit:g} % that are allowed"
    return f"not slower by more than the {limit:g} % that are allowed"


def lines(comparison: Comparison, most_calls: int = 8) -> list[str]:
    """For the terminal."""
    found = [verdict(comparison)[1], ""]
    rows = [["", "before", "now", "change", "95 % certain", ""]]
    for row in comparison.tables["changes"].dicts():
        one = (value_text(row["before"], row["unit"]), value_text(row["after"], row["unit"]))
        sure = ""
        if row["low_percent"] is not None:
            low, high = signed(row["low_percent"]), signed(row["high_percent"])
            sure = f"{low.removesuffix(' %')} to {high}"
        told = [signed(row["change_percent"]), sure, row["verdict"] or ""]
        rows.append([row["measure"], *one, *told])
    found += _aligned(rows)
    calls = [row for row in comparison.tables["call_changes"].dicts() if row["change_ns"]]
    if calls:
        rows = [["calls", "before", "now", "change", "", ""]]
        for row in calls[:most_calls]:
            name = units.clean(f"{row['cat']} {row['name']}", 40)
            times = (units.duration(row["before_ns"]), units.duration(row["after_ns"]))
            counts = f"{row['before_count']:,} to {row['after_count']:,} calls"
            if row["before_count"] == row["after_count"]:
                counts = f"{row['after_count']:,} calls"
            rows.append([name, *times, signed(row["change_percent"]), counts, ""])
        found += ["", *_aligned(rows)]
    for row in comparison.tables["finding_changes"].dicts():
        if row["state"] != "in both":
            found += ["", f"{row['state']} finding: {units.clean(row['title'], 120)}"]
    if gate(comparison):
        found += ["", gate(comparison)]
    return found


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    made = []
    for row in rows:
        cells = [
            f"{cell:<{width}}" if at in (0, 5) else f"{cell:>{width}}"
            for at, (cell, width) in enumerate(zip(row, widths))
        ]
        made.append(f"  {'  '.join(cells)}".rstrip())
    return made

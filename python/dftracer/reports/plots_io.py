"""Figures of calls: over time, by name, by size, by duration, by file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dftracer.reports import units
from dftracer.reports.figures import (
    SERIES,
    Figure,
    View,
    area,
    bars,
    derived,
    dots,
    height_of,
    label,
    largest,
    log_times,
    merged,
    named_rows,
    row_bars,
    start_of,
)
from dftracer.reports.model import Report, Table

CLASS_ROLES = {
    "io": "io",
    "compute": "compute",
    "communication": "communication",
    "transfer": "transfer",
    "checkpoint": "checkpoint",
    "fetch": "fetch",
}
CLASS_NAMES = {"io": "I/O", "fetch": "loading data", "other": "everything else"}
PATTERN_ROLES = {
    "sequential": "s0",
    "whole": "s5",
    "strided": "s1",
    "random": "s4",
    "mixed": "s3",
}
MOST_SERIES = len(SERIES) - 1


def timeline(report: Report) -> Figure | None:
    rows = report.table("timeline").dicts()
    if not rows:
        return None
    origin = start_of(report)
    length = rows[0]["dur_ns"]
    starts = sorted({row["start_ns"] for row in rows})
    # The pieces are of one length; one in which nothing happened has no row.
    grid = list(range(starts[0], starts[-1] + length, length)) if length else starts
    place = {start: at for at, start in enumerate(grid)}
    scale, unit = units.scale_of(max(grid[-1] + length - origin, 1))
    x = _rounded([(start - origin) / scale for start in (*grid, grid[-1] + length)])

    def sums(column: str, cat: str | None = None) -> list[int]:
        found = [0] * len(grid)
        for row in rows:
            if cat in (None, row["cat"]) and row["start_ns"] in place:
                found[place[row["start_ns"]]] += row[column] or 0
        return found

    moved = {"read": sums("read_bytes"), "write": sums("write_bytes")}
    views = []
    if any(map(any, moved.values())):
        views.append(_bandwidth(x, length, moved))
    cats = _largest(rows, "cat", "ops")
    views.append(_by_category("Events", "events/s", x, length / 1e9, cats, sums, "ops"))
    cats = _largest(rows, "cat", "busy_ns")
    views.append(_by_category("In flight", "open at a time", x, length, cats, sums, "busy_ns"))
    axis = {
        "xaxis": {"title": {"text": f"time since the first event, {unit}"}, "range": [0, x[-1]]}
    }
    schema = derived(
        "timeline",
        "time cut into equal pieces, all categories together",
        [
            ("start_ns", "int", "beginning of the piece, from the first event on"),
            ("dur_ns", "int", "its length"),
            ("events", "int", "that began in it"),
            ("read_bytes", "int", "read, spread evenly over each call's time"),
            ("write_bytes", "int", "written, likewise"),
            ("busy_ns", "int", "sum of the parts of spans that lie in it"),
        ],
    )
    numbers = zip(sums("ops"), moved["read"], moved["write"], sums("busy_ns"))
    table = Table(schema, [(start, length, *each) for start, each in zip(grid, numbers)])
    return Figure(
        "timeline",
        "Activity over time",
        f"Of all processes together, in pieces of {units.duration(length)}.",
        [View(v.label, v.data, merged(axis, {"hovermode": "x unified"}, v.layout)) for v in views],
        table,
        origin=origin,
    )


def _bandwidth(x: Sequence[float], length: int, moved: dict[str, list[int]]) -> View:
    rates = {key: [v / length * 1e9 for v in values] for key, values in moved.items()}
    scale, unit = units.size_scale(max(max(values) for values in rates.values()))
    data = [
        area(
            {"read": "read", "write": "written"}[key],
            key,
            x,
            _held([value / scale for value in values]),
            f"%{{y:.3~g}} {unit}/s",
        )
        for key, values in rates.items()
        if any(values)
    ]
    return View("Bandwidth", data, {"yaxis": {"title": {"text": f"{unit}/s"}}})


def _by_category(
    name: str,
    axis: str,
    x: Sequence[float],
    per: float,
    cats: Sequence[str],
    sums: Callable[[str, str], list[int]],
    column: str,
) -> View:
    shown = cats[:MOST_SERIES]
    data = [
        area(
            units.clean(cat, 32), role, x, _held([v / per for v in sums(column, cat)]), "%{y:.3~g}"
        )
        for cat, role in zip(shown, SERIES)
    ]
    rest = [sums(column, cat) for cat in cats[MOST_SERIES:]]
    if rest:
        added = [sum(values) / per for values in zip(*rest)]
        data.append(area(f"{len(rest)} others", SERIES[-1], x, _held(added), "%{y:.3~g}"))
    return View(name, data, {"yaxis": {"title": {"text": axis}}})


def calls(report: Report) -> Figure | None:
    rows = sorted(report.table("calls"), key=lambda row: -row["total_ns"])[:20]
    if not rows:
        return None
    views = []
    for name, column in (("Time", "total_ns"), ("Calls", "count")):
        ordered = sorted(report.table("calls"), key=lambda row: -row[column])[:20]
        scale, unit = units.scale_of(ordered[0][column]) if column == "total_ns" else (1.0, "calls")
        data = []
        for klass in dict.fromkeys(row["class"] for row in ordered):
            role = CLASS_ROLES.get(str(klass), "other")
            there = [at for at, row in enumerate(ordered) if row["class"] == klass]
            shown = CLASS_NAMES.get(role, role)
            data.append(
                row_bars(
                    shown,
                    role,
                    _rounded([ordered[at][column] / scale for at in there]),
                    there,
                    f"%{{customdata}}<br>%{{x:,.3~g}} {unit}<extra>{shown}</extra>",
                    [_call_name(ordered[at], 90) for at in there],
                )
            )
        layout = {
            "barmode": "overlay",
            "xaxis": {"title": {"text": unit}, "showgrid": True},
            "yaxis": named_rows([_call_name(row) for row in ordered]),
        }
        views.append(View(name, data, layout))
    left = len(report.table("calls")) - len(rows)
    return Figure(
        "calls",
        "Calls and regions",
        "Sums of durations: spans inside of spans, and those of several threads, count each.",
        views,
        report.table("calls"),
        height=height_of(len(rows)),
        notes=[f"{units.counted(left, 'further name')} in the table only"] if left > 0 else [],
    )


def latencies(report: Report) -> Figure | None:
    rows = [row for row in report.table("calls") if row["p50_ns"] is not None and row["max_ns"]]
    rows = sorted(rows, key=lambda row: -row["total_ns"])[:20]
    if not rows:
        return None
    y = list(range(len(rows)))
    names = [_call_name(row, 90) for row in rows]
    line: dict[str, Any] = {
        "type": "scatter",
        "mode": "lines",
        "x": [value for row in rows for value in (max(row["p50_ns"], 1), row["max_ns"], None)],
        "y": [value for at in y for value in (at, at, None)],
        "line": {"color": "#a3abb5", "width": 1.5},
        "meta": {"role": "other"},
        "hoverinfo": "skip",
        "showlegend": False,
    }
    points = [("half below", "p50_ns", "s0"), ("90 % below", "p90_ns", "s5")]
    points += [("99 % below", "p99_ns", "s1"), ("longest", "max_ns", "s4")]
    data = [line]
    shapes = ("circle", "square", "diamond", "triangle-right")
    for (name, column, role), shape in zip(points, shapes):
        values = [max(row[column], 1) for row in rows]
        told = [f"{names[at]}<br>{units.duration(rows[at][column])}" for at in y]
        mark = dots(name, role, values, y, f"%{{customdata}}<extra>{name}</extra>", customdata=told)
        data.append(merged(mark, {"marker": {"symbol": shape, "size": 9}}))
    ends = [min(max(row["p50_ns"], 1) for row in rows), max(row["max_ns"] for row in rows)]
    layout = {
        "xaxis": merged(log_times(*ends), {"title": {"text": "duration of one call"}}),
        "yaxis": named_rows([_call_name(row) for row in rows]),
    }
    schema = derived(
        "latencies",
        "how long the calls took that took the most time; percentiles are right to 3 %",
        [
            ("cat", "text", "the category"),
            ("name", "text", "of the call"),
            ("count", "int", "how many"),
            ("min_ns", "int", "the shortest"),
            ("p50_ns", "int", "half were shorter"),
            ("p90_ns", "int", "nine in ten were shorter"),
            ("p99_ns", "int", "99 in a hundred were shorter"),
            ("max_ns", "int", "the longest"),
        ],
    )
    columns = [column.name for column in schema.columns]
    return Figure(
        "latencies",
        "How long one call takes",
        "From the median to the longest call, on a logarithmic axis.",
        [View("Duration", data, layout)],
        Table(schema, [tuple(row[column] for column in columns) for row in rows]),
        height=height_of(len(rows)),
    )


def sizes(report: Report) -> Figure | None:
    rows = [row for row in report.table("sizes") if row["upper"]]
    if not rows:
        return None
    bins = _without_gaps(sorted({(row["lower"], row["upper"]) for row in rows}))
    places = {edges: at for at, edges in enumerate(bins)}
    names = [units.binary(lower) for lower, _ in bins]
    views = []
    for view, column in (("Calls", "count"), ("Bytes", "bytes"), ("Time", "total_ns")):
        sums = {"read": [0] * len(bins), "write": [0] * len(bins)}
        for row in rows:
            if row["direction"] in sums:
                sums[row["direction"]][places[row["lower"], row["upper"]]] += row[column] or 0
        most = max(max(values) for values in sums.values())
        scale, unit = {
            "count": (1.0, "calls"),
            "bytes": units.size_scale(most),
            "total_ns": units.scale_of(most),
        }[column]
        data = [
            bars(
                {"read": "read", "write": "written"}[key],
                key,
                range(len(bins)),
                _rounded([value / scale for value in values]),
                f"%{{customdata}}<br>%{{y:,.3~g}} {unit}<extra></extra>",
                customdata=[f"{units.binary(a)} to {units.binary(b)}" for a, b in bins],
            )
            for key, values in sums.items()
            if any(values)
        ]
        layout = {
            "barmode": "group",
            "bargap": 0.15,
            "xaxis": {
                "title": {"text": "bytes moved by one call, from ..."},
                "tickmode": "array",
                "tickvals": list(range(len(bins))),
                "ticktext": names,
            },
            "yaxis": {"title": {"text": unit}},
        }
        views.append(View(view, data, layout))
    return Figure(
        "sizes",
        "How much one call moves",
        "Transfers by size, in powers of two. Many small ones cost more than few large ones.",
        views,
        report.table("sizes"),
        height=300,
    )


def _without_gaps(bins: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """A class that nothing is in has its place on the axis all the same."""
    found: list[tuple[int, int]] = []
    for lower, upper in bins:
        while found and 0 < found[-1][1] < lower:
            found.append((found[-1][1], 2 * found[-1][1]))
        found.append((lower, upper))
    return found


def files(report: Report) -> Figure | None:
    table = report.table("files")
    if not len(table):
        return None
    views = []
    most = 0
    for view in ("Time", "Bytes"):
        weight = _spent if view == "Time" else _moved
        columns = ("total_ns",) if view == "Time" else ("read_bytes", "write_bytes")
        rows = [row for row in largest(table, 20, *columns) if weight(row) > 0]
        if not rows:
            continue
        most = max(most, len(rows))
        scale, unit = (units.scale_of if view == "Time" else units.size_scale)(weight(rows[0]))
        data = []
        for pattern in dict.fromkeys(row["pattern"] for row in rows):
            there = [at for at, row in enumerate(rows) if row["pattern"] == pattern]
            shown = units.clean(pattern if pattern not in (None, "none") else "no transfers", 20)
            data.append(
                row_bars(
                    shown,
                    PATTERN_ROLES.get(str(pattern), "other"),
                    _rounded([weight(rows[at]) / scale for at in there]),
                    there,
                    f"%{{customdata}}<br>%{{x:.3~g}} {unit}<extra>{label(shown)}</extra>",
                    [label(rows[at]["fname"], 110) for at in there],
                )
            )
        layout = {
            "barmode": "overlay",
            "xaxis": {"title": {"text": unit}, "showgrid": True},
            "yaxis": named_rows([label(row["fname"]) for row in rows]),
        }
        views.append(View(view, data, layout))
    if not views:
        return None
    return Figure(
        "files",
        "Costliest files",
        "The files that took the most time, coloured by how they are accessed.",
        views,
        table,
        height=height_of(most),
    )


def _spent(row: dict[str, Any]) -> int:
    return int(row["total_ns"] or 0)


def _moved(row: dict[str, Any]) -> int:
    return int((row["read_bytes"] or 0) + (row["write_bytes"] or 0))


def _call_name(row: dict[str, Any], longest: int = 40) -> str:
    return label(f"{row['cat']} · {row['name']}", longest)


def _largest(rows: Sequence[dict[str, Any]], key: str, column: str) -> list[str]:
    sums: dict[str, int] = {}
    for row in rows:
        sums[row[key]] = sums.get(row[key], 0) + (row[column] or 0)
    return [name for name in sorted(sums, key=lambda name: -sums[name]) if sums[name]]


def _held(values: Sequence[float]) -> list[float]:
    """The last piece reaches to its end."""
    return _rounded([*values, values[-1]])


def _rounded(values: Sequence[float]) -> list[float]:
    return [float(f"{value:.5g}") for value in values]


PLOTS = [timeline, calls, latencies, sizes, files]

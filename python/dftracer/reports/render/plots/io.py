"""Figures of calls: over time, by name, by size, by duration, by file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dftracer._format import (
    axis_scale,
    binary_size,
    count,
    counted,
    duration,
    rate,
    size,
    size_scale,
)
from dftracer.reports.model import Report, Table
from dftracer.reports.render import column_format
from dftracer.reports.render.figures import (
    ROLES,
    Figure,
    LogTimes,
    View,
    area,
    bars,
    dots,
    height_of,
    label,
    largest,
    merged,
    named_rows,
    row_bars,
    start_of,
)
from dftracer.reports.schema import derived

CLASSES = ("io", "compute", "communication", "transfer", "checkpoint", "fetch")
CLASS_NAMES = {"io": "I/O", "fetch": "loading data", "other": "everything else"}
# From orderly to random, as the legend lists them.
PATTERNS = ("whole", "sequential", "strided", "mixed", "random")
# Of transfers: what they are called, and their colour.
DIRECTIONS = {
    "read": ("read", "read"),
    "write": ("written", "write"),
    "copy": ("copied", "other-2"),
}


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
    scale, unit = axis_scale(max(grid[-1] + length - origin, 1))
    # The pieces begin at multiples of their length: the first one before the first event.
    starts = [max(start, origin) for start in (*grid, grid[-1] + length)]
    x = _rounded([(start - origin) / scale for start in starts])
    classes = {row["cat"]: row["class"] for row in report.table("layers")}

    def sums(column: str, cat: str | None = None, among: frozenset[str] | None = None) -> list[int]:
        found = [0] * len(grid)
        for row in rows:
            if cat not in (None, row["cat"]) or (among is not None and row["cat"] not in among):
                continue
            if row["start_ns"] in place:
                found[place[row["start_ns"]]] += row[column] or 0
        return found

    def sums_of(column: str, cats: Sequence[str]) -> list[int]:
        return [sum(values) for values in zip(*(sums(column, cat) for cat in cats))]

    io = _io_categories(report)
    moved = {way: sums(f"{way}_bytes", among=io) for way in ("read", "write")}
    views = []
    if any(map(any, moved.values())):
        views.append(_bandwidth(x, length, moved))
    cats = _largest(rows, "cat", "ops")
    parts = [(name, role, sums_of("ops", cats)) for name, role, cats in _series(cats, classes)]
    views.append(_by_category("Events", "events/s", x, length / 1e9, parts))
    cats = _largest(rows, "cat", "busy_ns")
    parts = [(name, role, sums_of("busy_ns", cats)) for name, role, cats in _series(cats, classes)]
    views.append(_by_category("In flight", "open at the same time", x, length, parts))
    axis = {
        "xaxis": {"title": {"text": f"time since the first event, {unit}"}, "range": [0, x[-1]]}
    }
    schema = derived(
        "timeline",
        "equal intervals of time, all categories together",
        [
            ("start_ns", "int", "beginning of the interval, since the first event"),
            ("dur_ns", "int", "its length; the first one starts at the first event"),
            ("events", "int", "events that began in it"),
            (
                "read_bytes",
                "int",
                "bytes read from files, spread evenly over the time of each call",
            ),
            ("write_bytes", "int", "bytes written, spread in the same way"),
            ("busy_ns", "int", "time of spans in the interval"),
        ],
    )
    numbers = zip(sums("ops"), moved["read"], moved["write"], sums("busy_ns"))
    pieces = [(start, end - start) for start, end in zip(starts, starts[1:])]
    table = Table(schema, [(*piece, *each) for piece, each in zip(pieces, numbers)])
    return Figure(
        "timeline",
        "Activity over time",
        f"All processes together, in intervals of {duration(length)}.",
        [View(v.label, v.data, merged(axis, {"hovermode": "x unified"}, v.layout)) for v in views],
        table,
        origin=origin,
    )


def _io_categories(report: Report) -> frozenset[str]:
    """Categories whose bytes are I/O on files, not on pipes and the like."""
    return frozenset(row["cat"] for row in report.table("layers") if row["class"] == "io")


def _bandwidth(x: Sequence[float], length: int, moved: dict[str, list[int]]) -> View:
    rates = {key: [v / length * 1e9 for v in values] for key, values in moved.items()}
    scale, unit = size_scale(max(max(values) for values in rates.values()))
    data = [
        area(
            {"read": "read", "write": "written"}[key],
            key,
            x,
            _held([value / scale for value in values]),
            "%{text}",
            text=_hover_texts([rate(value) for value in values]),
        )
        for key, values in rates.items()
        if any(values)
    ]
    return View("Bandwidth", data, {"yaxis": {"title": {"text": f"{unit}/s"}}})


def _series(cats: Sequence[str], classes: dict[str, Any]) -> list[tuple[str, str, Sequence[str]]]:
    """(name, role, categories): the hue of a category is that of its class, as in every plot.

    Several categories of a class are shades of it; what is left without a shade is one series.
    """
    shades = {
        key: [role for role in ROLES if role == key or role.startswith(f"{key}-")]
        for key in (*CLASSES, "other")
    }
    shades["other"], last = shades["other"][:-1], shades["other"][-1]
    found: list[tuple[str, str, Sequence[str]]] = []
    rest = []
    for cat in cats:
        key = str(classes.get(cat)) if classes.get(cat) in CLASSES else "other"
        if shades[key]:
            found.append((column_format.clean(cat, 32), shades[key].pop(0), [cat]))
        else:
            rest.append(cat)
    if rest:
        name = column_format.clean(rest[0], 32) if len(rest) == 1 else f"{len(rest)} others"
        found.append((name, last, rest))
    return found


def _by_category(
    name: str,
    axis: str,
    x: Sequence[float],
    per: float,
    parts: Sequence[tuple[str, str, Sequence[int]]],
) -> View:
    data = []
    for part, role, values in parts:
        shown = [value / per for value in values]
        texts = _hover_texts([count(float(f"{value:.3g}")) for value in shown])
        data.append(area(part, role, x, _held(shown), "%{text}", text=texts))
    return View(name, data, {"yaxis": {"title": {"text": axis}}})


def calls(report: Report) -> Figure | None:
    rows = sorted(report.table("calls"), key=lambda row: -row["total_ns"])[:20]
    if not rows:
        return None
    views = []
    for name, column in (("Time", "total_ns"), ("Calls", "count")):
        ordered = sorted(report.table("calls"), key=lambda row: -row[column])[:20]
        timed = column == "total_ns"
        scale, unit = axis_scale(ordered[0][column]) if timed else (1.0, "calls")
        names = [_call_name(row) for row in ordered]
        amounts = [
            duration(row[column]) if timed else counted(row[column], "call") for row in ordered
        ]
        texts = [f"{label(name, 90)}<br>{amount}" for name, amount in zip(names, amounts)]
        data = []
        # The legend has the order of the classes, not that of the bars.
        for klass in (*CLASSES, "other"):
            there = [at for at, row in enumerate(ordered) if _class_of(row) == klass]
            if there:
                data.append(
                    row_bars(
                        CLASS_NAMES.get(klass, klass),
                        klass,
                        _rounded([ordered[at][column] / scale for at in there]),
                        there,
                        [texts[at] for at in there],
                    )
                )
        layout = {
            "barmode": "overlay",
            "xaxis": {"title": {"text": unit}, "showgrid": True},
            "yaxis": named_rows(names),
        }
        views.append(View(name, data, layout, names))
    left = len(report.table("calls")) - len(rows)
    return Figure(
        "calls",
        "Calls and regions",
        "Sums of durations: nested and parallel spans each count.",
        views,
        report.table("calls"),
        height=height_of(len(rows)),
        notes=[f"{counted(left, 'more name')} in the table"] if left > 0 else [],
    )


def _class_of(row: dict[str, Any]) -> str:
    return str(row["class"]) if row["class"] in CLASSES else "other"


def latencies(report: Report) -> Figure | None:
    rows = [row for row in report.table("calls") if row["p50_ns"] is not None and row["max_ns"]]
    rows = sorted(rows, key=lambda row: -row["total_ns"])[:20]
    if not rows:
        return None
    y = list(range(len(rows)))
    names = [_call_name(row) for row in rows]
    points = [("median", "p50_ns", "p50"), ("90th percentile", "p90_ns", "p90")]
    points += [("99th percentile", "p99_ns", "p99"), ("longest", "max_ns", "longest")]
    times = LogTimes([row[column] for row in rows for _, column, _ in points])
    line: dict[str, Any] = {
        "type": "scatter",
        "mode": "lines",
        "x": [
            value
            for row in rows
            for value in (times.place(row["p50_ns"]), times.place(row["max_ns"]), None)
        ],
        "y": [value for at in y for value in (at, at, None)],
        "line": {"color": "#a3abb5", "width": 1.5},
        "meta": {"role": "other"},
        "hoverinfo": "skip",
        "showlegend": False,
    }
    data = [line]
    shapes = ("circle", "square", "diamond", "triangle-right")
    for (name, column, role), shape in zip(points, shapes):
        values = [times.place(row[column]) for row in rows]
        texts = [f"{label(names[at], 90)}<br>{duration(rows[at][column])}" for at in y]
        mark = dots(
            name, role, values, y, f"%{{customdata}}<extra>{name}</extra>", customdata=texts
        )
        data.append(merged(mark, {"marker": {"symbol": shape, "size": 9}}))
    layout = {
        "xaxis": merged(times.axis(), {"title": {"text": "duration of one call"}}),
        "yaxis": named_rows(names),
    }
    schema = derived(
        "latencies",
        "durations of the calls that took the most time; percentiles are accurate to 3 %",
        [
            ("cat", "text", "the category"),
            ("name", "text", "name of the call"),
            ("count", "int", "how many"),
            ("min_ns", "int", "the shortest"),
            ("p50_ns", "int", "the median"),
            ("p90_ns", "int", "the 90th percentile"),
            ("p99_ns", "int", "the 99th percentile"),
            ("max_ns", "int", "the longest"),
        ],
    )
    columns = [column.name for column in schema.columns]
    return Figure(
        "latencies",
        "Duration of a call",
        "From the median to the longest call, on a logarithmic axis.",
        [View("Duration", data, layout, names)],
        Table(schema, [tuple(row[column] for column in columns) for row in rows]),
        height=height_of(len(rows)),
    )


def sizes(report: Report) -> Figure | None:
    io = _io_categories(report)
    rows = [row for row in report.table("sizes") if row["upper"] and row["cat"] in io]
    if not rows:
        return None
    bins = _without_gaps(sorted({(row["lower"], row["upper"]) for row in rows}))
    places = {edges: at for at, edges in enumerate(bins)}
    names = [binary_size(lower) for lower, _ in bins]
    views = []
    for view, column in (("Calls", "count"), ("Bytes", "bytes"), ("Time", "total_ns")):
        sums = {way: [0] * len(bins) for way in DIRECTIONS}
        for row in rows:
            if row["direction"] in sums:
                sums[row["direction"]][places[row["lower"], row["upper"]]] += row[column] or 0
        most = max(max(values) for values in sums.values())
        scale, unit = {
            "count": (1.0, "calls"),
            "bytes": size_scale(most),
            "total_ns": axis_scale(most),
        }[column]
        write = {"count": count, "bytes": size, "total_ns": duration}[column]
        data = [
            bars(
                DIRECTIONS[key][0],
                DIRECTIONS[key][1],
                range(len(bins)),
                _rounded([value / scale for value in values]),
                "%{customdata}<extra></extra>",
                customdata=[
                    f"{binary_size(a)} to {binary_size(b)}<br>{write(value)}"
                    for (a, b), value in zip(bins, values)
                ],
            )
            for key, values in sums.items()
            if any(values)
        ]
        layout = {
            "barmode": "group",
            "bargap": 0.15,
            "xaxis": {
                "title": {"text": "bytes per call, from ..."},
                "tickmode": "array",
                "tickvals": list(range(len(bins))),
                "ticktext": names,
            },
            "yaxis": {"title": {"text": unit}},
        }
        views.append(View(view, data, layout))
    return Figure(
        "sizes",
        "Size of a transfer",
        "Transfers by size, in powers of two. Many small ones cost more than a few large ones.",
        views,
        report.table("sizes"),
        height=300,
    )


def _without_gaps(bins: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """An empty class has its place on the axis as well."""
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
        scale, unit = (axis_scale if view == "Time" else size_scale)(weight(rows[0]))
        names = [str(row["fname"]) for row in rows]
        write = duration if view == "Time" else size
        data = []
        for pattern in (*PATTERNS, "other"):
            there = [
                at
                for at, row in enumerate(rows)
                if (row["pattern"] if row["pattern"] in PATTERNS else "other") == pattern
            ]
            if there:
                data.append(
                    row_bars(
                        pattern if pattern != "other" else "mapped, unknown or no transfer",
                        pattern,
                        _rounded([weight(rows[at]) / scale for at in there]),
                        there,
                        [f"{label(names[at], 110)}<br>{write(weight(rows[at]))}" for at in there],
                    )
                )
        layout = {
            "barmode": "overlay",
            "xaxis": {"title": {"text": unit}, "showgrid": True},
            "yaxis": named_rows(names),
        }
        views.append(View(view, data, layout, names))
    if not views:
        return None
    return Figure(
        "files",
        "Costliest files",
        "The files that took the most time, coloured by access pattern.",
        views,
        table,
        height=height_of(most),
    )


def _spent(row: dict[str, Any]) -> int:
    return int(row["total_ns"] or 0)


def _moved(row: dict[str, Any]) -> int:
    return int((row["read_bytes"] or 0) + (row["write_bytes"] or 0))


def _call_name(row: dict[str, Any]) -> str:
    return f"{row['cat']} · {row['name']}"


def _largest(rows: Sequence[dict[str, Any]], key: str, column: str) -> list[str]:
    sums: dict[str, int] = {}
    for row in rows:
        sums[row[key]] = sums.get(row[key], 0) + (row[column] or 0)
    return [name for name in sorted(sums, key=lambda name: -sums[name]) if sums[name]]


def _held(values: Sequence[float]) -> list[float]:
    """The last interval reaches to its end."""
    return _rounded([*values, values[-1]])


def _hover_texts(values: Sequence[str]) -> list[str]:
    return [*values, values[-1]]


def _rounded(values: Sequence[float]) -> list[float]:
    return [float(f"{value:.5g}") for value in values]


PLOTS = [timeline, calls, latencies, sizes, files]

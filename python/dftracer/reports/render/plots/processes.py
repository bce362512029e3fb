"""Figures of processes: overlap, activity over time, and slow ranks and workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dftracer._format import axis_scale, counted, duration, size_scale
from dftracer.reports.model import Report, Table
from dftracer.reports.render import column_format
from dftracer.reports.render.figures import (
    HEAT,
    Figure,
    View,
    dots,
    height_of,
    label,
    named_rows,
    process_names,
    row_bars,
    start_of,
)
from dftracer.reports.schema import derived

MOST_BARS = 30
MOST_ROWS = 200  # of the heat map


def overlap(report: Report) -> Figure | None:
    rows = [row for row in report.table("processes") if row["io_ns"] or row["compute_ns"]]
    if not rows:
        return None
    rows.sort(key=lambda row: (-(row["unhidden_io_ns"] or 0), row["process"]))
    shown = rows[:MOST_BARS]
    names = process_names(report)
    scale, unit = axis_scale(max(_lifetime(row) for row in shown) or 1)
    parts: list[tuple[str, str, Callable[[dict[str, Any]], int]]] = [
        ("I/O, not hidden", "unhidden", lambda row: row["unhidden_io_ns"] or 0),
        ("I/O hidden by compute", "hidden", lambda row: row["hidden_io_ns"] or 0),
        ("compute alone", "compute", lambda row: row["compute_ns"] - (row["hidden_io_ns"] or 0)),
        ("neither", "other", neither),
    ]
    data = [
        row_bars(
            name,
            role,
            [float(f"{value(row) / scale:.5g}") for row in shown],
            range(len(shown)),
            [f"{label(names[row['process']], 80)}<br>{duration(value(row))}" for row in shown],
        )
        for name, role, value in parts
        if any(value(row) for row in shown)
    ]
    rows_of = [names[row["process"]] for row in shown]
    layout = {
        "barmode": "stack",
        "xaxis": {"title": {"text": unit}, "showgrid": True},
        "yaxis": named_rows(rows_of),
    }
    left = len(rows) - len(shown)
    return Figure(
        "overlap",
        "I/O and compute",
        "Exact intervals, over all threads of a process.",
        [View("Time", data, layout, _without_hosts(rows_of))],
        report.table("processes"),
        height=height_of(len(shown)),
        notes=[f"{counted(left, 'process', 'processes')} with less unhidden I/O"] if left else [],
        origin=start_of(report),
    )


def _without_hosts(names: Sequence[str]) -> list[str]:
    """For a narrow window, if the short names are still different."""
    short = [name.partition(" on ")[0] for name in names]
    return short if len(set(short)) == len(short) else list(names)


def _lifetime(row: dict[str, Any]) -> int:
    return max(0, row["life_ns"] or 0)


def neither(row: dict[str, Any]) -> int:
    """The part of a process's life in which it did no I/O and did not compute."""
    busy = (row["io_ns"] or 0) + (row["compute_ns"] or 0) - (row["hidden_io_ns"] or 0)
    return max(0, _lifetime(row) - busy)


# The hue is that of the class, as in the other plots.
MEASURES = (
    ("I/O", "io_ns", "io", "share of the time with I/O"),
    ("I/O not hidden", "unhidden_io_ns", "io", "share of the time with I/O but no compute"),
    ("Compute", "compute_ns", "compute", "share of the time with compute"),
    ("Bytes", "bytes", "io", "bytes moved"),
)


def heat(report: Report) -> Figure | None:
    table = report.table("heat")
    if not table.rows:
        return None
    # There may be a million rows, so they stay tuples.
    at = {name: place for place, name in enumerate(table.columns)}
    who, begin = at["process"], at["start_ns"]
    rows = table.rows
    origin = start_of(report)
    names = process_names(report)
    length = rows[0][at["dur_ns"]]
    first, last = (f(row[begin] for row in rows) for f in (min, max))
    pieces = (last - first) // length + 1
    sums = _heat_sums(table)
    busy = {process: one["io_ns"] + one["compute_ns"] for process, one in sums.items()}
    kept = sorted(sorted(busy, key=lambda process: (-busy[process], process))[:MOST_ROWS])
    place = {process: number for number, process in enumerate(kept)}
    others = len(busy) - len(kept)
    labels = [names.get(process, str(process)) for process in kept]
    short = _without_hosts(labels)
    if others:
        labels.append(f"{others:,} others, mean")
        short.append(f"{others:,} others")
    scale, unit = axis_scale(pieces * length)
    views = []
    end = (last + length - origin) / scale
    for name, column, hue, meaning in MEASURES:
        if not any(one[column] for one in sums.values()):
            continue
        grid = [[0.0] * pieces for _ in labels]
        value = at[column]
        for row in rows:
            line = place.get(row[who])
            if line is None:
                grid[-1][(row[begin] - first) // length] += row[value] / others
            else:
                grid[line][(row[begin] - first) // length] += row[value]
        share = column != "bytes"
        most = length if share else max(map(max, grid)) or 1
        views.append(
            View(
                name,
                [_map(grid, most, share, hue, ((first - origin) / scale, length / scale), unit)],
                {
                    "xaxis": {
                        "title": {"text": f"time since the first event, {unit}"},
                        # The first piece begins before the first event.
                        "range": [max(0.0, (first - origin) / scale), end],
                    },
                    "yaxis": named_rows(labels) if len(labels) <= 40 else _numbered(labels),
                    "meta": meaning,
                },
                short if len(labels) <= 40 else short[:: _every(labels)],
            )
        )
    if not views:
        return None
    return Figure(
        "heat",
        "Processes over time",
        "One row per process; a stronger colour means busier.",
        views,
        _heat_table(sums, names, origin),
        height=height_of(len(labels), 22 if len(labels) <= 24 else 14 if len(labels) <= 45 else 4),
        notes=[f"{others:,} less busy processes share one row"] if others else [],
        origin=origin,
    )


def _map(
    grid: list[list[float]],
    most: float,
    share: bool,
    hue: str,
    place: tuple[float, float],
    unit: str,
) -> dict[str, Any]:
    start, step = place
    size, size_unit = size_scale(most)
    # Whole percents: finer ones cannot be seen, and would double the page.
    scale = most / 100 if share else size
    z = [
        [int(value / scale + 0.5) if share else float(f"{value / scale:.3g}") for value in row]
        for row in grid
    ]
    end = "%" if share else size_unit
    return {
        "type": "heatmap",
        "z": z,
        "x0": float(f"{start + step / 2:.6g}"),
        "dx": step,
        "zmin": 0,
        "zmax": max(1, *map(max, z)) if share else float(f"{most / scale:.3g}"),
        "colorscale": [[at / (len(HEAT[hue]) - 1), pair[0]] for at, pair in enumerate(HEAT[hue])],
        "meta": {"heat": hue},
        "hoverongaps": False,
        "hovertemplate": f"%{{y}}<br>%{{x:.4~g}} {unit}: %{{z}} {end}<extra></extra>",
        "colorbar": {
            "thickness": 8,
            "outlinewidth": 0,
            "ticksuffix": f" {end}",
            "len": 1,
            "nticks": min(6, len(grid) + 2),
        },
    }


def _every(labels: Sequence[str]) -> int:
    return -(-len(labels) // 20)


def _numbered(labels: list[str]) -> dict[str, Any]:
    """With too many rows, only every nth is named."""
    every = _every(labels)
    axis = named_rows(labels)
    kept = {key: axis[key][::every] for key in ("tickvals", "ticktext")}
    return {**axis, **kept}


HEAT_SUMS = ("io_ns", "unhidden_io_ns", "compute_ns", "ops", "bytes")


def _heat_sums(table: Table) -> dict[int, dict[str, int]]:
    """By process; and where its interval with the most I/O begins."""
    places = [(name, table.columns.index(name)) for name in HEAT_SUMS]
    who, begin, io = (table.columns.index(name) for name in ("process", "start_ns", "io_ns"))
    found: dict[int, dict[str, int]] = {}
    for row in table.rows:
        one = found.get(row[who])
        if one is None:
            one = found[row[who]] = dict.fromkeys((*HEAT_SUMS, "most", "busiest_ns"), 0)
        for name, place in places:
            one[name] += row[place] or 0
        if (row[io] or 0) > one["most"]:
            one["most"], one["busiest_ns"] = row[io], row[begin]
    return found


def _heat_table(sums: dict[int, dict[str, int]], names: dict[int, str], origin: int) -> Table:
    schema = derived(
        "heat",
        "one row per process: its totals, and when it did the most I/O",
        [
            ("process", "int", "its number in this report"),
            ("name", "text", "rank, role and pid"),
            ("io_ns", "int", "time in which at least one I/O call was open"),
            ("unhidden_io_ns", "int", "I/O while no thread computed"),
            ("compute_ns", "int", "time in which at least one thread computed"),
            ("ops", "int", "I/O calls"),
            ("bytes", "int", "read and written"),
            ("busiest_ns", "int", "the interval with the most I/O, since the first event"),
        ],
    )
    rows = []
    for process in sorted(sums):
        one = sums[process]
        # The first piece begins before the first event.
        busiest = max(one["busiest_ns"], origin) if one["most"] else None
        rows.append((process, names.get(process, ""), *(one[key] for key in HEAT_SUMS), busiest))
    return Table(schema, rows)


def stragglers(report: Report) -> Figure | None:
    rows = [row for row in report.table("stragglers") if row["ratio"] is not None]
    groups = list(dict.fromkeys((row["kind"], row["measure"]) for row in rows))
    if not groups:
        return None
    names = process_names(report)
    least, most = (f(row["ratio"] for row in rows) for f in (min, max))
    rows_of = [f"{kind}: {measure}" for kind, measure in groups]
    data = []
    sides = (("slower or more", "slower", True), ("within a quarter", "even", False))
    for side, role, apart in sides:
        there = [row for row in rows if (row["ratio"] > 1.25) == apart]
        if there:
            data.append(
                dots(
                    side,
                    role,
                    [float(f"{row['ratio']:.4g}") for row in there],
                    [groups.index((row["kind"], row["measure"])) for row in there],
                    "%{customdata}<extra></extra>",
                    customdata=[_straggler(row, names) for row in there],
                    opacity=0.8,
                )
            )
    layout = {
        "xaxis": {
            "title": {"text": "ratio to the median of its kind"},
            "showgrid": True,
            # Wide enough that a difference of two percent looks like one.
            "range": [min(0.5, 0.95 * least), max(1.5, 1.05 * most)],
        },
        "yaxis": named_rows(rows_of),
        "shapes": [
            {
                "type": "line",
                "x0": 1,
                "x1": 1,
                "yref": "paper",
                "y0": 0,
                "y1": 1,
                "line": {"width": 1, "dash": "dot", "color": "#98a2ad"},
            }
        ],
    }
    return Figure(
        "stragglers",
        "Compared with the median of its kind",
        "Each point is a process. 1 is the median; a point far to the right delays the others.",
        [View("Ratio", data, layout, rows_of)],
        report.table("stragglers"),
        height=height_of(len(groups), 44),
    )


def _straggler(row: dict[str, Any], names: dict[int, str]) -> str:
    who = label(names.get(row["process"], row["process"]), 60)
    value = column_format.measured(row["value"], row["measure"])
    return f"{who}<br>{value}, {row['ratio']:.2f} × the median"


PLOTS = [overlap, heat, stragglers]

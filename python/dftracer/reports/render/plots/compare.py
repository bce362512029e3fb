"""Figures of a comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dftracer._format import axis_scale, duration
from dftracer.reports.compare import Comparison, step_times
from dftracer.reports.model import Table
from dftracer.reports.render.figures import (
    Figure,
    View,
    colour,
    dots,
    height_of,
    label,
    merged,
    named_rows,
    row_bars,
)
from dftracer.reports.schema import derived

MOST_POINTS = 300
SIDES = {"slower": "slower", "faster": "faster", "noise": "even"}


def changes(comparison: Comparison) -> Figure | None:
    rows = [row for row in comparison.tables["changes"] if row["low_percent"] is not None]
    # A part of a step that is next to nothing changes by thousands of percent, and says nothing.
    most = max((row["after"] for row in rows), default=0)
    rows = [row for row in rows if max(row["before"], row["after"]) >= most / 100]
    if not rows:
        return None
    names = [str(row["measure"]) for row in rows]
    data = []
    for verdict, role in SIDES.items():
        there = [at for at, row in enumerate(rows) if row["verdict"] == verdict]
        if not there:
            continue
        values = [round(rows[at]["change_percent"], 2) for at in there]
        reach = [
            [round(abs(rows[at][side] - rows[at]["change_percent"]), 2) for at in there]
            for side in ("high_percent", "low_percent")
        ]
        texts = [
            f"{label(rows[at]['measure'])}: {duration(rows[at]['before'])} before, "
            f"{duration(rows[at]['after'])} now"
            for at in there
        ]
        point = dots(
            {"noise": "within noise"}.get(verdict, verdict),
            role,
            values,
            there,
            "%{customdata}<br>%{x:+.1f} %<extra></extra>",
            customdata=texts,
        )
        bar = {"type": "data", "symmetric": False, "array": reach[0], "arrayminus": reach[1]}
        data.append(merged(point, {"error_x": {**bar, "color": colour(role), "thickness": 2}}))
    layout = {
        "xaxis": {
            "title": {"text": "change in %, with 95 % confidence intervals"},
            "showgrid": True,
            "zeroline": True,
        },
        "yaxis": named_rows(names),
    }
    return Figure(
        "changes",
        "What changed",
        "Right of zero is slower. A bar that crosses zero is noise.",
        [View("Change", data, layout, names)],
        comparison.tables["changes"],
        height=height_of(len(rows), 34),
    )


def step_distribution(comparison: Comparison) -> Figure | None:
    old, new = (step_times(report) for report in (comparison.before, comparison.after))
    if not old or not new:
        return None
    scale, unit = axis_scale(sorted([*old, *new])[(len(old) + len(new)) // 2])
    data = []
    rows = []
    for name, role, values in (("before", "before", old), ("now", "after", new)):
        points = _quantiles(values)
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": name,
                "x": [float(f"{value / scale:.5g}") for value, _ in points],
                "y": [round(share, 2) for _, share in points],
                "line": {"color": colour(role), "width": 2, "shape": "hv"},
                "meta": {"role": role},
                "hovertemplate": f"%{{y:.0f}} % of the steps took at most %{{x:.3~g}} {unit}",
            }
        )
    for share in (0, 1, 5, 10, 25, 50, 75, 90, 95, 99, 100):
        rows.append((f"{share} %", *(_quantile(values, share / 100) for values in (old, new))))
    schema = derived(
        "step_distribution",
        "distribution of step times, without the first step of each epoch",
        [
            ("steps", "text", "share of the steps"),
            ("before_ns", "float", "in the baseline"),
            ("now_ns", "float", "in this run"),
        ],
    )
    ends = [_quantile([*old, *new], share) / scale for share in (0.0, 0.995)]
    layout = {
        "xaxis": {
            "title": {"text": f"step time, {unit}"},
            "showgrid": True,
            "range": [ends[0] * 0.97, ends[1] * 1.03],
        },
        "yaxis": {"title": {"text": "% of the steps"}, "range": [0, 101]},
    }
    return Figure(
        "step_distribution",
        "Step times",
        "Share of the steps that took at most this long; further left is faster.",
        [View("Steps", data, layout)],
        Table(schema, rows),
        height=300,
    )


def _quantiles(values: Sequence[float]) -> list[tuple[float, float]]:
    ordered = sorted(values)
    every = max(1, len(ordered) // MOST_POINTS)
    places = sorted({*range(0, len(ordered), every), len(ordered) - 1})
    return [(ordered[at], 100 * (at + 1) / len(ordered)) for at in places]


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def call_changes(comparison: Comparison) -> Figure | None:
    table = comparison.tables["call_changes"]
    rows = [row for row in table if row["change_ns"]][:15]
    if not rows:
        return None
    scale, unit = axis_scale(max(abs(row["change_ns"]) for row in rows))
    names = [f"{row['cat']} · {row['name']}" for row in rows]
    data = []
    sides: tuple[tuple[str, str, Callable[[int], bool]], ...] = (
        ("more time", "slower", lambda change: change > 0),
        ("less time", "faster", lambda change: change < 0),
    )
    for name, role, belongs in sides:
        there = [at for at, row in enumerate(rows) if belongs(row["change_ns"])]
        if there:
            data.append(
                row_bars(
                    name,
                    role,
                    [float(f"{rows[at]['change_ns'] / scale:.5g}") for at in there],
                    there,
                    [f"{label(names[at], 90)}<br>{_signed(rows[at]['change_ns'])}" for at in there],
                )
            )
    layout = {
        "barmode": "overlay",
        "xaxis": {"title": {"text": f"change, {unit}"}, "showgrid": True, "zeroline": True},
        "yaxis": named_rows(names),
    }
    return Figure(
        "call_changes",
        "Calls and regions",
        "Change of the sum of durations. Their noise is unknown: small changes may mean nothing.",
        [View("Time", data, layout, names)],
        table,
        height=height_of(len(rows)),
    )


def _signed(change: float) -> str:
    return f"{'+' if change > 0 else ''}{duration(change)}"


PLOTS = [changes, step_distribution, call_changes]

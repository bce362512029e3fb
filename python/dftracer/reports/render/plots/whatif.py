"""The figure of predictions: step times with other settings."""

from __future__ import annotations

from typing import Any

from dftracer._format import axis_scale, duration
from dftracer.reports.model import Report
from dftracer.reports.render.figures import (
    Figure,
    View,
    dots,
    height_of,
    named_rows,
    process_names,
    row_bars,
)
from dftracer.reports.whatif import MEASURED

MOST_BARS = 60


def whatif(report: Report) -> Figure | None:
    table = report.table("whatif")
    every = table.dicts()
    rows = every[:MOST_BARS]
    if all(row["change"] == MEASURED for row in rows):
        return None
    several = len({row["process"] for row in rows}) > 1
    names = process_names(report)
    scale, unit = axis_scale(max(max(row["step_high_ns"] or row["step_ns"] for row in rows), 1))

    def name(place: int) -> str:
        row = rows[place]
        who = f"{names.get(row['process'], '')}: " if several else ""
        return f"{who}{row['change']}"

    def text(place: int) -> str:
        row = rows[place]
        if row["step_low_ns"] is None:
            return duration(row["step_ns"])
        low, high = duration(row["step_low_ns"]), duration(row["step_high_ns"])
        return f"{duration(row['step_ns'])}<br>95 % interval {low} to {high}"

    data = []
    for words, role, places in (
        ("measured", "before", [n for n, row in enumerate(rows) if row["change"] == MEASURED]),
        ("predicted", "fetch", [n for n, row in enumerate(rows) if row["change"] != MEASURED]),
    ):
        if places:
            values = [float(f"{rows[n]['step_ns'] / scale:.5g}") for n in places]
            texts = [text(n) for n in places]
            data.append(row_bars(words, role, values, places, texts))
            if words == "predicted":
                data.append(_intervals(values, places, texts, [rows[n] for n in places], scale))
    axis = {"xaxis": {"title": {"text": f"mean step, {unit}"}, "showgrid": True}}
    notes = dict.fromkeys(row["note"] for row in rows if row["note"])
    left = len(every) - len(rows)
    return Figure(
        "whatif",
        "What if: step times with other settings",
        "The recorded run, the model's prediction of it, and of one change at a time, with 95 % "
        "intervals.",
        [View("Time", data, {**axis, "yaxis": named_rows([name(n) for n in range(len(rows))])})],
        table,
        height=height_of(len(rows)),
        notes=[*notes, *([f"{left:,} more in the table"] if left else [])],
    )


def _intervals(
    values: list[float],
    places: list[int],
    texts: list[str],
    rows: list[dict[str, Any]],
    scale: float,
) -> dict[str, Any]:
    low = [row["step_ns"] - row["step_low_ns"] for row in rows]
    high = [row["step_high_ns"] - row["step_ns"] for row in rows]
    found = dots(
        "95 % interval",
        "after",
        values,
        places,
        "%{customdata}<extra>95 % interval</extra>",
        customdata=texts,
    )
    found["marker"] = {**found["marker"], "size": 5}
    found["error_x"] = {
        "type": "data",
        "symmetric": False,
        "array": [float(f"{value / scale:.5g}") for value in high],
        "arrayminus": [float(f"{value / scale:.5g}") for value in low],
        "thickness": 1.5,
        "width": 4,
    }
    return found


PLOTS = [whatif]

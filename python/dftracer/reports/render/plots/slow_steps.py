"""Figures of slow steps: when and why, and what of making batches was hidden."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dftracer._format import axis_scale, counted, duration, percent
from dftracer.reports.model import Report
from dftracer.reports.render.figures import (
    Figure,
    View,
    dots,
    height_of,
    label,
    named_rows,
    process_names,
    row_bars,
    start_of,
    text_of,
)
from dftracer.reports.schema import WAITING

MOST_DOTS = 2000
# Colours of causes; those of one kind share one.
CAUSE_ROLES = {
    "reading": "io",
    "decoding": "decoding",
    "collating": "decoding-2",
    "too few workers": "fetch",
    "first batch": "fetch-2",
    "worker start-up": "fetch-3",
    "not yet begun": "queue-2",
    "waiting for its turn": "queue-2",
    "queue transfer": "queue",
    "pinning": "queue",
    "garbage collection": "gc",
    "compute": "compute",
    "first step": "compute-2",
    "communication": "communication",
    "a straggling rank": "waiting",
    "transfer": "transfer",
    "checkpoint": "checkpoint",
    "evaluation": "evaluation",
    "unattributed": "other",
}
PART_ROLES = {
    "start-up": "other-3",
    "waiting for data": "fetch",
    "waiting for others": "waiting",
    "between steps": "other-2",
    "shut-down": "other-3",
}


def slow_steps(report: Report) -> Figure | None:
    table = report.table("slow_steps")
    rows = table.dicts()[:MOST_DOTS]
    if not rows:
        return None
    origin = start_of(report)
    longest = max(row["start_ns"] + row["dur_ns"] for row in rows) - origin
    scale, unit = axis_scale(max(longest, 1))
    high, late_unit = axis_scale(rows[0]["late_ns"])
    names = process_names(report)
    several = len({row["process"] for row in rows}) > 1
    data = []
    for cause in dict.fromkeys(row["cause"] for row in rows):
        there = [row for row in rows if row["cause"] == cause]
        data.append(
            dots(
                cause,
                CAUSE_ROLES.get(cause, "other"),
                _scaled([row["start_ns"] - origin for row in there], scale),
                _scaled([row["late_ns"] for row in there], high),
                f"%{{customdata}}<extra>{text_of(cause)}</extra>",
                customdata=[_hover(row, names if several else {}) for row in there],
            )
        )
    layout = {
        "xaxis": {"title": {"text": f"time since the first event, {unit}"}},
        "yaxis": {"title": {"text": f"late by, {late_unit}"}},
    }
    left = len(table) - len(rows)
    return Figure(
        "slow_steps",
        "When steps were late, and why",
        "Each point is a step that waited for its batch, or took longer than usual.",
        [View("Time", data, layout)],
        table,
        height=300,
        notes=[f"{counted(left, 'step')} that were less late are in the table"] if left else [],
        origin=origin,
    )


def _hover(row: dict[str, Any], names: dict[int, str]) -> str:
    step = "step" if row["step"] is None else f"step {row['step']}"
    who = f"{label(names[row['process']], 60)}, " if row["process"] in names else ""
    batch = "" if row["batch"] is None else f"<br>batch {row['batch']}"
    worker = "" if row["worker"] is None else f", worker {row['worker']}"
    file = "" if row["file"] is None else f"<br>{label(row['file'], 60)}"
    return f"{who}{step}<br>{duration(row['late_ns'])}{batch}{worker}{file}"


def input_overlap(report: Report) -> Figure | None:
    table = report.table("input_overlap")
    sums: dict[str, list[int]] = {}
    for row in table:
        one = sums.setdefault(row["activity"], [0, 0])
        one[0] += row["exposed_ns"]
        one[1] += row["hidden_ns"]
    if not sums:
        return None
    names = list(sums)
    scale, unit = axis_scale(max(sum(one) for one in sums.values()) or 1)
    sides = (("exposed: training waited", "fetch", 0), ("hidden", "hidden", 1))
    spent, shares = [], []
    for name, role, at in sides:
        values = [sums[activity][at] for activity in names]
        texts = [f"{activity}<br>{duration(v)}" for activity, v in zip(names, values)]
        spent.append(row_bars(name, role, _scaled(values, scale), range(len(names)), texts))
        parts = [v / max(sum(sums[activity]), 1) for activity, v in zip(names, values)]
        texts = [f"{activity}<br>{percent(v)}" for activity, v in zip(names, parts)]
        percents = _scaled([100 * v for v in parts], 1)
        shares.append(row_bars(name, role, percents, range(len(names)), texts))
    axis = {"barmode": "stack", "yaxis": named_rows(names)}
    return Figure(
        "input_overlap",
        "What batches took, and what of it training waited for",
        "Time of the processes that make batches; exposed times add up to the time of waiting.",
        [
            View("Time", spent, {**axis, "xaxis": {"title": {"text": unit}, "showgrid": True}}),
            View("Share", shares, {**axis, "xaxis": {"title": {"text": "%"}, "showgrid": True}}),
        ],
        table,
        height=height_of(len(names)),
    )


def part_role(part: str) -> str:
    """The colour of a part of a process's life."""
    return PART_ROLES.get(part) or CAUSE_ROLES.get(part.removeprefix(f"{WAITING}: "), "other")


def _scaled(values: Sequence[float], scale: float) -> list[float]:
    return [float(f"{value / scale:.5g}") for value in values]


PLOTS = [slow_steps, input_overlap]

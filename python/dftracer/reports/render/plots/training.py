"""Figures of training: epochs, steps, and PyTorch operations."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from dftracer._format import axis_scale, counted, duration, percent
from dftracer.reports.model import Report, Table
from dftracer.reports.render.figures import (
    Figure,
    View,
    bars,
    height_of,
    label,
    merged,
    named_rows,
    row_bars,
    start_of,
)
from dftracer.reports.schema import PART_COLUMNS, PARTS, parts_of

# Those of an epoch: evaluation is no part of a step.
EPOCH_PARTS = {"evaluation": "evaluation"} | PARTS
EPOCH_COLUMNS = {"evaluation": "evaluation_ns"} | PART_COLUMNS
MOST_STEPS = 400


def epochs(report: Report) -> Figure | None:
    rows = _mean_over_processes(report.table("epochs"), ("epoch",))
    if not rows:
        return None
    names = [_number(row["epoch"], at) for at, row in enumerate(rows)]
    scale, unit = axis_scale(max(row["dur_ns"] for row in rows))
    axis = {
        "xaxis": {
            "title": {"text": "epoch"},
            "tickmode": "array",
            "tickvals": list(range(len(names)))[:: -(-len(names) // 30)],
            "ticktext": names[:: -(-len(names) // 30)],
        },
        "barmode": "stack",
    }
    spent, shares = [], []
    for part, values in _parts(rows, EPOCH_COLUMNS).items():
        hover = f"%{{customdata}}<extra>{EPOCH_PARTS[part]}</extra>"
        width = {"width": 0.5} if len(names) < 6 else {}
        texts = [f"epoch {name}<br>{duration(value)}" for name, value in zip(names, values)]
        spent.append(
            bars(
                EPOCH_PARTS[part],
                part,
                range(len(rows)),
                _scaled(values, scale),
                hover,
                customdata=texts,
                **width,
            )
        )
        whole = [value / max(row["dur_ns"], 1) for value, row in zip(values, rows)]
        texts = [f"epoch {name}<br>{percent(share)}" for name, share in zip(names, whole)]
        shares.append(
            bars(
                EPOCH_PARTS[part],
                part,
                range(len(rows)),
                _rounded([100 * share for share in whole]),
                hover,
                customdata=texts,
                **width,
            )
        )
    ranks = len(set(report.table("epochs").column("process")))
    return Figure(
        "epochs",
        "Epochs",
        "Where the time of each epoch went"
        + (f", mean of {ranks} processes." if ranks > 1 else "."),
        [
            View("Time", spent, merged(axis, {"yaxis": {"title": {"text": unit}}})),
            View("Share", shares, merged(axis, {"yaxis": {"title": {"text": "%"}}})),
        ],
        report.table("epochs"),
        height=300,
        origin=start_of(report),
    )


def steps(report: Report) -> Figure | None:
    table = report.table("steps")
    rows = _mean_over_processes(table, ("epoch", "step"))
    if not rows:
        return None
    each = -(-len(rows) // MOST_STEPS)
    groups = [rows[at : at + each] for at in range(0, len(rows), each)]
    shown = [_mean(group) for group in groups]
    names = [_step_name(group[0]) for group in groups]
    scale, unit = axis_scale(_typical(shown))
    data = []
    for part, values in _parts(shown).items():
        hover = f"%{{customdata}}<extra>{PARTS[part]}</extra>"
        texts = [f"{name}<br>{duration(value)}" for name, value in zip(names, values)]
        data.append(
            bars(
                PARTS[part],
                part,
                range(0, len(rows), each),
                _scaled(values, scale),
                hover,
                customdata=texts,
                width=each,
                offset=0,
            )
        )
    starts = [
        at * each
        for at in range(1, len(shown))
        if groups[at][0]["epoch"] != groups[at - 1][0]["epoch"]
    ]
    lines = [
        {
            "type": "line",
            "xref": "x",
            "yref": "paper",
            "x0": at,
            "x1": at,
            "y0": 0,
            "y1": 1,
            "line": {"width": 1, "dash": "dot", "color": "#98a2ad"},
        }
        for at in starts[:60]
    ]
    axis = {
        "barmode": "stack",
        "bargap": 0,
        "shapes": lines,
        "xaxis": {"title": {"text": "step, in order"}},
        "yaxis": {"title": {"text": unit}},
    }
    # A first step that takes a hundred times as long would leave nothing to be seen of the rest.
    usual = _typical(shown, 0.95) / scale * 1.6
    tallest = max(row["dur_ns"] for row in shown) / scale
    views = [View("All", data, axis)]
    if tallest > 2 * usual > 0:
        cut = merged(axis, {"yaxis": {"range": [0, usual]}})
        views.append(View("Without the longest", data, cut))
    notes = []
    if each > 1:
        notes.append(f"each bar is the mean of {each} consecutive steps of {len(rows):,}")
    return Figure(
        "steps",
        "Steps",
        "Where the time of each step went; dotted lines mark the beginning of an epoch.",
        views,
        table,
        height=320,
        notes=notes,
        origin=start_of(report),
    )


def torch_operations(report: Report) -> Figure | None:
    table = report.table("torch_ops")
    sums: dict[str, int] = {}
    for row in table:
        sums[row["name"]] = sums.get(row["name"], 0) + row["total_ns"]
    top = sorted(sums, key=lambda name: -sums[name])[:20]
    if not top:
        return None
    scale, unit = axis_scale(sums[top[0]])
    phases = {"forward": "forward", "backward": "backward", None: "other"}
    data = []
    for phase, role in phases.items():
        spent = {row["name"]: row["total_ns"] for row in table if row["phase"] == phase}
        if spent:
            there = [at for at, name in enumerate(top) if name in spent]
            data.append(
                row_bars(
                    phase or "unknown phase",
                    role,
                    _scaled([spent[top[at]] for at in there], scale),
                    there,
                    [f"{label(top[at], 90)}<br>{duration(spent[top[at]])}" for at in there],
                )
            )
    layout = {
        "barmode": "stack",
        "xaxis": {"title": {"text": unit}, "showgrid": True},
        "yaxis": named_rows(top),
    }
    left = len(sums) - len(top)
    return Figure(
        "torch_ops",
        "PyTorch operations",
        "The operations that took the most time.",
        [View("Time", data, layout, top)],
        table,
        height=height_of(len(top)),
        notes=[f"{counted(left, 'more operation')} in the table"] if left > 0 else [],
    )


def _mean_over_processes(table: Table, keys: Sequence[str]) -> list[dict[str, Any]]:
    """One row per epoch or step, in order of time: the ranks of a job do them together."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in sorted(table, key=lambda row: (row["start_ns"] or 0, row["process"] or 0)):
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    unnumbered = tuple(None for _ in keys)
    alone = groups.pop(unnumbered, [])
    return [*map(_mean, groups.values()), *alone]


def _mean(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    if len(rows) == 1:
        return rows[0]
    result = dict(rows[0])
    for column in result.keys() & {*EPOCH_COLUMNS.values(), "dur_ns"}:
        result[column] = sum(row[column] or 0 for row in rows) / len(rows)
    return result


def _parts(
    rows: Sequence[dict[str, Any]], columns: dict[str, str] = PART_COLUMNS
) -> dict[str, list[float]]:
    """The values of each part that occurs."""
    each = [parts_of(row, columns) for row in rows]
    found = {part: [values[part] for values in each] for part in columns}
    return {part: values for part, values in found.items() if any(values)}


def _typical(rows: Sequence[dict[str, Any]], quantile: float = 0.5) -> float:
    ordered = sorted(row["dur_ns"] for row in rows)
    return float(ordered[min(len(ordered) - 1, int(len(ordered) * quantile))])


def _scaled(values: Sequence[float], scale: float) -> list[float]:
    return _rounded([value / scale for value in values])


def _rounded(values: Sequence[float]) -> list[float]:
    return [float(f"{value:.5g}") for value in values]


def _number(value: object, at: int) -> str:
    return str(at) if value is None else html.escape(str(value), quote=False)


def _step_name(row: dict[str, Any]) -> str:
    words = [f"{key} {row[key]}" for key in ("epoch", "step") if row[key] is not None]
    return html.escape(", ".join(words), quote=False) or "step"


PLOTS = [epochs, steps, torch_operations]

"""Figures of what a training did: epochs, steps, and operations of PyTorch."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from dftracer.reports import units
from dftracer.reports.figures import (
    Figure,
    View,
    bars,
    derived,
    height_of,
    label,
    merged,
    named_rows,
    row_bars,
    start_of,
)
from dftracer.reports.model import Report, Table

# The parts of a step, in the order in which they are stacked, with the names they have in legends.
PARTS = {
    "compute": "compute",
    "communication": "communication",
    "transfer": "transfer",
    "checkpoint": "checkpoint",
    "fetch": "waiting for data",
    "other": "unattributed",
}
COLUMNS = {part: f"{part}_ns" for part in PARTS} | {"other": "unattributed_ns"}
# Those of an epoch: evaluation is no part of a step.
EPOCH_PARTS = {"evaluation": "evaluation"} | PARTS
EPOCH_COLUMNS = {"evaluation": "evaluation_ns"} | COLUMNS
MOST_STEPS = 400


def epochs(report: Report) -> Figure | None:
    rows = _mean_over_processes(report.table("epochs"), ("epoch",))
    if not rows:
        return None
    names = [_number(row["epoch"], at) for at, row in enumerate(rows)]
    hover = "epoch %{customdata}<br>%{y:.3~g} "
    scale, unit = units.scale_of(max(row["dur_ns"] for row in rows))
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
        title = EPOCH_PARTS[part]
        end = f"{unit}<extra>{title}</extra>"
        where: dict[str, Any] = {"customdata": names}
        if len(names) < 6:
            where["width"] = 0.5
        spent.append(
            bars(title, part, range(len(rows)), _scaled(values, scale), hover + end, **where)
        )
        whole = [100 * v / max(row["dur_ns"], 1) for v, row in zip(values, rows)]
        end = f"%<extra>{title}</extra>"
        shares.append(bars(title, part, range(len(rows)), _rounded(whole), hover + end, **where))
    ranks = len(set(report.table("epochs").column("process")))
    return Figure(
        "epochs",
        "Epochs",
        "What each epoch's time went to" + (f", mean of {ranks} processes." if ranks > 1 else "."),
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
    scale, unit = units.scale_of(_typical(shown))
    data = []
    for part, values in _parts(shown).items():
        hover = f"%{{customdata}}<br>%{{y:.3~g}} {unit}<extra>{PARTS[part]}</extra>"
        data.append(
            bars(
                PARTS[part],
                part,
                range(0, len(rows), each),
                _scaled(values, scale),
                hover,
                customdata=names,
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
        "xaxis": {"title": {"text": "step, in the order of the run"}},
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
        notes.append(f"each bar is the mean of {each} of {len(rows):,} steps in a row")
    return Figure(
        "steps",
        "Steps",
        "What each step's time went to; dotted lines are where an epoch begins.",
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
    scale, unit = units.scale_of(sums[top[0]])
    phases = {"forward": "s0", "backward": "s1", None: "s7"}
    data = []
    for phase, role in phases.items():
        spent = {row["name"]: row["total_ns"] for row in table if row["phase"] == phase}
        if spent:
            there = [at for at, name in enumerate(top) if name in spent]
            data.append(
                row_bars(
                    phase or "phase not known",
                    role,
                    _scaled([spent[top[at]] for at in there], scale),
                    there,
                    f"%{{customdata}}<br>%{{x:.3~g}} {unit}<extra></extra>",
                    [label(top[at], 90) for at in there],
                )
            )
    layout = {
        "barmode": "stack",
        "xaxis": {"title": {"text": unit}, "showgrid": True},
        "yaxis": named_rows([label(name) for name in top]),
    }
    left = len(sums) - len(top)
    return Figure(
        "torch_ops",
        "PyTorch operations",
        "The operations of the model that took the most time.",
        [View("Time", data, layout)],
        table,
        height=height_of(len(top)),
        notes=[f"{units.counted(left, 'further operation')} in the table only"] if left > 0 else [],
    )


def _mean_over_processes(table: Table, keys: Sequence[str]) -> list[dict[str, Any]]:
    """One row an epoch or a step, in the order of time: the ranks of a job do them together."""
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
    rows: Sequence[dict[str, Any]], columns: dict[str, str] = COLUMNS
) -> dict[str, list[float]]:
    """The values of each part that is there at all."""
    found = {part: [row[column] or 0 for row in rows] for part, column in columns.items()}
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


def split_table(report: Report) -> Table:
    """Where the time of all steps went: one row a part, of the sum over processes."""
    schema = derived(
        "split",
        "the time of all epochs, by what it was spent on",
        [
            ("part", "text", "what the time was spent on"),
            ("total_ns", "int", "sum over epochs and processes"),
            ("share", "float", "of the time of all epochs"),
        ],
    )
    table = report.table("epochs")
    whole = sum(value or 0 for value in table.column("dur_ns"))
    rows = []
    for part, column in EPOCH_COLUMNS.items():
        spent = sum(value or 0 for value in table.column(column))
        if spent:
            rows.append((EPOCH_PARTS[part], spent, spent / max(whole, 1)))
    return Table(schema, rows)


PLOTS = [epochs, steps, torch_operations]

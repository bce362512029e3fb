"""Figures of a report, as plotly draws them: plain dictionaries, so that making one costs nothing.

`figures(report)` gives them by name. In a notebook a figure shows itself; `figure.plotly()` is a
`plotly.graph_objects.Figure` for whoever wants to change it. The page draws the same dictionaries,
and takes the colours of `ROLES` from its style sheet.
"""

from __future__ import annotations

import heapq
import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dftracer.errors import DFTracerError
from dftracer.reports import units
from dftracer.reports.model import Report, Table
from dftracer.reports.schema import Column, Schema

# What a colour stands for, on a light and on a dark ground. Okabe and Ito's colours, which people
# who see red and green alike can tell apart; moved where one would be too faint on its ground.
ROLES = {
    "compute": ("#009e73", "#27b48c"),
    "fetch": ("#d55e00", "#ef7d2f"),
    "transfer": ("#b8629a", "#d98bb9"),
    "communication": ("#3d9fd6", "#74c1ee"),
    "checkpoint": ("#b08d00", "#e3c64a"),
    "evaluation": ("#0067a5", "#4c9fdb"),
    "io": ("#0067a5", "#4c9fdb"),
    "read": ("#0067a5", "#4c9fdb"),
    "write": ("#e08a00", "#f2ab3a"),
    "hidden": ("#3d9fd6", "#74c1ee"),
    "unhidden": ("#d55e00", "#ef7d2f"),
    "other": ("#bcc4cd", "#5c6773"),
    "before": ("#a3abb5", "#77828e"),
    "after": ("#0067a5", "#4c9fdb"),
    "s0": ("#0067a5", "#4c9fdb"),
    "s1": ("#e08a00", "#f2ab3a"),
    "s2": ("#009e73", "#27b48c"),
    "s3": ("#b8629a", "#d98bb9"),
    "s4": ("#d55e00", "#ef7d2f"),
    "s5": ("#3d9fd6", "#74c1ee"),
    "s6": ("#b08d00", "#e3c64a"),
    "s7": ("#a3abb5", "#77828e"),
}
SERIES = [role for role in ROLES if role[0] == "s" and role[1:].isdigit()]
# From nothing to all of it.
HEAT = (
    ("#eef3f8", "#1b222b"),
    ("#9cc5e3", "#1f4e78"),
    ("#3c89c0", "#2f83c4"),
    ("#053b66", "#bfe3ff"),
)

NO_PLOTLY = "plots need plotly, which is not installed: pip install 'pydftracer[report]'"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif"


class View(NamedTuple):
    """One way to look at a figure: its traces, and what of the layout is its own."""

    label: str
    data: list[dict[str, Any]]
    layout: dict[str, Any]


@dataclass
class Figure:
    name: str
    title: str
    meaning: str  # what is seen, in a sentence
    views: list[View]
    table: Table  # the numbers behind it
    height: int = 320
    notes: list[str] = field(default_factory=list)  # what was left out
    origin: int = 0  # the moment that times are counted from

    def layout(self, view: int = 0) -> dict[str, Any]:
        return merged(base_layout(), {"height": self.height}, self.views[view].layout)

    def plotly(self, view: int = 0) -> Any:
        """As plotly's own figure."""
        from importlib import import_module

        try:
            objects: Any = import_module("plotly.graph_objects")
        except ImportError:
            raise DFTracerError(NO_PLOTLY) from None
        return objects.Figure({"data": self.views[view].data, "layout": self.layout(view)})

    def _repr_html_(self) -> str:
        from dftracer.reports.notebook import figure_html

        return figure_html(self)


def base_layout() -> dict[str, Any]:
    axis = {
        "gridcolor": "#e3e7ec",
        "zerolinecolor": "#c5ccd4",
        "linecolor": "#c5ccd4",
        "automargin": True,
        "fixedrange": False,
        "title": {"standoff": 8, "font": {"size": 12}},
    }
    return {
        "font": {"family": FONT, "size": 12, "color": "#3b4550"},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 56, "r": 12, "t": 30, "b": 44},
        "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "traceorder": "normal"},
        "hovermode": "closest",
        "dragmode": "zoom",
        "bargap": 0.25,
        "xaxis": {**axis, "showgrid": False, "zeroline": False},
        "yaxis": {**axis, "rangemode": "tozero"},
    }


def merged(*parts: dict[str, Any]) -> dict[str, Any]:
    """Dictionaries of dictionaries; the later ones win."""
    result: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            old = result.get(key)
            result[key] = (
                merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
            )
    return result


def colour(role: str) -> str:
    return ROLES[role][0]


def label(name: object, longest: int = 44) -> str:
    """Plotly takes some tags in labels for tags: a name must not have any. Of a path the end says
    most."""
    shown = units.clean(name, 4096)
    if len(shown) > longest:
        shown = "…" + shown[-(longest - 1) :]
    return html.escape(shown, quote=False) or "(no name)"


def _series(
    kind: str, name: str, role: str, x: Sequence[Any], y: Sequence[Any], hover: str
) -> dict[str, Any]:
    return {
        "type": kind,
        "name": html.escape(name, quote=False),
        "x": list(x),
        "y": list(y),
        "meta": {"role": role},
        "hovertemplate": hover,
    }


def bars(
    name: str, role: str, x: Sequence[Any], y: Sequence[Any], hover: str, **more: Any
) -> dict[str, Any]:
    marker = {"color": colour(role), "line": {"width": 0}}
    return {**_series("bar", name, role, x, y, hover), "marker": marker, **more}


def row_bars(
    name: str, role: str, x: Sequence[Any], y: Sequence[Any], hover: str, names: Sequence[str]
) -> dict[str, Any]:
    """Horizontal bars; `names` are told when one is pointed at."""
    # One width: plotly would make those of a sparse trace thicker.
    return bars(name, role, x, y, hover, orientation="h", customdata=list(names), width=0.72)


def area(
    name: str, role: str, x: Sequence[Any], y: Sequence[Any], hover: str, **more: Any
) -> dict[str, Any]:
    return {
        **_series("scatter", name, role, x, y, hover),
        "mode": "lines",
        "line": {"color": colour(role), "width": 0, "shape": "hv"},
        "fillcolor": colour(role),
        "stackgroup": "one",
        **more,
    }


def dots(
    name: str, role: str, x: Sequence[Any], y: Sequence[Any], hover: str, **more: Any
) -> dict[str, Any]:
    return {
        **_series("scatter", name, role, x, y, hover),
        "mode": "markers",
        "marker": {"color": colour(role), "size": 8},
        **more,
    }


def named_rows(names: Sequence[str]) -> dict[str, Any]:
    """The vertical axis of horizontal bars, first name on top. Numbers stand behind the names:
    two that are shortened to the same text stay two rows."""
    return {
        "tickmode": "array",
        "tickvals": list(range(len(names))),
        "ticktext": list(names),
        "range": [len(names) - 0.5, -0.5],
        "showgrid": False,
        "zeroline": False,
        "ticks": "",
    }


def height_of(rows: int, each: int = 24, around: int = 84) -> int:
    return max(150, min(760, rows * each + around))


def log_times(lowest: float, highest: float) -> dict[str, Any]:
    """A logarithmic axis of nanoseconds, told in units that people use."""
    decades = range(0, 15)
    return {
        "type": "log",
        "tickmode": "array",
        "tickvals": [10**n for n in decades],
        "ticktext": [units.duration(10**n) for n in decades],
        "range": [_log10(max(lowest, 1) * 0.7), _log10(max(highest, 2) * 1.4)],
        "showgrid": True,
    }


def _log10(value: float) -> float:
    return math.log10(value)


def derived(name: str, meaning: str, columns: Sequence[tuple[str, str, str]]) -> Schema:
    """The schema of a table that only a figure has."""
    return Schema(name, meaning, tuple(Column(*column) for column in columns))


def largest(table: Table, most: int, *columns: str) -> list[dict[str, Any]]:
    """The rows with the largest sums of these columns. A table may have a million rows, so no
    dictionaries are made of the others."""
    places = [table.columns.index(column) for column in columns]
    found = heapq.nlargest(most, table.rows, key=lambda row: sum(row[at] or 0 for at in places))
    return [dict(zip(table.columns, row)) for row in found]


def process_names(report: Report) -> dict[int, str]:
    """How a process is called in figures: by rank and role, else by pid."""
    rows = report.table("processes").dicts()
    hosts = len({row["host"] for row in rows}) > 1
    names = {}
    for row in rows:
        rank = "" if row["rank"] is None else f"rank {row['rank']}"
        role = row["role"] if row["role"] not in (None, "main") else ""
        words = [word for word in (rank, role, str(row["pid"])) if word]
        if hosts and row["host"]:
            words.append(f"on {units.clean(row['host'], 24)}")
        names[row["process"]] = " ".join(words)
    return names


def start_of(report: Report) -> int:
    rows = report.table("overview").dicts()
    return int(rows[0]["first_ns"] or 0) if rows else 0


Builder = Callable[[Report], "Figure | None"]


def builders() -> list[Builder]:
    """In the order of the page. Imported late: each of them imports this module."""
    from dftracer.reports import plots_io, plots_processes, plots_training

    return [*plots_training.PLOTS, *plots_io.PLOTS, *plots_processes.PLOTS]


def figures(report: Report) -> dict[str, Figure]:
    """Those that the report has data for."""
    found = (build(report) for build in builders())
    return {figure.name: figure for figure in found if figure is not None}

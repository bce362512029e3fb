"""Figures of a report: plain dictionaries for plotly, so that making one costs nothing.

`figures(report)` returns them by name. A notebook displays them; `figure.plotly()` returns a
`plotly.graph_objects.Figure` that can be changed. The page draws the same dictionaries, and takes
the colours of `ROLES` from its style sheet.
"""

from __future__ import annotations

import heapq
import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dftracer._format import duration
from dftracer._names import shorten, shorten_all
from dftracer.errors import DFTracerError
from dftracer.reports.model import Report, Table
from dftracer.reports.programs import program_name
from dftracer.reports.render import column_format

# Meaning of colours, on a light and on a dark background; the same in every plot. The hues are
# those of Okabe and Ito, which colour-blind people can distinguish, adjusted for contrast. What has
# an order (percentiles, access patterns) is a ramp of one hue.
ROLES = {
    # Classes of time; the shades are for several categories of one class.
    "compute": ("#009e73", "#27b48c"),
    "compute-2": ("#66c5ab", "#167a5d"),
    "fetch": ("#d55e00", "#ef7d2f"),
    "fetch-2": ("#eba36f", "#a5531b"),
    "fetch-3": ("#f4c9a8", "#7d4114"),
    "decoding": ("#8c5a2b", "#c8935e"),
    "decoding-2": ("#c2996f", "#8f6a44"),
    "queue": ("#2b8894", "#58bdc9"),
    "queue-2": ("#8cc5cc", "#2d7f89"),
    "gc": ("#6b7a00", "#b5c33d"),
    "transfer": ("#b8629a", "#d98bb9"),
    "communication": ("#3d9fd6", "#74c1ee"),
    "communication-2": ("#9acdea", "#3c7ea8"),
    "waiting": ("#a8324e", "#e0708a"),
    "checkpoint": ("#b08d00", "#e3c64a"),
    "evaluation": ("#7a5ab5", "#a78bda"),
    "io": ("#0067a5", "#4c9fdb"),
    "io-2": ("#5793c2", "#2c6b9c"),
    "other": ("#bcc4cd", "#5c6773"),
    "other-2": ("#939eaa", "#87939f"),
    "other-3": ("#6d7986", "#b4bdc7"),
    # I/O: what of it compute hides, and its directions.
    "unhidden": ("#0067a5", "#4c9fdb"),
    "hidden": ("#8fcdc6", "#2f7f79"),
    "read": ("#0067a5", "#4c9fdb"),
    "write": ("#e08a00", "#f2ab3a"),
    "forward": ("#009e73", "#27b48c"),
    "backward": ("#00553e", "#93e2c9"),
    # From the median to the longest.
    "p50": ("#98a3ae", "#6f7b88"),
    "p90": ("#6b7785", "#97a3af"),
    "p99": ("#3f4a56", "#c2cad3"),
    "longest": ("#11181f", "#f2f5f8"),
    # From orderly to random.
    "whole": ("#d3c9ee", "#5a4e8c"),
    "sequential": ("#a795d6", "#7768b3"),
    "strided": ("#8068bd", "#9486d0"),
    "mixed": ("#5d449c", "#b8ace9"),
    "random": ("#37206e", "#e2dbff"),
    # Beside another run, or beside the median.
    "before": ("#a3abb5", "#77828e"),
    "after": ("#18202a", "#e8edf2"),
    "even": ("#a3abb5", "#77828e"),
    "slower": ("#b3123f", "#ff7a9c"),
    "faster": ("#5f8a00", "#a9d14a"),
}
# Heat maps: from none to all.
HEAT = {
    "io": (
        ("#eef3f8", "#1b222b"),
        ("#9cc5e3", "#1f4e78"),
        ("#3c89c0", "#2f83c4"),
        ("#053b66", "#bfe3ff"),
    ),
    "compute": (
        ("#eef6f3", "#1a2522"),
        ("#95d5c0", "#13543f"),
        ("#2ea785", "#249a76"),
        ("#00402e", "#b6f2dd"),
    ),
}

NO_PLOTLY = "plots need plotly: pip install 'pydftracer[report]'"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif"


class View(NamedTuple):
    """One view of a figure: its traces, and its part of the layout."""

    label: str
    data: list[dict[str, Any]]
    layout: dict[str, Any]
    rows: Sequence[str] = ()  # complete names of the rows


@dataclass
class Figure:
    name: str
    title: str
    meaning: str  # what it shows, in a sentence
    views: list[View]
    table: Table  # the numbers behind it
    height: int = 320
    notes: list[str] = field(default_factory=list)  # what was left out
    origin: int = 0  # point in time that times count from

    def layout(self, view: int = 0) -> dict[str, Any]:
        return merged(base_layout(), {"height": self.height}, self.views[view].layout)

    def plotly(self, view: int = 0) -> Any:
        """The figure as a plotly.graph_objects.Figure."""
        from importlib import import_module

        try:
            objects: Any = import_module("plotly.graph_objects")
        except ImportError:
            raise DFTracerError(NO_PLOTLY) from None
        return objects.Figure({"data": self.views[view].data, "layout": self.layout(view)})

    def _repr_html_(self) -> str:
        from dftracer.reports.render.notebook import figure_html

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


LABEL = 44  # characters of a name beside a bar
NARROW_LABEL = 20  # and in a narrow window


def text_of(shown: str) -> str:
    """Escapes a label: plotly interprets some HTML tags."""
    return html.escape(shown, quote=False) or "(no name)"


def label(name: object, longest: int = LABEL) -> str:
    """One name; keeps the end of a path."""
    return text_of(shorten(column_format.clean(name, 4096), longest))


def labels(names: Sequence[str], longest: int = LABEL) -> list[str]:
    """Names side by side: different names stay different."""
    return [text_of(shown) for shown in shorten_all(names, longest)]


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
    name: str, role: str, x: Sequence[Any], y: Sequence[Any], texts: Sequence[str]
) -> dict[str, Any]:
    """Horizontal bars; `texts` are their hover labels."""
    hover = f"%{{customdata}}<extra>{text_of(name)}</extra>"
    # A fixed width: plotly would make those of a sparse trace thicker.
    return bars(name, role, x, y, hover, orientation="h", customdata=list(texts), width=0.72)


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
    """The vertical axis of horizontal bars, first name on top."""
    return {
        "tickmode": "array",
        "tickvals": list(range(len(names))),
        "ticktext": labels(names),
        "range": [len(names) - 0.5, -0.5],
        "showgrid": False,
        "zeroline": False,
        "ticks": "",
    }


def height_of(rows: int, each: int = 24, around: int = 84) -> int:
    return max(150, min(760, rows * each + around))


class LogTimes:
    """A logarithmic axis of nanoseconds. Zero gets a place of its own below the shortest duration:
    a duration below the clock's resolution is not one nanosecond."""

    def __init__(self, values: Sequence[float]) -> None:
        above = [value for value in values if value > 0]
        self._lowest, self._highest = min(above, default=1e3), max(above, default=1e3)
        self._has_zero = len(above) < len(values)
        self._zero = 10.0 ** (math.floor(math.log10(self._lowest)) - 1)

    def place(self, value: float) -> float:
        return value if value > 0 else self._zero

    def axis(self) -> dict[str, Any]:
        first = max(math.floor(math.log10(self._lowest)), 0)
        # With few decades, ticks between them as well.
        steps = (1, 2, 5) if self._highest < 100 * self._lowest else (1,)
        ticks = [step * 10**decade for decade in range(first, 16) for step in steps]
        start = self._zero if self._has_zero else self._lowest
        return {
            "type": "log",
            "tickmode": "array",
            "tickvals": [self._zero, *ticks] if self._has_zero else ticks,
            "ticktext": ["0"] * self._has_zero + [duration(tick) for tick in ticks],
            "range": [math.log10(start * 0.7), math.log10(self._highest * 1.4)],
            "showgrid": True,
        }


def largest(table: Table, most: int, *columns: str) -> list[dict[str, Any]]:
    """The rows with the largest sums of these columns. A table may have a million rows, so only
    these become dictionaries."""
    places = [table.columns.index(column) for column in columns]
    found = heapq.nlargest(most, table.rows, key=lambda row: sum(row[at] or 0 for at in places))
    return [dict(zip(table.columns, row)) for row in found]


def process_names(report: Report) -> dict[int, str]:
    """Names of processes in figures: rank and role, program if there are several, and pid."""
    rows = report.table("processes").dicts()
    programs = {row["process"]: program_name(row["command"] or "") for row in rows}
    several = len(set(programs.values()) - {""}) > 1
    hosts = len({row["host"] for row in rows}) > 1
    names = {}
    for row in rows:
        rank = "" if row["rank"] is None else f"rank {row['rank']}"
        program = column_format.clean(programs[row["process"]], 24) if several else ""
        # The program says more than "helper".
        plain = (None, "main", "helper") if program else (None, "main")
        role = row["role"] if row["role"] not in plain else ""
        words = [word for word in (rank, role, program, str(row["pid"])) if word]
        if hosts and row["host"]:
            words.append(f"on {column_format.clean(row['host'], 24)}")
        names[row["process"]] = " ".join(words)
    return names


def start_of(report: Report) -> int:
    rows = report.table("overview").dicts()
    return int(rows[0]["first_ns"] or 0) if rows else 0


Builder = Callable[[Report], "Figure | None"]


def builders() -> list[Builder]:
    """In the order of the page. Imported here because each of them imports this module."""
    from dftracer.reports.render.plots import io, processes, slow_steps, training, whatif

    return [*training.PLOTS, *slow_steps.PLOTS, *whatif.PLOTS, *io.PLOTS, *processes.PLOTS]


def figures(report: Report) -> dict[str, Figure]:
    """The figures that the report has data for."""
    found = (build(report) for build in builders())
    return {figure.name: figure for figure in found if figure is not None}

"""A report: tables of plain rows, which become DataFrames, JSON, CSV, Parquet or a page."""

from __future__ import annotations

import html
import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dftracer.reports.schema import CLASSES, SCHEMAS, SPLIT, Column, Schema

__all__ = ["CLASSES", "SCHEMAS", "SPLIT", "Column", "Report", "Schema", "Table"]

# Rows that a notebook shows of a table; .df() has all of them.
SHOWN = 50


class Table:
    """Rows of one schema, in order."""

    def __init__(self, schema: Schema, rows: Sequence[tuple[Any, ...]] = ()) -> None:
        self.schema = schema
        self.rows = list(rows)

    @property
    def name(self) -> str:
        return self.schema.name

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.schema.columns)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.dicts())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table):
            return NotImplemented
        return self.schema == other.schema and self.rows == other.rows

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<table {self.name}: {len(self.rows):,} rows>"

    def dicts(self) -> list[dict[str, Any]]:
        names = self.columns
        return [dict(zip(names, row)) for row in self.rows]

    def column(self, name: str) -> list[Any]:
        at = self.columns.index(name)
        return [row[at] for row in self.rows]

    def df(self) -> Any:
        """A pandas DataFrame; integers stay integers even if some are missing."""
        import pandas as pd

        kinds = {"int": "Int64", "float": "float64", "bool": "boolean", "text": "object"}
        return pd.DataFrame(
            {
                column.name: pd.Series([row[at] for row in self.rows], dtype=kinds[column.kind])
                for at, column in enumerate(self.schema.columns)
            }
        )

    def _repr_html_(self) -> str:
        def cell(tag: str, value: object, title: str = "") -> str:
            hint = f' title="{html.escape(title)}"' if title else ""
            text = "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
            return f"<{tag}{hint}>{html.escape(text)}</{tag}>"

        head = "".join(cell("th", c.name, c.meaning) for c in self.schema.columns)
        body = "".join(
            f"<tr>{''.join(cell('td', value) for value in row)}</tr>" for row in self.rows[:SHOWN]
        )
        more = len(self.rows) - SHOWN
        rest = f"<p>… and {more:,} more rows</p>" if more > 0 else ""
        caption = f"<caption>{html.escape(self.name)}: {html.escape(self.schema.meaning)}</caption>"
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


@dataclass
class Report:
    """All tables of a report, also as attributes: `report.calls`, `report.findings`."""

    tables: dict[str, Table]
    # The files that were read, and what could not be read (dftracer.trace.Damage).
    traces: list[str] = field(default_factory=list)
    damage: Any = None

    def table(self, name: str) -> Table:
        return self.tables[name]

    def __getattr__(self, name: str) -> Table:
        tables = self.__dict__.get("tables", {})
        if name in tables:
            found: Table = tables[name]
            return found
        raise AttributeError(f"a report has no table {name!r}; its tables are {', '.join(tables)}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.tables]

    @property
    def figures(self) -> Any:
        """The figures of the page, by name."""
        return importlib.import_module("dftracer.reports.render.figures").figures(self)

    def dicts(self) -> dict[str, list[dict[str, Any]]]:
        return {name: table.dicts() for name, table in self.tables.items()}

    def _repr_html_(self) -> str:
        shown = ("findings", "overview", "layers", "calls")
        return "".join(self.tables[name]._repr_html_() for name in shown if name in self.tables)

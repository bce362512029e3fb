"""Pieces of the page: tables that are read by eyes, keyboards, screen readers and printers."""

from __future__ import annotations

import html
from collections.abc import Sequence

from dftracer.reports import units
from dftracer.reports.model import Table

# Rows that the page holds of a table; of most there are less. The bytes of a page are bounded.
MOST_ROWS = {"files": 1000, "steps": 2000, "processes": 500, "directories": 500}
MOST_ROWS_ELSE = 1000
# Columns that the page leaves to --csv and the others.
LEFT_OUT = {"processes": ("name", "trace"), "heat": ("process",), "changes": ("unit",)}
# Shown only where there is something else than nothing in them.
OPTIONAL = (
    *("lost", "errors", "reread_bytes", "backward_ns", "transfer_ns", "communication_ns"),
    *("checkpoint_ns", "evaluation_ns"),
)
# Columns that hold times in one row and bytes in another, and the column that says which.
MEASURED = {
    ("stragglers", "value"): "measure",
    ("stragglers", "median"): "measure",
    ("changes", "before"): "unit",
    ("changes", "after"): "unit",
}
FILTER_FROM = 30  # rows from which a table can be filtered


def escaped(value: object) -> str:
    """For the text of an element."""
    shown = html.escape(units.clean(value, 4096), quote=False)
    return shown.encode("utf-8", "replace").decode()


def attribute(value: object) -> str:
    shown = html.escape(units.clean(value, 4096), quote=True)
    return shown.encode("utf-8", "replace").decode()


def rows_of(name: str, shrink: int = 1) -> int:
    return max(10, MOST_ROWS.get(name, MOST_ROWS_ELSE) // shrink)


def shown_columns(table: Table, rows: Sequence[Sequence[object]]) -> list[int]:
    """Those of the page: not what is empty in all the rows shown."""
    left = LEFT_OUT.get(table.name, ())
    found = []
    for at, column in enumerate(table.schema.columns):
        values = [row[at] for row in rows]
        if column.name in left or all(value is None for value in values):
            continue
        if column.name in OPTIONAL and not any(values):
            continue
        found.append(at)
    return found


def table_html(
    table: Table, key: str, caption: str, *, origin: int = 0, shrink: int = 1, note: str = ""
) -> str:
    """A table with a caption, sortable by its heads, in a box that scrolls by keyboard."""
    most = rows_of(table.name, shrink)
    rows = table.rows[:most]
    columns = shown_columns(table, rows)
    facts = [note] if note else []
    if len(table.rows) > len(rows):
        facts.append(
            f"the first {len(rows):,} of {len(table.rows):,} rows; "
            "--csv, --json and --parquet give all"
        )
    head = "".join(_head(table, at) for at in columns)
    kinds = [_kind(table, at) for at in columns]
    body = "\n".join(_row(table, row, columns, kinds, origin) for row in rows)
    search = ""
    if len(rows) > FILTER_FROM:
        search = (
            f'<label class="filter">Filter <input type="search" data-filter="{key}" '
            f'autocomplete="off" spellcheck="false"></label>'
        )
    told = "".join(
        f"<dt>{escaped(units.label(table.schema.columns[at].name))}</dt>"
        f"<dd>{escaped(table.schema.columns[at].meaning)}</dd>"
        for at in columns
    )
    notes = f'<p class="note">{escaped("; ".join(facts))}</p>' if facts else ""
    return f"""<div class="tablebox">{search}
<div class="scroll" role="region" tabindex="0" aria-labelledby="{key}-caption">
<table id="{key}"><caption id="{key}-caption">{escaped(caption)}</caption>
<thead><tr>{head}</tr></thead>
<tbody>
{body}
</tbody></table></div>{notes}
<details class="meanings"><summary>What the columns mean</summary><dl>{told}</dl></details></div>"""


def _kind(table: Table, at: int) -> str:
    column = table.schema.columns[at]
    if (table.name, column.name) in MEASURED:
        return "measured"
    return units.kind_of(column.name, column.kind)


def _head(table: Table, at: int) -> str:
    column = table.schema.columns[at]
    side = "" if _kind(table, at) == "text" else ' class="n"'
    name = escaped(units.label(column.name))
    hint = attribute(column.meaning)
    return (
        f'<th scope="col"{side} aria-sort="none">'
        f'<button type="button" title="{hint}">{name}</button></th>'
    )


def _row(
    table: Table, row: Sequence[object], columns: Sequence[int], kinds: Sequence[str], origin: int
) -> str:
    cells = []
    for place, (at, kind) in enumerate(zip(columns, kinds)):
        value = row[at]
        if kind == "text":
            shown = "" if value is None else f"<bdi>{escaped(units.cell(value, kind))}</bdi>"
            # The first text of a row is what the row is about.
            tag = 'th scope="row"' if place == 0 else "td"
            cells.append(f"<{tag}>{shown}</{tag.split()[0]}>")
            continue
        if kind == "measured" and isinstance(value, (int, float)):
            by = MEASURED[table.name, table.columns[at]]
            shown = units.measured(value, row[table.columns.index(by)])
        else:
            shown = units.cell(value, "count" if kind == "measured" else kind, origin)
        sort = "" if value is None or shown == str(value) else f' data-v="{value}"'
        cells.append(f'<td class="n"{sort}>{escaped(shown)}</td>')
    return f"<tr>{''.join(cells)}</tr>"


def share_bar(key: str, title: str, meaning: str, parts: Sequence[tuple[str, str, int]]) -> str:
    """A bar of the parts (name, role, time) of a whole, without any script; the legend has the
    numbers."""
    whole = sum(value for _, _, value in parts)
    there = [(name, role, value) for name, role, value in parts if value > 0]
    if whole <= 0:
        return ""
    pieces = "".join(
        f'<span style="width:{100 * value / whole:.3f}%;background:var(--c-{role})"></span>'
        for _, role, value in there
    )
    legend = "".join(
        f'<div><dt><i style="background:var(--c-{role})"></i>{escaped(name)}</dt>'
        f"<dd><b>{units.percent(100 * value / whole)}</b> {units.duration(value)}</dd></div>"
        for name, role, value in there
    )
    return f"""<figure class="split" id="{key}"><figcaption><h3>{escaped(title)}</h3>
<p>{escaped(meaning)}</p></figcaption>
<div class="bar" aria-hidden="true">{pieces}</div><dl>{legend}</dl></figure>"""

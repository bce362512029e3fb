"""Parts of the page: accessible tables and bars."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from dftracer._format import duration, percent, unbroken
from dftracer.reports.model import Table
from dftracer.reports.render import column_format

# Maximum rows of a table on the page, whose size is bounded.
MOST_ROWS = {"files": 1000, "steps": 2000, "processes": 500, "directories": 500}
MOST_ROWS_ELSE = 1000
# Columns that only --csv, --json and --parquet write.
LEFT_OUT = {
    "processes": ("name", "trace"),
    "heat": ("process",),
    "changes": ("unit",),
    "slow_steps": ("loader", "pass"),
    "steps": ("loader", "pass"),
    "lines": ("reads", "writes", "metadata", "file", "line", "function", "site"),
}
# Shown only if a row has a value other than zero.
OPTIONAL = (
    *("lost", "errors", "reread_bytes", "backward_ns", "transfer_ns", "communication_ns"),
    *("checkpoint_ns", "evaluation_ns", "gc_ns", "waited_ns", "unmatched", "uncertainty_ns"),
)
# Columns with times in one row and bytes in another, and the column that decides.
MEASURED = {
    ("stragglers", "value"): "measure",
    ("stragglers", "median"): "measure",
    ("changes", "before"): "unit",
    ("changes", "after"): "unit",
}
FILTER_FROM = 30  # rows from which a table has a filter
WIDE_FROM = 12  # columns from which a table is set narrower
LONG_WORD = re.compile(r"\S{20,}")
SHORT_TEXT = 28  # characters that need no second line


def escaped(value: object) -> str:
    """For the text of an element."""
    shown = html.escape(column_format.clean(value, 4096), quote=False)
    return shown.encode("utf-8", "replace").decode()


def prose(value: object) -> str:
    """For sentences: no line ends between a number and its unit."""
    return breakable(unbroken(escaped(value)))


def breakable(shown: str) -> str:
    """Escaped text in which paths may wrap after a slash."""
    return LONG_WORD.sub(lambda word: word[0].replace("/", "/<wbr>"), shown)


def attribute(value: object) -> str:
    shown = html.escape(column_format.clean(value, 4096), quote=True)
    return shown.encode("utf-8", "replace").decode()


def rows_of(name: str, shrink: int = 1) -> int:
    return max(10, MOST_ROWS.get(name, MOST_ROWS_ELSE) // shrink)


class _Shown(NamedTuple):
    """Columns by position: those of the table, and those that one line below it covers."""

    columns: list[int]
    zero: list[int]  # in every row
    same: list[int]  # the same text in every row


def shown_columns(table: Table, rows: Sequence[Sequence[object]]) -> _Shown:
    left = LEFT_OUT.get(table.name, ())
    shown = _Shown([], [], [])
    for at, column in enumerate(table.schema.columns):
        values = [row[at] for row in rows]
        if column.name in left or all(value is None for value in values):
            continue
        if column.name in OPTIONAL and not any(values):
            continue
        shown.columns.append(at)
    # A small table shows zeros; a wide one has no room for them.
    if len(shown.columns) <= WIDE_FROM:
        return shown
    for at in list(shown.columns):
        values = [row[at] for row in rows]
        kind = _kind(table, at)
        if kind == "text" and len(rows) > 1 and len(set(values)) == 1:
            shown.same.append(at)
        elif kind not in ("text", "label", "moment") and not any(values):
            shown.zero.append(at)
        else:
            continue
        shown.columns.remove(at)
    return shown


def table_html(
    table: Table, key: str, caption: str, *, origin: int = 0, shrink: int = 1, note: str = ""
) -> str:
    """A sortable table with a caption, in a box that scrolls by keyboard."""
    most = rows_of(table.name, shrink)
    rows = table.rows[:most]
    columns, zero, same = shown_columns(table, rows)
    labels = [column_format.label(column.name) for column in table.schema.columns]
    facts = [note] if note else []
    if zero:
        facts.append(f"Zero in every row: {', '.join(labels[at] for at in zero)}.")
    if same:
        texts = "; ".join(f"{labels[at]} {column_format.cell(rows[0][at], 'text')}" for at in same)
        facts.append(f"The same in every row: {texts}.")
    if len(table.rows) > len(rows):
        facts.append(
            f"The first {len(rows):,} of {len(table.rows):,} rows; "
            "--csv, --json and --parquet write all."
        )
    cells = [_Cells(table, at, rows, origin) for at in columns]
    head = "".join(one.head() for one in cells)
    body = "\n".join(f"<tr>{''.join(row)}</tr>" for row in zip(*(one.body() for one in cells)))
    # The first text cell is the header of its row.
    if cells and cells[0].kind == "text":
        body = re.sub(r"^<tr><td(.*?)</td>", r'<tr><th scope="row"\1</th>', body, flags=re.M)
    search = ""
    if len(rows) > FILTER_FROM:
        search = (
            f'<label class="filter">Filter <input type="search" data-filter="{key}" '
            f'autocomplete="off" spellcheck="false"></label>'
        )
    texts = "".join(
        f"<dt>{escaped(column_format.label(table.schema.columns[at].name))}</dt>"
        f"<dd>{escaped(table.schema.columns[at].meaning)}</dd>"
        for at in sorted([*columns, *zero, *same])
    )
    wide = " wide" if len(columns) > WIDE_FROM else ""
    notes = "".join(f'<p class="note">{prose(fact)}</p>' for fact in facts)
    return f"""<div class="tablebox{wide}">{search}
<div class="scroll" role="region" tabindex="0" aria-labelledby="{key}-caption">
<table id="{key}"><caption id="{key}-caption">{escaped(caption)}</caption>
<thead><tr>{head}</tr></thead>
<tbody>
{body}
</tbody></table></div>{notes}
<details class="meanings"><summary>Columns explained</summary><dl>{texts}</dl></details></div>"""


def _kind(table: Table, at: int) -> str:
    column = table.schema.columns[at]
    if (table.name, column.name) in MEASURED:
        return "measured"
    return column_format.kind_of(column.name, column.kind)


class _Cells:
    """A column of a table, as text."""

    def __init__(self, table: Table, at: int, rows: Sequence[Sequence[Any]], origin: int) -> None:
        self.kind = _kind(table, at)
        self._column = table.schema.columns[at]
        self._values = [row[at] for row in rows]
        if self.kind == "measured":
            by = table.columns.index(MEASURED[table.name, self._column.name])
            self._shown = [
                column_format.measured(row[at], row[by])
                if isinstance(row[at], (int, float))
                else ""
                for row in rows
            ]
        else:
            self._shown = [column_format.cell(value, self.kind, origin) for value in self._values]
        longest = max(map(len, self._shown), default=0)
        # Short text stays on one line. Long text wraps, preferably at slashes.
        self._side = "n" if self.kind != "text" else "" if longest <= SHORT_TEXT else "long"

    def head(self) -> str:
        side = f' class="{self._side}"' if self._side else ""
        name, hint = (
            escaped(column_format.label(self._column.name)),
            attribute(self._column.meaning),
        )
        return (
            f'<th scope="col"{side} aria-sort="none">'
            f'<button type="button" title="{hint}">{name}</button></th>'
        )

    def body(self) -> Iterator[str]:
        for value, shown in zip(self._values, self._shown):
            text = escaped(shown)
            if self.kind == "text":
                side = ' class="long"' if self._side else ""
                text = breakable(text) if self._side else text
                yield f"<td{side}>{f'<bdi>{text}</bdi>' if text else ''}</td>"
                continue
            sort = "" if value is None or shown == str(value) else f' data-v="{value}"'
            nothing = " z" if value == 0 and self.kind != "label" else ""
            yield f'<td class="n{nothing}"{sort}>{text}</td>'


def share_bar(key: str, title: str, meaning: str, parts: Sequence[tuple[str, str, int]]) -> str:
    """A stacked bar of the parts (name, role, time) of a whole, without script, and a legend with
    the numbers."""
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
        f"<dd><b>{percent(value / whole)}</b> {duration(value)}</dd></div>"
        for name, role, value in there
    )
    return f"""<figure class="split" id="{key}"><figcaption><h3>{escaped(title)}</h3>
<p>{escaped(meaning)}</p></figcaption>
<div class="bar" aria-hidden="true">{pieces}</div><dl>{legend}</dl></figure>"""

"""Text tables for terminals of any width, for commands and the terminal report."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import NamedTuple

from dftracer._format import NO_BREAK, unbroken
from dftracer._names import columns_of, printable, shorten, shorten_all

NARROWEST = 12  # columns that a name keeps at least
GAP = 2


class Column(NamedTuple):
    name: str
    right: bool = True
    # A name, which may be shortened. Numbers never are: 1,234 cut to 1,2 is another number.
    elastic: bool = False
    keep_start: bool = False  # keep the start of a command line, the end of a path
    # If the table is still too wide, columns are left out, highest rank first.
    rank: int = 0


def name_column(name: str, rank: int = 0, *, keep_start: bool = False) -> Column:
    return Column(name, right=False, elastic=True, keep_start=keep_start, rank=rank)


def pad(text: str, room: int, *, right: bool = False) -> str:
    blank = " " * max(0, room - columns_of(text))
    return blank + text if right else text + blank


def wrap(text: str, room: int, lead: str = "", indent: str = "") -> list[str]:
    """Lines of at most `room` columns, the first after `lead`. Numbers stay with their units."""
    lines = textwrap.wrap(
        unbroken(printable(text)), max(room, 40), initial_indent=lead, subsequent_indent=indent
    )
    return [line.replace(NO_BREAK, " ") for line in lines]


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]], room: int) -> list[str]:
    """Lines of at most `room` columns, the header first. A row of one cell is a note.

    Names are shortened first, then columns are left out; the last line names them.
    Columns in which every cell is empty are left out as well.
    """
    full = [[printable(cell) for cell in row] for row in rows if len(row) == len(columns)]
    widths = [
        max(columns_of(text) for text in (column.name, *(row[at] for row in full)))
        for at, column in enumerate(columns)
    ]
    shown = [at for at in range(len(columns)) if at == 0 or any(row[at] for row in full)]
    left_out = []
    while _least(columns, widths, shown) > room and len(shown) > 1:
        worst = max(shown[1:], key=lambda at: (columns[at].rank, at))
        left_out.append(worst)
        shown.remove(worst)
    _shrink(columns, widths, shown, room)
    for at in shown:
        if columns[at].keep_start:
            for row in full:
                row[at] = shorten(row[at], widths[at], keep_start=True)
        elif columns[at].elastic:
            for row, text in zip(full, shorten_all([row[at] for row in full], widths[at])):
                row[at] = text

    def line(cells: Sequence[str]) -> str:
        padded = [pad(cells[at], widths[at], right=columns[at].right) for at in shown]
        return (" " * GAP).join(padded).rstrip()

    lines = [line([column.name for column in columns])]
    shortened = iter(full)
    for given in rows:
        is_row = len(given) == len(columns)
        lines.append(line(next(shortened)) if is_row else shorten(given[0], room, keep_start=True))
    if left_out:
        names = ", ".join(columns[at].name for at in sorted(left_out))
        lines += wrap(f"(no room for {names})", room)
    return lines


def _narrowest(column: Column, width: int) -> int:
    return min(width, max(NARROWEST, len(column.name))) if column.elastic else width


def _least(columns: Sequence[Column], widths: Sequence[int], shown: Sequence[int]) -> int:
    return sum(_narrowest(columns[at], widths[at]) + GAP for at in shown) - GAP


def _shrink(columns: Sequence[Column], widths: list[int], shown: Sequence[int], room: int) -> None:
    """Shortens the widest name first, so that short names stay complete."""
    over = sum(widths[at] + GAP for at in shown) - GAP - room
    while over > 0:
        able = [at for at in shown if widths[at] > _narrowest(columns[at], widths[at])]
        if not able:
            return
        widths[max(able, key=lambda at: widths[at])] -= 1
        over -= 1

"""CSV that a spreadsheet shows unchanged."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from typing import IO, Any

# A spreadsheet takes such a cell for a formula, which may start a program or send data away.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def cell(value: Any) -> Any:
    """Text that a spreadsheet would evaluate gets a leading apostrophe; numbers stay numbers."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def write(to: IO[str], head: Sequence[str], batches: Iterable[Iterable[Sequence[Any]]]) -> None:
    plain = csv.writer(to, lineterminator="\n")
    # The writer quotes only its own line ending, but readers accept others as well.
    quoted = csv.writer(to, lineterminator="\n", quoting=csv.QUOTE_ALL)

    def put(row: Sequence[Any]) -> None:
        cells = [cell(value) for value in row]
        ends = any(isinstance(value, str) and "\r" in value for value in cells)
        (quoted if ends else plain).writerow(cells)

    put(head)
    for rows in batches:
        for row in rows:
            put(row)

"""The rows of a statement as a table, CSV, JSON or Parquet."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TextIO

from dftracer import _cleanup, _duckdb
from dftracer._files import create, private_umask
from dftracer._names import shorten
from dftracer.commands._cli.terminal import dim
from dftracer.errors import DFTracerError

if TYPE_CHECKING:
    import duckdb


def write(answer: Answer, form: str, output: str | None, mode: int) -> None:
    try:
        with _opened(output, mode) as to:
            {"csv": write_csv, "json": write_json, "table": write_table}[form](answer, to)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise DFTracerError(f"{output or 'stdout'}: {error.strerror or error}", 1) from None


def write_parquet(connection: Any, sql: str, output: str | None) -> None:
    if output is None:  # the Parquet writer seeks in its file
        with _cleanup.directory("dftracer-query-") as directory:
            whole = os.path.join(directory, "answer.parquet")
            write_parquet(connection, sql, whole)
            with open(whole, "rb") as file:
                shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    with (
        _cleanup.replacing(output) as part,
        _duckdb.plain(os.path.dirname(part) or ".") as place,
    ):
        written = _duckdb.literal(os.path.join(place, os.path.basename(part)))
        # A newline, because the SQL may end with a comment.
        copy = f"copy ({sql.strip().rstrip(';')}\n) to {written} (format parquet)"
        with private_umask():
            _duckdb.interruptible(connection, connection.execute, copy)


class Answer:
    """The rows of a statement."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, sql: str) -> None:
        self._connection = connection
        self._rows: Any = _duckdb.interruptible(connection, connection.execute, sql)
        self.names = [str(column[0]) for column in self._rows.description or ()]

    def some(self, number: int) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]]
        found = _duckdb.interruptible(self._connection, self._rows.fetchmany, number)
        return found

    def batches(self) -> Iterator[list[tuple[Any, ...]]]:
        while True:
            rows = self.some(2000)
            if not rows:
                return
            yield rows


@contextlib.contextmanager
def _opened(output: str | None, mode: int) -> Iterator[Any]:
    if output is None:
        yield sys.stdout
        sys.stdout.flush()
        return
    with _cleanup.replacing(output) as part, create(part, "w", mode, encoding="utf-8") as to:
        yield to


def write_csv(answer: Answer, to: TextIO) -> None:
    from dftracer import _csv

    _csv.write(to, answer.names, answer.batches())


def write_json(answer: Answer, to: TextIO) -> None:
    """A list of objects, written row by row."""
    import json

    names = answer.names
    to.write("[")
    first = True
    for rows in answer.batches():
        for row in rows:
            record = json.dumps(dict(zip(names, row)), ensure_ascii=False, default=str)
            to.write(("\n" if first else ",\n") + record)
            first = False
    to.write("\n]\n")


def write_table(answer: Answer, to: TextIO) -> None:
    names = answer.names
    rows = answer.some(1001)
    more = len(rows) > 1000
    cells = [[_cell(value) for value in row] for row in rows[:1000]]
    numeric = [
        all(value is None or isinstance(value, (int, float)) for value in column)
        for column in zip(*rows)
    ] or [False] * len(names)
    widths = [
        max([len(name), *(len(row[column]) for row in cells)]) for column, name in enumerate(names)
    ]

    def line(values: list[str]) -> str:
        columns = zip(values, widths, numeric)
        return "  ".join(f"{v:>{w}}" if right else f"{v:<{w}}" for v, w, right in columns).rstrip()

    print(dim(line(names)), file=to)
    for row in cells:
        print(line(row), file=to)
    if more:
        print(
            "only the first 1,000 rows are shown; --format csv writes all of them", file=sys.stderr
        )


def _cell(value: object) -> str:
    if value is None:
        return ""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return shorten(text, 80)

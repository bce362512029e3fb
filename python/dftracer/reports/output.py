"""Tables of a report as JSON, and as directories of CSV or Parquet files."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TextIO

from dftracer import _cleanup, _csv, _duckdb
from dftracer._files import PRIVATE, create, directory_mode, file_mode, grant
from dftracer.errors import DFTracerError
from dftracer.reports.model import Report, Table

KINDS = {"int": "bigint", "float": "double", "text": "varchar", "bool": "boolean"}


def write_json(report: Report, to: TextIO, more: Mapping[str, Table] | None = None) -> None:
    """An object with the traces, and each table as a list of objects.

    more: tables beside those of the report, such as those of a comparison."""
    to.write('{"traces": ' + json.dumps(report.traces, ensure_ascii=False))
    for name, table in {**report.tables, **(more or {})}.items():
        to.write(f',\n"{name}": [')
        columns = table.columns
        for at, row in enumerate(table.rows):
            record = dict(zip(columns, map(_finite, row)))
            to.write((",\n  " if at else "\n  ") + json.dumps(record, ensure_ascii=False))
        to.write("]")
    to.write("}\n")


def write_csv(report: Report, directory: str, *, mode: int | None = None) -> None:
    place = _made(directory, file_mode(mode))
    for name, table in report.tables.items():
        # Names that are not UTF-8 contain surrogates, which cannot be encoded.
        with (
            _cleanup.replacing(place / f"{name}.csv") as part,
            create(
                part, "w", file_mode(mode), encoding="utf-8", errors="backslashreplace", newline=""
            ) as file,
        ):
            _csv.write(file, table.columns, [table.rows])


def write_parquet(report: Report, directory: str, *, mode: int | None = None) -> None:
    place = _made(directory, file_mode(mode))
    with (
        _duckdb.connect() as connection,
        _cleanup.directory("dftracer-report-") as scratch,
        _duckdb.plain(scratch) as scratch_name,
        _duckdb.plain(str(place)) as target,
    ):
        for name, table in report.tables.items():
            source = _rows(table, os.path.join(scratch_name, "rows.json"))
            with _cleanup.replacing(place / f"{name}.parquet") as part:
                create(part, "wb", PRIVATE).close()
                written = _duckdb.literal(os.path.join(target, os.path.basename(part)))
                sql = f"copy (from {source}) to {written} (format parquet, use_tmp_file false)"
                _duckdb.interruptible(connection, connection.execute, sql)
                grant(part, file_mode(mode))


def load_tables(tables: Iterable[Table], connection: Any) -> None:
    """Makes them tables of a database."""
    with (
        _cleanup.directory("dftracer-report-") as scratch,
        _duckdb.plain(scratch) as scratch_name,
    ):
        for table in tables:
            source = _rows(table, os.path.join(scratch_name, "rows.json"))
            connection.execute(f'create table "{table.name}" as from {source}')


def _rows(table: Table, place: str) -> str:
    """Writes them to a file, and returns the SQL that reads them. Through JSON: a million rows as
    statement parameters take minutes."""
    with open(place, "w", encoding="utf-8", errors="surrogatepass") as file:
        _write_lines(table, file)
    columns = ", ".join(f"'{c.name}': '{KINDS[c.kind]}'" for c in table.schema.columns)
    source = _duckdb.literal(_duckdb.pattern(place))
    return f"read_json({source}, format = 'newline_delimited', columns = {{{columns}}})"


def _write_lines(table: Table, to: TextIO) -> None:
    columns = table.columns
    for row in table.rows:
        to.write(json.dumps(dict(zip(columns, map(_finite, row)))) + "\n")


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _made(directory: str, mode: int) -> Path:
    place = Path(directory)
    try:
        place.mkdir(directory_mode(mode), parents=True, exist_ok=True)
    except OSError as error:
        raise DFTracerError(f"{directory}: {error.strerror}", exit_code=1) from None
    return place

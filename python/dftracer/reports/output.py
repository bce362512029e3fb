"""Tables of a report as JSON, and as directories of CSV or Parquet files."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from dftracer.errors import DFTracerError
from dftracer.reports.model import Report, Table

KINDS = {"int": "bigint", "float": "double", "text": "varchar", "bool": "boolean"}


def write_json(report: Report, to: TextIO, more: Mapping[str, Table] | None = None) -> None:
    """An object with the traces, and each table as a list of objects; written as it comes.

    more: tables beside those of the report, such as a comparison's."""
    to.write('{"traces": ' + json.dumps(report.traces, ensure_ascii=False))
    for name, table in {**report.tables, **(more or {})}.items():
        to.write(f',\n"{name}": [')
        columns = table.columns
        for at, row in enumerate(table.rows):
            record = dict(zip(columns, map(_finite, row)))
            to.write((",\n  " if at else "\n  ") + json.dumps(record, ensure_ascii=False))
        to.write("]")
    to.write("}\n")


def write_csv(report: Report, directory: str) -> None:
    place = _made(directory)
    for name, table in report.tables.items():
        with open(place / f"{name}.csv", "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(table.columns)
            writer.writerows(table.rows)


def write_parquet(report: Report, directory: str) -> None:
    import duckdb

    place = _made(directory)
    with duckdb.connect() as connection:
        for name, table in report.tables.items():
            _fill(connection, table)
            path = str(place / f"{name}.parquet").replace("'", "''")
            connection.execute(f"copy {name} to '{path}' (format parquet)")


def _fill(connection: Any, table: Table) -> None:
    columns = [f'"{column.name}" {KINDS[column.kind]}' for column in table.schema.columns]
    connection.execute(f"create table {table.name} ({', '.join(columns)})")
    marks = "(" + ", ".join("?" * len(columns)) + ")"
    for at in range(0, len(table.rows), 500):
        part = table.rows[at : at + 500]
        values = [value for row in part for value in row]
        sql = f"insert into {table.name} values {', '.join([marks] * len(part))}"
        connection.execute(sql, values)


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _made(directory: str) -> Path:
    place = Path(directory)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DFTracerError(f"{directory}: {error.strerror}", exit_code=1) from None
    return place

"""Tables beside the events, created only if the statement names one of them: processes, files and
hosts, and all others of the report."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dftracer.trace.summary import TraceSummary

PROCESS_COLUMNS = {
    "process": "integer",
    "pid": "bigint",
    "host": "varchar",
    "rank": "integer",
    "name": "varchar",
    "command": "varchar",
    "program": "varchar",
    "cwd": "varchar",
    "ppid": "bigint",
    "threads": "bigint",
    "events": "bigint",
    "dur": "hugeint",
    "read_bytes": "hugeint",
    "write_bytes": "hugeint",
    "first_ts": "bigint",
    "last_ts": "bigint",
    "lost": "hugeint",
    "ended": "boolean",
    "recovered": "boolean",
    "run": "varchar",
    "trace": "varchar",
}
FILE_COLUMNS = {
    "fname": "varchar",
    "calls": "bigint",
    "dur": "hugeint",
    "reads": "bigint",
    "writes": "bigint",
    "read_bytes": "hugeint",
    "write_bytes": "hugeint",
    "mapped_bytes": "hugeint",
}
HOST_COLUMNS = {"host": "varchar", "hhash": "varchar", "processes": "bigint", "events": "hugeint"}


def add_small_tables(connection: Any, found: TraceSummary) -> None:
    processes = [
        (
            index,
            process.pid,
            process.host or None,
            int(process.rank) if process.rank.isdecimal() else None,
            process.name or None,
            process.command or None,
            process.program or None,
            process.cwd or None,
            process.ppid,
            process.threads,
            process.events,
            process.total // 1000,
            process.read_bytes,
            process.write_bytes,
            None if process.first is None else process.first // 1000,
            None if process.last is None else process.last // 1000,
            process.lost,
            process.ended,
            process.recovered,
            process.run or None,
            process.trace,
        )
        for index, process in enumerate(found.processes)
    ]
    files = [
        (
            file.path,
            file.count,
            file.total // 1000,
            file.reads,
            file.writes,
            file.read_bytes,
            file.write_bytes,
            file.mapped_bytes,
        )
        for file in found.used
    ]
    names = {process.host for process in found.processes if process.host}
    hashes = {name: hash_ for hash_, name in found.hosts.items()}
    processes_on = Counter(process.host for process in found.processes)
    events_on: Counter[str] = Counter()
    for process in found.processes:
        events_on[process.host] += process.events
    hosts = [
        (
            name,
            hashes.get(name),
            processes_on[name],
            events_on[name],
        )
        for name in sorted(names)
    ]
    _fill(connection, "processes", PROCESS_COLUMNS, processes)
    _fill(connection, "files", FILE_COLUMNS, files)
    _fill(connection, "hosts", HOST_COLUMNS, hosts)


def add_report_tables(connection: Any, sql: str, traces: Sequence[Path], threads: int) -> None:
    """Those of the report that are in the place of a table. `files`, `processes` and `hosts` are
    not the report's here: they are older, in microseconds, and need no report."""
    from dftracer.reports.schema import SCHEMAS

    own = ("files", "processes", "hosts")
    named = re.findall(r'(?:\bfrom|\bjoin|,)\s*"?(\w+)', sql, re.IGNORECASE)
    wanted = {name.lower() for name in named if name.lower() in SCHEMAS} - set(own)
    if not wanted:
        return
    from dftracer.reports.engine import make_report
    from dftracer.reports.output import load_tables

    report = make_report(traces, threads=threads)
    load_tables([table for name, table in report.tables.items() if name in wanted], connection)


def _fill(
    connection: Any, table: str, columns: dict[str, str], rows: Sequence[tuple[object, ...]]
) -> None:
    fields = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
    connection.execute(f"create table {table} ({fields})")
    # Many rows per statement: each statement is a transaction.
    marks = "(" + ", ".join("?" * len(columns)) + ")"
    for at in range(0, len(rows), 500):
        part = rows[at : at + 500]
        values = [value for row in part for value in row]
        connection.execute(f"insert into {table} values {', '.join([marks] * len(part))}", values)

"""`dftracer query "SQL" TRACE...`: DuckDB over the tables events, files, processes and hosts."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from dftracer import _cleanup, _duckdb
from dftracer._files import add_mode, create, file_mode, grant, private_umask
from dftracer._format import counted, size
from dftracer._names import shorten
from dftracer.commands._cli import reading
from dftracer.commands._cli.terminal import dim, is_terminal
from dftracer.errors import DFTracerError
from dftracer.trace.stream import COLUMNS, Trace
from dftracer.trace.summary import TraceSummary, summarise_all

if TYPE_CHECKING:
    import duckdb

FORMATS = ("table", "csv", "json", "parquet")

# What stands in the smaller tables, which are made only if the question names them.
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

EXAMPLES = """\
  dftracer query "select name, count(*), sum(dur) from events group by all" traces
  dftracer query "from files order by read_bytes desc limit 10" traces --format csv
  dftracer query "from events where cat = 'POSIX'" traces --format parquet -o posix.parquet
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sql", metavar="SQL", help="about events, files, processes, hosts")
    reading.add_arguments(parser, json=False)
    parser.add_argument("--format", choices=FORMATS, default=None, help="of the answer")
    parser.add_argument("--json", action="store_true", help="the same as --format json")
    parser.add_argument("-o", "--output", metavar="FILE", help="write it there; - is stdout")
    add_mode(parser)


def run(args: argparse.Namespace) -> int:
    mode = file_mode(args.mode)
    if args.json and args.format not in (None, "json"):
        raise DFTracerError(f"--json and --format {args.format} cannot be combined")
    form = args.format or ("json" if args.json else _form_of(args.output))
    output = None if args.output == "-" else args.output
    if form == "parquet" and not args.output:
        raise DFTracerError("--format parquet needs a file: -o FILE")
    if form == "parquet" and output is None and is_terminal(sys.stdout):
        raise DFTracerError("stdout is a terminal: send it into a file or a pipe")
    connection = _duckdb.connect(ordered=False)  # a trace has its own order, ts
    import duckdb

    traces = reading.open_traces(args, data=True)
    reading.tell_runs(traces)
    trace = Trace(traces, columns_for(args.sql), args.threads)
    connection.register("events", trace)
    if re.search(r"\b(files|processes|hosts)\b", args.sql, re.IGNORECASE):
        add_small_tables(connection, summarise_all(traces, threads=args.threads))
    try:
        if form == "parquet":
            write_parquet(connection, args.sql, output)
            if output is not None:
                grant(output, mode)
        else:
            answer = Answer(connection, args.sql)
            if not answer.names:
                raise DFTracerError("the statement returned no rows; use SELECT")
            write(answer, form, output, mode)
    except duckdb.Error as error:
        raise DFTracerError(_duckdb.error_text(error), exit_code=1) from None
    damage = trace.damage
    if damage is None:
        return 0
    # The numbers are for people: on a pipe, the answer alone.
    if sys.stderr.isatty():
        words = counted(damage.events, "event")
        print(f"{words} read, {size(damage.bytes_read)}", file=sys.stderr)
    return reading.tell_damage(damage)


# What a question may be made from without a look at columns that it does not name.
_PLAIN_TABLES = ("BASE_TABLE", "JOIN", "SUBQUERY", "EMPTY", "EXPRESSION_LIST")
_PLAIN_NODES = ("SELECT_NODE", "SET_OPERATION_NODE", "CTE_NODE", "RECURSIVE_CTE_NODE")


def columns_for(sql: str) -> tuple[str, ...] | None:
    """The columns that a question can mean, as DuckDB parses it; all, if it need not name them."""
    import json

    import duckdb

    try:
        with duckdb.connect() as parser:
            row = parser.execute("select json_serialize_sql(?)", [sql]).fetchone()
        tree = json.loads(row[0]) if row else {}
    except (duckdb.Error, ValueError):
        return None
    if tree.get("error", True):  # no question, or one that is no plain SELECT
        return None
    named: set[str] = set()
    fields: set[str] = set()
    tables: set[str] = set()
    if not _walk(tree["statements"], named, fields, tables):
        return None
    # The name of a table in the place of a column means a whole row of it.
    if named & tables:
        return None
    return tuple(name for name in COLUMNS if name in named | fields) or ("id",)


def _walk(tree: Any, named: set[str], fields: set[str], tables: set[str]) -> bool:
    """Gathers the names of columns, of what has fields, and of tables.

    False if the question may mean any column.
    """
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
            continue
        if not isinstance(node, dict):
            continue
        kind, what = node.get("class"), node.get("type")
        if kind in ("STAR", "POSITIONAL_REFERENCE") or node.get("ref_type") == "NATURAL":
            return False
        if kind == "COLUMN_REF":
            # `a.b` is a column of a table, or a field of a column: of which table is no matter.
            first, *others = (str(name).lower() for name in node["column_names"])
            named.update(others)
            (fields if others else named).add(first)
            continue
        for key in ("from_table", "left", "right"):
            part = node.get(key)
            if isinstance(part, dict) and "class" not in part:
                if part.get("type") not in (*_PLAIN_TABLES, *_PLAIN_NODES):
                    return False
                if part.get("column_name_alias"):  # columns by their place
                    return False
        if what in _PLAIN_TABLES:
            tables.update(str(node.get(key) or "").lower() for key in ("alias", "table_name"))
        named.update(str(name).lower() for name in node.get("using_columns") or ())
        tables.update(
            str(entry.get("key")).lower()
            for entry in (node.get("cte_map") or {}).get("map", ())
            if isinstance(entry, dict)
        )
        for key, value in node.items():
            # `order by all` is about the columns of the answer.
            if key == "orders" and isinstance(value, list):
                value = [one for one in value if _star_of(one) is None]
            if isinstance(value, (dict, list)):
                waiting.append(value)
    return True


def _star_of(order: Any) -> Any:
    inner = order.get("expression") if isinstance(order, dict) else None
    return inner if isinstance(inner, dict) and inner.get("class") == "STAR" else None


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


def _fill(
    connection: Any, table: str, columns: dict[str, str], rows: Sequence[tuple[object, ...]]
) -> None:
    fields = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
    connection.execute(f"create table {table} ({fields})")
    # One statement for many rows: a row each takes DuckDB a transaction each.
    marks = "(" + ", ".join("?" * len(columns)) + ")"
    for at in range(0, len(rows), 500):
        part = rows[at : at + 500]
        values = [value for row in part for value in row]
        connection.execute(f"insert into {table} values {', '.join([marks] * len(part))}", values)


def _form_of(output: str | None) -> str:
    ending = (output or "").rpartition(".")[2].lower()
    return ending if ending in ("csv", "json", "parquet") else "table"


def write(answer: Answer, form: str, output: str | None, mode: int) -> None:
    try:
        with _opened(output, mode) as to:
            {"csv": write_csv, "json": write_json, "table": write_table}[form](answer, to)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise DFTracerError(f"{output or 'stdout'}: {error.strerror or error}", 1) from None


def write_parquet(connection: Any, sql: str, output: str | None) -> None:
    if output is None:  # its writer goes back and forth in the file
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
        # A line break, because the SQL may end with a comment.
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
    """A list of objects, written as it comes."""
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
        print("only the first 1,000 rows are shown; --format csv writes all", file=sys.stderr)


def _cell(value: object) -> str:
    if value is None:
        return ""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return shorten(text, 80)

"""`dftracer query "SQL" TRACE...`: DuckDB on the events, and on the tables of the report."""

from __future__ import annotations

import argparse
import re
import sys

from dftracer import _duckdb
from dftracer._files import add_mode, file_mode, grant
from dftracer._format import counted, size
from dftracer.commands._cli import reading
from dftracer.commands._cli.terminal import is_terminal
from dftracer.commands.query._columns import columns_for
from dftracer.commands.query._output import Answer, write, write_parquet
from dftracer.commands.query._tables import add_report_tables, add_small_tables
from dftracer.errors import DFTracerError
from dftracer.trace.stream import Trace
from dftracer.trace.summary import summarise_all

FORMATS = ("table", "csv", "json", "parquet")

EXAMPLES = """\
  dftracer query "select name, count(*), sum(dur) from events group by all" traces
  dftracer query "from files order by read_bytes desc limit 10" traces --format csv
  dftracer query "select epoch, step, dur_ns from steps order by dur_ns desc limit 5" traces
  dftracer query "from events where cat = 'POSIX'" traces --format parquet -o posix.parquet
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "sql",
        metavar="SQL",
        help="a statement on events, files, processes, hosts, and the tables of the report",
    )
    reading.add_arguments(parser, json=False)
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default=None,
        help="output format (default: from the name of the output, else table)",
    )
    parser.add_argument("--json", action="store_true", help="same as --format json")
    parser.add_argument("-o", "--output", metavar="FILE", help="output file; - is stdout")
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
        raise DFTracerError("stdout is a terminal: redirect it to a file or a pipe")
    connection = _duckdb.connect(ordered=False)  # a trace has its own order, ts
    import duckdb

    traces = reading.open_traces(args, data=True)
    reading.report_runs(traces)
    trace = Trace(traces, columns_for(args.sql), args.threads)
    connection.register("events", trace)
    if re.search(r"\b(files|processes|hosts)\b", args.sql, re.IGNORECASE):
        add_small_tables(connection, summarise_all(traces, threads=args.threads))
    add_report_tables(connection, args.sql, traces, args.threads)
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
    # Counts are for people; a pipe gets the rows alone.
    if sys.stderr.isatty():
        words = counted(damage.events, "event")
        print(f"{words} read, {size(damage.bytes_read)}", file=sys.stderr)
    return reading.report_damage(damage)


def _form_of(output: str | None) -> str:
    ending = (output or "").rpartition(".")[2].lower()
    return ending if ending in ("csv", "json", "parquet") else "table"

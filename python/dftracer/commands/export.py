"""`dftracer export --to FORMAT TRACE... -o OUT`: a trace for other tools."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from dftracer import _reader
from dftracer.commands import reading
from dftracer.commands.reading import DAMAGED, bytes_text, counted
from dftracer.errors import DFTracerError
from dftracer.trace.table import Damage, Trace

# The ending that says which format is meant, if --to does not.
FORMATS = {
    "chrome": ".json",
    "perfetto": ".pftrace",
    "parquet": ".parquet",
    "speedscope": ".speedscope.json",
}

EXAMPLES = """\
  dftracer export --to perfetto traces -o run.pftrace     nanoseconds, for ui.perfetto.dev
  dftracer export --to parquet traces -o run.parquet      for DuckDB, Spark, Dask, pandas
  dftracer export --to chrome traces -o run.json          strict JSON for any Chrome-trace reader
  dftracer export --to speedscope traces -o run.speedscope.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    reading.add_arguments(parser)
    parser.add_argument("--to", choices=sorted(FORMATS), required=True, help="the format")
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="the file to write")


def run(args: argparse.Namespace) -> int:
    traces = reading.open_traces(args)
    output = Path(args.output)
    if any(output.exists() and os.path.samefile(output, trace) for trace in traces):
        raise DFTracerError(f"{output}: is one of the traces that are read")
    if not output.parent.is_dir():
        raise DFTracerError(f"{output.parent}: no such directory")
    if args.to == "parquet":
        events, found, damage = _to_parquet(traces, output, args.threads)
    else:
        events, found, damage = _to_file(args.to, traces, output, args.threads)
    facts = {"events": events, "written": found, "bytes": output.stat().st_size}
    if args.json:
        print(json.dumps({**facts, "format": args.to, "output": str(output)}))
    else:
        size = bytes_text(facts["bytes"])
        print(f"{output}: {counted(events, 'event')} of {counted(len(traces), 'file')}, {size}")
    if events != found:
        print(f"dftracer: {output}: {found:,} events instead of {events:,}", file=sys.stderr)
        return DAMAGED
    return reading.tell_damage(damage)


def _to_file(form: str, traces: list[Path], output: Path, threads: int) -> tuple[int, int, Damage]:
    bar = reading.progress_bar(traces)
    try:
        done = _reader.export(form, traces, output, threads=threads, progress=bar)
    except OSError as error:
        raise DFTracerError(f"{output}: {error.strerror or error}", 1) from None
    finally:
        reading.end_progress(bar)
    events = int(done["total"]["events"])
    # Chrome's file holds metadata as well: what is compared is all of it.
    missing = int(done["records"]) - int(done["found"])
    if form == "chrome":
        missing += int(done["total"]["records"]) - int(done["records"])
    else:
        missing += events - int(done["records"])
    return events, events - missing, Damage.of(done)


def _to_parquet(traces: list[Path], output: Path, threads: int) -> tuple[int, int, Damage]:
    from dftracer.commands.query import connect

    connection = connect()
    import duckdb

    trace = Trace(traces, threads=threads)
    connection.register("events", trace)
    part = output.with_name(f"{output.name}.{os.getpid()}.part")
    quoted, place = (str(path).replace("'", "''") for path in (part, output))
    try:
        connection.execute(f"copy (select * from events) to '{quoted}' (format parquet)")
        os.replace(part, output)
        rows = connection.execute(f"select count(*) from read_parquet('{place}')").fetchone()
    except (duckdb.Error, OSError) as error:
        part.unlink(missing_ok=True)
        raise DFTracerError(f"{output}: {str(error).splitlines()[0]}", 1) from None
    damage = trace.damage
    if damage is None or rows is None:
        raise DFTracerError(f"{output}: the trace was not read to its end", 1)
    return damage.events, int(rows[0]), damage

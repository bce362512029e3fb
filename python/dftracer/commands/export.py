"""`dftracer export --to FORMAT TRACE... -o OUT`: converts a trace for other tools."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dftracer import _cleanup, _duckdb, _reader
from dftracer._files import add_mode, file_mode, grant, private_umask
from dftracer._format import counted, size
from dftracer._names import printable
from dftracer.commands._cli import reading
from dftracer.commands._cli.progress import Progress
from dftracer.commands._cli.reading import DAMAGED
from dftracer.commands._cli.terminal import complain, is_terminal
from dftracer.errors import DFTracerError
from dftracer.trace.stream import Damage, Trace

if TYPE_CHECKING:
    import duckdb

# The formats and their usual file name endings.
FORMATS = {
    "chrome": ".json",
    "folded": ".folded",
    "perfetto": ".pftrace",
    "parquet": ".parquet",
    "speedscope": ".speedscope.json",
}

# A category names a directory, which may have at most 255 bytes, percent-encoded. A longer name is
# cut, and a hash distinguishes it from others with the same beginning.
SHORT = """case when length(url_encode(cat)) <= 240 then cat else concat(
    left(cat, if(length(url_encode(left(cat, 150))) <= 200, 150, 15)), '~md5-', left(md5(cat), 8)
) end"""

EXAMPLES = """\
  dftracer export --to perfetto traces -o run.pftrace     nanoseconds, for ui.perfetto.dev
  dftracer export --to parquet traces -o run.parquet      for DuckDB, Spark, Dask, pandas
  dftracer export --to parquet --partition traces -o run  a directory with one part per category
  dftracer export --to chrome traces -o run.json          strict JSON for Chrome trace readers
  dftracer export --to speedscope traces -o run.speedscope.json
  dftracer export --to folded traces -o run.folded        time in I/O by stack, for flame graphs
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    reading.add_arguments(parser)
    parser.add_argument("--to", choices=sorted(FORMATS), required=True, help="output format")
    parser.add_argument(
        "-o", "--output", metavar="OUT", required=True, help="output file; - is stdout"
    )
    parser.add_argument(
        "--partition",
        action="store_true",
        help="with parquet: OUT is a directory with one subdirectory per category (cat=POSIX)",
    )
    add_mode(parser)


def run(args: argparse.Namespace) -> int:
    if args.partition and args.to != "parquet":
        raise DFTracerError("--partition needs --to parquet")
    mode = file_mode(args.mode)
    if args.output == "-":
        return _to_stdout(args)
    traces = reading.open_traces(args)
    output = Path(args.output)
    if any(output.exists() and os.path.samefile(output, trace) for trace in traces):
        raise DFTracerError(f"{output}: is both an input and the output")
    if not output.parent.is_dir():
        raise DFTracerError(f"{output.parent}: no such directory")
    if args.to == "parquet":
        events, found, damage = _to_parquet(traces, output, args.threads, args.partition)
    else:
        events, found, damage = _to_file(args.to, traces, output, args.threads)
    grant(output, mode)
    facts = {"events": events, "written": found, "bytes": _size(output)}
    if args.json:
        print(json.dumps({**facts, "format": args.to, "output": str(output)}))
    else:
        print(
            f"{printable(str(output))}: {counted(events, 'event')} from "
            f"{counted(len(traces), 'file')}, {size(facts['bytes'])}"
        )
    if events != found:
        name = printable(str(output))
        print(f"dftracer: {name}: {found:,} events instead of {events:,}", file=sys.stderr)
        return DAMAGED
    return reading.report_damage(damage)


def _to_stdout(args: argparse.Namespace) -> int:
    """stdout gets only the trace, and must not be a terminal, which would act on its bytes."""
    if args.partition:
        raise DFTracerError("--partition writes a directory and cannot be combined with -o -")
    if is_terminal(sys.stdout):
        raise DFTracerError("stdout is a terminal: redirect it to a file or a pipe")
    traces = reading.open_traces(args, data=True)
    sys.stdout.flush()
    if args.to == "parquet":
        # The Parquet writer seeks in its file.
        with _cleanup.directory("dftracer-export-") as directory:
            whole = Path(directory) / "events.parquet"
            events, found, damage = _to_parquet(traces, whole, args.threads, False)
            with open(whole, "rb") as file:
                import shutil

                shutil.copyfileobj(file, sys.stdout.buffer)
            sys.stdout.buffer.flush()
    else:
        events, found, damage = _to_file(args.to, traces, sys.stdout.fileno(), args.threads)
    if args.json:
        facts = {"events": events, "written": found, "format": args.to, "output": "-"}
        print(json.dumps(facts), file=sys.stderr)
    if events != found:
        print(f"dftracer: stdout: {found:,} events instead of {events:,}", file=sys.stderr)
        return DAMAGED
    return reading.report_damage(damage)


def _size(output: Path) -> int:
    parts = output.rglob("*.parquet") if output.is_dir() else [output]
    return sum(part.stat().st_size for part in parts)


def _to_file(
    form: str, traces: list[Path], output: Path | int, threads: int
) -> tuple[int, int, Damage]:
    try:
        with Progress.of_files(traces, "exporting") as bar:
            done = _reader.export(form, traces, output, threads=threads, progress=bar.callback)
    except BrokenPipeError:
        raise
    except OSError as error:
        name = "stdout" if isinstance(output, int) else output
        raise DFTracerError(f"{name}: {error.strerror or error}", 1) from None
    events = int(done["total"]["events"])
    # Chrome's file also contains metadata, so all records are compared.
    missing = int(done["records"]) - int(done["found"])
    if form == "chrome":
        # Two records of one span are one event there.
        total = done["total"]
        missing += int(total["records"]) - int(total["ends"]) - int(done["records"])
    else:
        missing += events - int(done["records"])
    return events, events - missing, Damage.of(done)


def _to_parquet(
    traces: list[Path], output: Path, threads: int, partition: bool
) -> tuple[int, int, Damage]:
    connection = _duckdb.connect(ordered=False)  # a trace has its own order, ts
    import duckdb

    # Older files in it would be read as if they belonged to this trace.
    if partition and output.exists() and not (output.is_dir() and _is_empty(output)):
        raise DFTracerError(f"{output}: already exists and is not an empty directory")
    trace = Trace(traces, threads=threads)
    connection.register("events", trace)
    part = output.with_name(_cleanup.part_name())
    events, options = "from events", "format parquet"
    if partition:
        events = f"select * replace ({SHORT} as cat) from events"
        options += ", partition_by (cat)"
    try:
        with _cleanup.unfinished(part), _duckdb.plain(str(part.parent)) as place:
            written = _duckdb.literal(os.path.join(place, part.name))
            sql = f"copy ({events}) to {written} ({options})"
            with private_umask():
                _duckdb.interruptible(connection, connection.execute, sql)
            if partition:
                part.mkdir(0o700, exist_ok=True)  # there is nothing in a trace without events
            rows = _rows(connection, Path(place, part.name))
            os.replace(part, output)
    except (duckdb.Error, OSError) as error:
        raise DFTracerError(f"{output}: {str(error).splitlines()[0]}", 1) from None
    if partition:
        _report_short(output)
    damage = trace.damage
    if damage is None:
        raise DFTracerError(f"{output}: the trace was not read to its end", 1)
    return damage.events, rows, damage


def _report_short(output: Path) -> None:
    names = (place.name for place in output.iterdir())
    short = [name for name in names if re.search(r"~md5-[0-9a-f]{8}$", name)]
    if short:
        categories = counted(len(short), "category", "categories")
        some = ", ".join(sorted(short)[:3])
        complain(f"{output}: {categories} too long for the name of a directory, shortened: {some}")


def _is_empty(directory: Path) -> bool:
    return next(directory.iterdir(), None) is None


def _rows(connection: duckdb.DuckDBPyConnection, output: Path) -> int:
    """What is in the files now, counted one by one: a name of theirs is no pattern."""
    files = sorted(map(str, output.rglob("*.parquet"))) if output.is_dir() else [str(output)]
    if not files:
        return 0
    names = list(map(_duckdb.pattern, files))
    rows = connection.execute("select count(*) from read_parquet(?)", [names]).fetchone()
    return 0 if rows is None else int(rows[0])

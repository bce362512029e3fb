"""`dftracer split TRACE... -n 4`: pieces by number, size, process or time."""

from __future__ import annotations

import argparse
from pathlib import Path

from dftracer._files import add_mode, file_mode
from dftracer.commands._cli.merging import add_alignment, add_inputs, failed, inputs, report
from dftracer.commands._cli.options import nanoseconds, positive, positive_number
from dftracer.commands._cli.progress import Progress
from dftracer.errors import DFTracerError
from dftracer.trace.files import ENDINGS

EXAMPLES = """\
  dftracer split trace.pfw.gz -n 4                four pieces, trace-0001.pfw.gz and so on
  dftracer split trace.pfw.gz -s 50               pieces of about 50 MB
  dftracer split traces --by-process -o piece     one piece per process
  dftracer split trace.pfw.gz --every 10s         ten seconds per piece
  dftracer split trace.pfw.gz --from 5s --to 8s   only events that began in these seconds
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_inputs(parser)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("-n", "--parts", type=positive, metavar="N", help="number of pieces")
    how.add_argument(
        "-s", "--size", type=positive_number, metavar="MB", help="approximate size of a piece"
    )
    how.add_argument("--by-process", action="store_true", help="one piece per process")
    how.add_argument(
        "--every",
        type=nanoseconds,
        metavar="TIME",
        help="time per piece, for example 500ms, 10s, 2m",
    )
    parser.add_argument(
        "--from",
        dest="start",
        type=nanoseconds,
        metavar="TIME",
        help="leave out events that began before TIME, counted from the first event",
    )
    parser.add_argument(
        "--to",
        dest="stop",
        type=nanoseconds,
        metavar="TIME",
        help="leave out events that began after TIME",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="STEM",
        help="pieces are named STEM-0001.pfw.gz and so on (default: the name of the trace); "
        "an ending of .pfw or .json selects that format",
    )
    add_alignment(parser)
    add_mode(parser)
    parser.add_argument("--json", action="store_true", help="print a JSON summary")
    parser.add_argument("--quiet", action="store_true", help="print only problems")


def _how(args: argparse.Namespace) -> tuple[str, int]:
    if args.start is not None and args.stop is not None and args.stop <= args.start:
        raise DFTracerError("--to must be later than --from")
    if args.parts is not None:
        return "parts", args.parts
    if args.size is not None:
        return "size", max(round(args.size * 1e6), 1)
    if args.by_process:
        return "process", 0
    if args.every is not None:
        if args.every == 0:
            raise DFTracerError("--every must be greater than 0")
        return "time", args.every
    if args.start is not None or args.stop is not None:
        return "parts", 1
    raise DFTracerError("specify one of -n, -s, --by-process, --every, --from, --to")


def _stem(args: argparse.Namespace, traces: list[Path]) -> tuple[str, str]:
    name = args.output
    if name is None:
        if len(traces) != 1:
            raise DFTracerError(
                "several traces: specify the name of the pieces with -o", exit_code=2
            )
        name = str(traces[0])
    for end in sorted(ENDINGS, key=len, reverse=True):
        if name.endswith(end) and len(Path(name).name) > len(end):
            name = name[: -len(end)]
            # Pieces of torch.profiler's JSON are .pfw.gz unless -o selects another format.
            return name, end if args.output is not None or ".pfw" in end else ".pfw.gz"
    return name, ".pfw.gz"


def run(args: argparse.Namespace) -> int:
    from dftracer import _reader
    from dftracer.trace.summary import summarise_all

    args.mode = file_mode(args.mode)
    by, number = _how(args)
    traces = inputs(args)
    stem, end = _stem(args, traces)
    if not Path(stem).parent.is_dir():
        raise DFTracerError(f"{Path(stem).parent}: no such directory")
    start = stop = None
    if args.start is not None or args.stop is not None:
        first = summarise_all(traces, threads=args.threads, by_path=False).first or 0
        start = None if args.start is None else first + args.start
        stop = None if args.stop is None else first + args.stop
    try:
        with Progress.of_files(traces, "splitting", passes=3) as bar:
            found = _reader.split(
                traces,
                stem,
                end,
                by,
                number,
                start=start,
                stop=stop,
                align=args.clocks,
                threads=args.threads,
                progress=bar.callback,
            )
    except ValueError as error:
        raise DFTracerError(str(error), exit_code=2) from None
    except OSError as error:
        raise failed(error, Path(f"{stem}-...{end}")) from None
    return report(found, args)

"""`dftracer whatif TRACE...`: step and job times with other settings of the DataLoader."""

from __future__ import annotations

import argparse
import json
import re
from typing import TYPE_CHECKING

from dftracer._layout import table, wrap
from dftracer.commands._cli import options, reading, terminal
from dftracer.errors import DFTracerError

if TYPE_CHECKING:
    from dftracer.reports.whatif import Change

MOST_WORKERS = 1024

EXAMPLES = """\
  dftracer whatif traces                             the usual changes, one by one
  dftracer whatif traces --workers 8 --prefetch 4    both at once
  dftracer whatif traces --persistent --decode 2x
  dftracer whatif traces --local-disk 2GB/s          with the data on a local disk
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    reading.add_arguments(parser)
    parser.add_argument(
        "--workers", type=workers, metavar="N", help="num_workers; 0 has no worker processes"
    )
    parser.add_argument(
        "--prefetch", type=options.positive, metavar="N", help="prefetch_factor, per worker"
    )
    parser.add_argument(
        "--persistent", action="store_true", help="workers that live on between passes"
    )
    parser.add_argument("--reads", type=factor, metavar="2x", help="reading so many times as fast")
    parser.add_argument(
        "--decode", type=factor, metavar="2x", help="decoding so many times as fast"
    )
    parser.add_argument(
        "--local-disk",
        type=rate,
        metavar="RATE",
        help="reads at this rate, such as 2GB/s; 'fastest' is that of the fastest tenth of reads",
    )
    parser.add_argument(
        "--cpus",
        type=options.positive,
        metavar="N",
        help="cores that the processes may use (default: as recorded)",
    )


def workers(text: str) -> int:
    return options.natural(text, MOST_WORKERS)


def factor(text: str) -> float:
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)x?", text)
    if match is None or not float(match[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a factor above 0 (for example 2x)")
    return float(match[1])


def rate(text: str) -> float:
    from dftracer.reports.whatif import FASTEST

    if text == "fastest":
        return FASTEST
    try:
        found = options.size(text[:-2]) if text.endswith("/s") else 0
    except argparse.ArgumentTypeError:
        found = 0
    if not found:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a rate (for example 2GB/s, 500MB/s, fastest)"
        )
    return float(found)


def run(args: argparse.Namespace) -> int:
    from dftracer.reports.engine import make_report
    from dftracer.reports.whatif import Unknown, predict

    change = _change(args)
    traces = reading.open_traces(args)
    report = make_report(traces, threads=args.threads)
    code = reading.report_damage(report.damage)
    try:
        rows = predict(report, None if change is None else [change], cores=args.cpus)
    except Unknown as reason:
        raise DFTracerError(f"nothing can be predicted: {reason}", exit_code=code or 1) from None
    if args.json:
        print(json.dumps({"traces": [str(trace) for trace in traces], "whatif": rows}, indent=1))
    else:
        _print(rows)
    return code


def _change(args: argparse.Namespace) -> Change | None:
    from dftracer.reports.whatif import Change

    if args.workers == 0 and (args.prefetch or args.persistent):
        raise DFTracerError("--workers 0 cannot be combined with --prefetch or --persistent")
    if args.reads and args.local_disk:
        raise DFTracerError("--reads and --local-disk cannot be combined")
    change = Change(
        workers=args.workers,
        prefetch=args.prefetch,
        persistent=True if args.persistent else None,
        reads=args.reads or 1.0,
        decode=args.decode or 1.0,
        disk=args.local_disk,
    )
    return None if change == Change() else change


def _print(rows: list[dict[str, object]]) -> None:
    from dftracer.reports.render.summary import WHATIF, whatif_cells, whatif_notes

    width = terminal.width()
    head, *lines = table(WHATIF, whatif_cells(rows), width)
    print("\n".join([terminal.dim(head), *lines]))
    for note in whatif_notes(rows):
        print("\n".join(["", *wrap(note, width)]))

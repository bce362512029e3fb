"""`dftracer merge TRACE... -o OUT`: ranks, hosts, workers and torch.profiler on one timeline."""

from __future__ import annotations

import argparse
from pathlib import Path

from dftracer._files import add_mode, file_mode
from dftracer.commands._cli.merging import add_alignment, add_inputs, failed, inputs, report
from dftracer.commands._cli.progress import Progress
from dftracer.errors import DFTracerError
from dftracer.trace.files import ENDINGS

EXAMPLES = """\
  dftracer merge traces -o all.pfw.gz                     all files of a directory
  dftracer merge rank0.pfw.gz rank1.pfw.gz torch-0.json -o both.pfw.gz
  dftracer merge --file-list torch-0-of-24.json trace-0-of-24.pfw --output combined-0.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_inputs(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        required=True,
        help="output file: .pfw.gz, .pfw, or .json for strict Chrome JSON",
    )
    add_alignment(parser)
    add_mode(parser)
    parser.add_argument("--json", action="store_true", help="print a JSON summary")
    parser.add_argument("--quiet", action="store_true", help="print only problems")


def output_path(name: str) -> Path:
    out = Path(name)
    if not out.name.endswith(ENDINGS):
        raise DFTracerError(f"{out}: the name must end with {', '.join(ENDINGS)}", exit_code=2)
    if not out.parent.is_dir():
        raise DFTracerError(f"{out.parent}: no such directory")
    if out.is_dir():
        raise DFTracerError(f"{out}: is a directory")
    return out


def run(args: argparse.Namespace) -> int:
    from dftracer import _reader

    args.mode = file_mode(args.mode)
    out = output_path(args.output)
    traces = inputs(args, out)
    try:
        with Progress.of_files(traces, "merging", passes=3) as bar:
            found = _reader.merge(
                traces, out, threads=args.threads, align=args.clocks, progress=bar.callback
            )
    except OSError as error:
        raise failed(error, out) from None
    return report(found, args)

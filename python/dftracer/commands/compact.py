"""`dftracer compact TRACE...`: the same records in fewer bytes."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import NamedTuple

from dftracer import _cleanup
from dftracer._format import size
from dftracer._names import printable
from dftracer.commands._cli import reading
from dftracer.commands._cli.options import add_no_recover, add_threads
from dftracer.commands._cli.progress import Progress
from dftracer.commands._cli.reading import report_damage
from dftracer.commands._cli.recovery import check_finished, finish_dead
from dftracer.commands._cli.terminal import complain
from dftracer.errors import DFTracerError
from dftracer.trace.files import find_traces
from dftracer.trace.stream import Damage

EXAMPLES = """\
  dftracer compact traces                .pfw becomes .pfw.gz, .pfw.gz becomes smaller
  dftracer compact --keep trace.pfw      keep the uncompressed file
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", metavar="TRACE", nargs="+", help="trace files or directories of trace files"
    )
    parser.add_argument(
        "--keep", action="store_true", help="keep an uncompressed .pfw beside its .pfw.gz"
    )
    add_threads(parser)
    add_no_recover(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object per file")
    parser.add_argument("--quiet", action="store_true", help="print only problems")


class Sizes(NamedTuple):
    """Size of a file before and after; `what` is why it was left unchanged."""

    path: Path
    before: int
    after: int
    what: str = ""


def run(args: argparse.Namespace) -> int:
    from dftracer import _reader

    if not args.no_recover:
        finish_dead(args.paths, sys.stderr if args.json or args.quiet else sys.stdout)
    traces = find_traces(args.paths)
    if not traces:
        raise DFTracerError(f"no trace files (.pfw, .pfw.gz) in {', '.join(args.paths)}")
    code = 0
    done = []
    for trace, head in zip(traces, _reader.probe(traces)):
        try:
            found = _one(trace, args) if not head["document"] else _document(trace)
        except DFTracerError as error:
            complain(error)
            code = max(code, error.exit_code)
            continue
        done.append(found)
        _show(args, found)
    if not (args.quiet or args.json) and len(done) > 1:
        print(_text(sum(one.before for one in done), sum(one.after for one in done)))
    return code


def _document(trace: Path) -> Sizes:
    size = trace.stat().st_size
    return Sizes(trace, size, size, "one JSON document, left unchanged (see dftracer merge)")


def _one(trace: Path, args: argparse.Namespace) -> Sizes:
    """Removes the old file only after the new one was read back."""
    from dftracer import _reader

    name = str(trace)
    check_finished(trace)
    target = Path(os.path.realpath(trace))  # a symbolic link stays one
    out = target if name.endswith(".gz") else trace.with_name(trace.name + ".gz")
    if out != target and out.exists():
        raise DFTracerError(f"{printable(name)}: {out.name} already exists", exit_code=1)
    old = trace.stat().st_size
    part = out.with_name(f".{trace.name}.{os.getpid()}.part.pfw.gz")
    try:
        with _cleanup.unfinished(part):
            with Progress.of_files([trace], "compacting", passes=2) as bar:
                found = _reader.copy(
                    trace, part, threads=args.threads, level=3, progress=bar.callback
                )
            damage = Damage.of(found)
            if damage.damaged:
                # The original may still hold what a copy would lose.
                report_damage(damage)
                raise DFTracerError(
                    f"{printable(name)}: damaged, left unchanged (run dftracer recover first)",
                    exit_code=reading.DAMAGED,
                )
            if found["mismatch"]:
                text = f"{printable(name)}: {found['mismatch']}; left unchanged"
                raise DFTracerError(text, exit_code=1)
            if out == target and found["bytes"] >= old:
                return Sizes(trace, old, old, "already as small as possible")
            os.chmod(part, trace.stat().st_mode & 0o777)
            with _cleanup.whole():  # never both of them
                os.replace(part, out)
                if out != target and not args.keep:
                    trace.unlink()
    except OSError as error:
        raise DFTracerError(f"{printable(name)}: {error.strerror or error}", exit_code=1) from None
    return Sizes(trace if out == target else out, old, found["bytes"])


def _show(args: argparse.Namespace, found: Sizes) -> None:
    if args.json:
        print(json.dumps({**found._asdict(), "path": str(found.path)}))
    elif not args.quiet:
        text = found.what or _text(found.before, found.after)
        print(f"{printable(str(found.path))}: {text}")


def _text(before: int, after: int) -> str:
    ratio = f" ({before / after:.3g} to 1)" if after else ""
    return f"{size(before)} to {size(after)}{ratio}"

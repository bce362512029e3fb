"""`dftracer report TRACE...`: where the time went, findings, and what to try."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from dftracer import _format
from dftracer._files import add_mode, file_mode
from dftracer._names import printable
from dftracer.commands._cli import reading, terminal
from dftracer.commands._cli.terminal import bold, complain
from dftracer.errors import DFTracerError

if TYPE_CHECKING:
    from dftracer.reports.cluster import Cluster
    from dftracer.reports.compare import Comparison
    from dftracer.reports.model import Report

EXAMPLES = """\
  dftracer report traces                       print a summary, write traces-report.html
  dftracer report traces -o today.html         choose the name of the page
  dftracer report new --against old            what changed, and is it more than noise
  dftracer report new --against old --fail-if-slower 5%
  dftracer report traces --parquet tables --no-page
  dftracer report traces --cluster local:4     read with four processes
  dftracer report traces --run latest          only the last run in a directory
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    reading.add_arguments(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="HTML page (default: TRACE-report.html in the current directory)",
    )
    parser.add_argument("--no-page", action="store_true", help="write no HTML page")
    parser.add_argument(
        "--against", metavar="TRACE", action="append", help="baseline to compare with"
    )
    parser.add_argument(
        "--fail-if-slower",
        metavar="PERCENT",
        help="with --against: exit with 1 if steps are slower by more than this and than noise",
    )
    parser.add_argument("--csv", metavar="DIR", help="write each table as CSV to DIR")
    parser.add_argument("--parquet", metavar="DIR", help="write each table as Parquet to DIR")
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="local:N: N processes on this machine; tls://HOST:PORT: a Dask scheduler",
    )
    for what, name in (
        ("ca-file", "CA certificate"),
        ("cert", "certificate"),
        ("key", "private key"),
    ):
        parser.add_argument(
            f"--tls-{what}", metavar="FILE", help=f"{name} for --cluster tls://... (PEM)"
        )
    add_mode(parser)


def run(args: argparse.Namespace) -> int:
    from dftracer.reports import output
    from dftracer.reports.engine import make_report

    mode = file_mode(args.mode)
    limit = _limit(args)
    cluster = _cluster(args)
    traces = reading.open_traces(args)
    report = make_report(traces, threads=args.threads, cluster=cluster)
    comparison = _compare(args, report, limit, cluster) if args.against else None
    for place, write in ((args.csv, output.write_csv), (args.parquet, output.write_parquet)):
        if place:
            write(report, place, mode=mode)
    if args.json:
        output.write_json(report, sys.stdout, comparison.tables if comparison else {})
    else:
        _print(report, comparison)
    _write_page(args, report, comparison, mode)
    code = reading.report_damage(report.damage)
    return 1 if comparison is not None and comparison.too_slow else code


def _limit(args: argparse.Namespace) -> float | None:
    if args.output and args.no_page:
        raise DFTracerError("-o and --no-page cannot be combined")
    if args.fail_if_slower is None:
        return None
    if not args.against:
        raise DFTracerError("--fail-if-slower needs a baseline: --against TRACE")
    from dftracer.reports.compare import parse_limit

    return parse_limit(args.fail_if_slower)


def _cluster(args: argparse.Namespace) -> Cluster | None:
    from dftracer.reports.cluster import Tls, parse

    files = (args.tls_ca_file, args.tls_cert, args.tls_key)
    if any(files) and not (all(files) and args.cluster):
        raise DFTracerError(
            "--tls-ca-file, --tls-cert and --tls-key must be used together, with --cluster tls://..."
        )
    if args.cluster is None:
        return None
    found = parse(args.cluster, Tls(*files) if all(files) else None)
    if found.warning is not None:
        complain(found.warning)
    return found


def _compare(
    args: argparse.Namespace, report: Report, limit: float | None, cluster: Cluster | None
) -> Comparison:
    from dftracer.reports.compare import compare
    from dftracer.reports.engine import make_report

    other = argparse.Namespace(**{**vars(args), "paths": args.against, "run": None})
    traces = reading.open_traces(other)
    before = make_report(traces, threads=args.threads, cluster=cluster)
    reading.report_damage(before.damage)
    return compare(report, before, limit)


def _print(report: Report, comparison: Comparison | None) -> None:
    from dftracer.reports.render.summary import summarise

    if comparison is None:
        print("\n".join(summarise(report, _style, terminal.width())))
        return
    from dftracer.reports.render.compare_text import lines

    found = lines(comparison, width=terminal.width())
    sentence = found.index("")
    print("\n".join([*map(bold, found[:sentence]), *found[sentence:]]))


def _write_page(
    args: argparse.Namespace, report: Report, comparison: Comparison | None, mode: int
) -> None:
    """Without -o the page is a by-product: failing to write it is a warning, not an error."""
    if args.no_page or (args.json and not args.output):
        return
    from dftracer.reports.render.page import write_page

    path = args.output or page_name(args.paths[0])
    try:
        size = write_page(path, report, comparison, mode=mode)
    except (DFTracerError, OSError) as error:
        if args.output:
            raise
        reason = error.strerror if isinstance(error, OSError) else str(error)
        complain(f"cannot write the page {path}: {reason}")
        return
    to = sys.stderr if args.json else sys.stdout
    print(f"\npage      {printable(path)}, {_format.size(size)}", file=to)


def page_name(trace: str) -> str:
    """In the current directory: that of the trace may not be writable."""
    name = os.path.basename(os.path.abspath(trace))
    for ending in (".gz", ".pfw", ".json", ".trace"):
        name = name[: -len(ending)] if name.endswith(ending) else name
    return f"{name or 'trace'}-report.html"


def _style(text: str, style: str) -> str:
    return text if style == "plain" else terminal.styled(text, style)

"""Reports: where the time of a traced job went. `load(paths)` returns all tables.

from dftracer import reports
report = reports.load("traces/")
report.findings, report.calls.df(), report.figures
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Union

from dftracer.reports.model import Report, Table
from dftracer.trace.files import PathLike

__all__ = ["Report", "Table", "load"]


def load(
    paths: Union[PathLike, Iterable[PathLike]],  # noqa: UP007 - Python 3.9
    *,
    threads: int = 0,
    cluster: str | None = None,
    run: str | None = None,
) -> Report:
    """The report of trace files, or of directories of trace files.

    threads: 0 is one per core. cluster: local:N for N worker processes on this machine, or the
    address of a Dask scheduler, with TLS as Dask is configured; the tables are the same. run: only
    one run: "latest", its number, or the beginning of its id (default: all runs added up).
    """
    from dftracer.reports.engine import make_report
    from dftracer.trace.runs import choose
    from dftracer.trace.stream import read

    files = read(paths).files
    named = None
    if cluster is not None:
        from dftracer.reports.cluster import parse

        named = parse(cluster)
    return make_report(files if run is None else choose(files, run), threads=threads, cluster=named)

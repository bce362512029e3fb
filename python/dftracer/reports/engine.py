"""Makes the tables of a report from trace files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from dftracer.reports import findings
from dftracer.reports.bounds import bound_by
from dftracer.reports.clocks import apart, compare
from dftracer.reports.model import SCHEMAS, Report, Table
from dftracer.reports.store import Store
from dftracer.trace.table import Damage

# Categories of calls, which are recorded without a word from the program.
_CALLS = re.compile(r"(POSIX|STDIO)( pipe| lock)?$")


def make_report(files: Sequence[Path], *, threads: int = 0, cluster: str | None = None) -> Report:
    clock = compare(files, threads)
    with Store(threads) as store:
        if cluster is None:
            store.add_block(files, shifts=clock.shifts)
        else:
            from dftracer.reports.cluster import add_blocks

            add_blocks(store, files, cluster, clock.shifts)
        tables = {name: Table(SCHEMAS[name], rows) for name, rows in store.tables().items()}
        damage = _joined(store.damages)
    _say_what_is_missing(tables)
    _put(tables, "clock", clock.text or apart(tables["processes"].dicts()))
    _put(tables, "bound_by", bound_by(tables["overview"].dicts()[0]))
    tables["findings"] = findings.find(tables)
    return Report(tables, [str(file) for file in files], damage)


def _joined(damages: Sequence[Damage]) -> Damage:
    whole = Damage()
    for one in damages:
        whole.files += one.files
        whole.bytes_read += one.bytes_read
        whole.bytes_on_disk += one.bytes_on_disk
        whole.records += one.records
        whole.events += one.events
        whole.damaged = whole.damaged or one.damaged
        whole.problems += one.problems
        for mine, theirs in ((whole.troubles, one.troubles), (whole.odd, one.odd)):
            for kind, count in theirs.items():
                mine[kind] = mine.get(kind, 0) + count
    return whole


def _say_what_is_missing(tables: dict[str, Table]) -> None:
    """Fills not_traced: a column of the overview that takes a look at the other tables."""
    overview = tables["overview"]
    facts = overview.dicts()[0]
    classes = set(tables["layers"].column("class"))
    texts = []
    if not facts["events"]:
        texts.append("no events at all")
    else:
        if "io" not in classes:
            texts.append("no I/O calls (recorded by `dftracer run`, or in FUNCTION mode)")
        # Of a program that nobody annotated, compute is not missing.
        annotated = any(not _CALLS.match(cat or "") for cat in tables["layers"].column("cat"))
        if "compute" not in classes and annotated:
            texts.append("no compute regions (annotate with ai, or `dftracer run --torch`)")
        elif "compute" in classes and not tables["steps"].rows:
            texts.append("no training steps (no event carries one)")
    if facts["lost"]:
        texts.append(f"{facts['lost']:,} events that were lost while recording")
    if facts["damaged"]:
        texts.append(f"{facts['damaged']:,} damaged places of the files")
    _put(tables, "not_traced", "; ".join(texts) or None)


def _put(tables: dict[str, Table], column: str, value: object) -> None:
    overview = tables["overview"]
    row = list(overview.rows[0])
    row[overview.columns.index(column)] = value
    overview.rows[0] = tuple(row)

"""Makes the tables of a report from trace files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dftracer._format import counted, size
from dftracer.reports import call_sites, findings, slow_steps, whatif
from dftracer.reports.bounds import bound, bound_by
from dftracer.reports.clocks import apart, compare
from dftracer.reports.model import SCHEMAS, Report, Table
from dftracer.reports.programs import by_program
from dftracer.reports.store import Store
from dftracer.trace.stream import Damage

if TYPE_CHECKING:
    from dftracer.reports.cluster import Cluster

# Categories of intercepted calls, which need no annotation.
_CALLS = re.compile(r"(POSIX|STDIO|NET|IO_URING|AIO)( pipe| lock| net| local)?$|STORE$|MMAP$")
# Name of an io_uring queue in /proc.
RING = "anon_inode:[io_uring]"


def make_report(
    files: Sequence[Path], *, threads: int = 0, cluster: Cluster | None = None
) -> Report:
    clock = compare(files, threads)
    with Store(threads) as store:
        if cluster is None:
            store.add_block(files, shifts=clock.shifts)
        else:
            from dftracer.reports.cluster import add_blocks

            add_blocks(store, files, cluster, clock.shifts)
        tables = {name: Table(SCHEMAS[name], rows) for name, rows in store.tables().items()}
        late = slow_steps.find(tables, store.evaluations(), store.stragglers())
        lines = store.lines()
        damage = _joined(store.damages)
    call_sites.add(tables, lines)
    tables = _after(tables, "breakdown", Table(SCHEMAS["slow_steps"], late))
    tables = _after(tables, "slow_steps", Table(SCHEMAS["whatif"], whatif.find(tables)))
    programs = by_program(tables["processes"].dicts())
    tables = _after(tables, "processes", Table(SCHEMAS["programs"], programs))
    _say_what_is_missing(tables)
    _put(tables, "clock", clock.text or apart(tables["processes"].dicts()))
    _put(tables, "bound_by", bound_by(tables["overview"].dicts()[0]))
    told = bound(tables)
    _put(tables, "bound", told and told[0])
    tables["findings"] = findings.find(tables)
    return Report(tables, [str(file) for file in files], damage)


def _after(tables: dict[str, Table], name: str, table: Table) -> dict[str, Table]:
    """With another table behind the one of this name: their order is that of outputs."""
    names = list(tables)
    place = names.index(name) + 1
    return {
        **{key: tables[key] for key in names[:place]},
        table.name: table,
        **{key: tables[key] for key in names[place:]},
    }


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


def _unseen_bytes(tables: dict[str, Table], facts: dict[str, Any]) -> list[str]:
    """I/O whose bytes cannot be counted."""
    texts = []
    unknown_use = [row for row in tables["mappings"] if row["touched_bytes"] is None]
    if unknown_use:
        mapped = sum(row["mapped_bytes"] for row in unknown_use)
        texts.append(
            f"what was touched of {size(mapped)} that {counted(len(unknown_use), 'file')} had "
            "mapped into memory"
        )
    rings = any(call["name"] == "io_uring_setup" for call in tables["calls"])
    if facts["ring_requests"]:
        texts.append(f"{counted(facts['ring_requests'], 'request')} through io_uring")
    elif "IO_URING" not in tables["layers"].column("cat") and (
        rings or any(file["fname"] == RING for file in tables["files"])
    ):
        texts.append("I/O through io_uring")
    unknown = [call for call in tables["calls"] if call["class"] == "io" and call["unknown"]]
    if unknown:
        names = ", ".join(call["name"] for call in unknown[:3])
        number = sum(call["unknown"] for call in unknown)
        texts.append(f"the bytes of {counted(number, 'call')} with unknown sizes ({names})")
    return texts


def _say_what_is_missing(tables: dict[str, Table]) -> None:
    """Fills not_traced, a column of the overview that depends on the other tables."""
    overview = tables["overview"]
    facts = overview.dicts()[0]
    classes = set(tables["layers"].column("class"))
    texts = []
    if not facts["events"]:
        texts.append("no events at all")
    else:
        if "io" not in classes:
            texts.append("no I/O calls (use `dftracer run` or FUNCTION mode)")
        # Compute regions are not missing in a program without annotations.
        annotated = any(not _CALLS.match(cat or "") for cat in tables["layers"].column("cat"))
        if "compute" not in classes and annotated:
            texts.append("no compute regions (annotate with ai, or use `dftracer run --torch`)")
        elif "compute" in classes and not tables["steps"].rows:
            texts.append("no training steps (no event has a step)")
    texts += _unseen_bytes(tables, facts)
    if facts["lost"]:
        texts.append(f"{facts['lost']:,} lost events")
    if facts["damaged"]:
        texts.append(f"{facts['damaged']:,} damaged places in the files")
    _put(tables, "not_traced", "; ".join(texts) or None)


def _put(tables: dict[str, Table], column: str, value: object) -> None:
    overview = tables["overview"]
    row = list(overview.rows[0])
    row[overview.columns.index(column)] = value
    overview.rows[0] = tuple(row)

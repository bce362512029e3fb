"""The tables of the summary in a terminal: the first rows of those of the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dftracer._format import amount, duration, percent, rate, size
from dftracer._layout import Column, name_column
from dftracer._names import shorten
from dftracer.reports.model import Report
from dftracer.reports.schema import LIFE_PARTS
from dftracer.reports.tree import branch, walk

TOP = 8  # rows of a table
Section = tuple[str, Sequence[Column], list[tuple[str, ...]]]


def sections(report: Report) -> list[Section]:
    """Title, columns and rows of each table; without rows, it is left out."""
    alone = [] if len(report.steps) else _programs(report)
    return [
        ("Programs, by busy time", PROGRAMS, alone),
        ("Processes", TREE, _tree(report) if alone else []),
        ("Categories", LAYERS, _layers(report)),
        ("Calls, by time", CALLS, _calls(report)),
        ("Time of training processes", BREAKDOWN, _breakdown(report)),
        ("Epochs", EPOCHS, _epochs(report)),
        ("Files, by time", FILES, _files(report)),
        ("Lines of code, by time of their I/O", LINES, _lines(report)),
        ("Peers of sockets, by time", CONNECTIONS, _connections(report)),
        ("Slow ranks and workers", STRAGGLERS, _stragglers(report)),
        ("Ranks at collectives", ARRIVALS, _arrivals(report)),
        ("MPI, by rank", MPI, _mpi(report)),
        ("PyTorch operations, by time", OPERATIONS, _torch(report)),
    ]


def _more(rows: list[tuple[str, ...]], whole: int) -> list[tuple[str, ...]]:
    if whole > TOP:
        rows.append((f"… and {whole - TOP:,} more",))
    return rows


CONNECTIONS = (
    name_column("peer"),
    Column("connections"),
    Column("received"),
    Column("sent"),
    Column("receiving"),
    Column("first byte", rank=1),
    Column("longest", rank=2),
)


def _connections(report: Report) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for row in report.connections.dicts()[:TOP]:
        first = row["first_byte_mean_ns"]
        rows.append(
            (
                row["peer"],
                f"{row['connections']:,}",
                size(row["received_bytes"]),
                size(row["sent_bytes"]),
                duration(row["receive_ns"]),
                "" if first is None else duration(first),
                duration(row["stall_ns"]),
            )
        )
    return _more(rows, len(report.connections))


PROGRAMS = (
    name_column("program"),
    Column("processes"),
    Column("wall", rank=1),
    Column("CPU"),
    Column("I/O"),
    Column("waiting", rank=2),
    Column("read", rank=3),
    Column("written", rank=3),
)


def _programs(report: Report) -> list[tuple[str, ...]]:
    """Of a run with several processes, which no training explains."""
    if len(report.processes) < 2:
        return []
    rows: list[tuple[str, ...]] = []
    for row in report.programs.dicts()[:TOP]:
        rows.append(
            (
                row["program"],
                f"{row['processes']:,}",
                duration(row["wall_ns"]),
                "" if row["cpu_ns"] is None else duration(row["cpu_ns"]),
                duration(row["io_ns"]),
                duration(row["wait_ns"]),
                amount(row["read_bytes"]),
                amount(row["write_bytes"]),
            )
        )
    return _more(rows, len(report.programs))


TREE = (
    name_column("command"),
    Column("pid", rank=3),
    Column("wall"),
    Column("CPU"),
    Column("I/O"),
    Column("waiting", rank=1),
    Column("asleep", rank=2),
)
TREE_WIDTH = 60


def _tree(report: Report) -> list[tuple[str, ...]]:
    """The top of the tree: of each process, the children that lived longest come first."""
    rows: list[tuple[str, ...]] = []
    longest = walk(report.processes.dicts(), lambda row: -(row["life_ns"] or 0))
    for depth, row in longest:
        if len(rows) == TOP:
            break
        command = shorten((row["command"] or "").strip(), TREE_WIDTH, keep_start=True)
        rows.append(
            (
                f"{branch(depth)}{command or '(unknown)'}",
                str(row["pid"]),
                duration(row["life_ns"] or 0),
                "" if row["cpu_ns"] is None else duration(row["cpu_ns"]),
                duration(row["io_ns"]),
                duration(row["wait_ns"] or 0),
                duration(row["idle_ns"] or 0),
            )
        )
    return _more(rows, len(report.processes))


LAYERS = (
    name_column("category"),
    Column("events"),
    Column("time"),
    Column("union", rank=2),
    Column("read", rank=1),
    Column("written", rank=1),
    Column("rate", rank=3),
    Column("hidden", rank=4),
)


def _layers(report: Report) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for row in report.layers.dicts()[:TOP]:
        io = row["class"] == "io"
        hidden = row["overlap_percent"] if io else None
        rows.append(
            (
                row["cat"] or "(none)",
                f"{row['events']:,}",
                duration(row["total_ns"]),
                duration(row["union_ns"]),
                amount(row["read_bytes"]) if io else "",
                amount(row["write_bytes"]) if io else "",
                rate(row["bandwidth"]) if row["bandwidth"] else "",
                "" if hidden is None else percent(hidden / 100),
            )
        )
    return _more(rows, len(report.layers))


CALLS = (
    name_column("name"),
    name_column("category", rank=5),
    Column("count"),
    Column("time"),
    Column("mean", rank=1),
    Column("p99", rank=3),
    Column("longest", rank=2),
    Column("bytes", rank=4),
    Column("per call", rank=6),
)


def _calls(report: Report) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for row in report.calls.dicts()[:TOP]:
        ways = (row["read_bytes"] or 0, row["write_bytes"] or 0)
        # A copy writes what it reads.
        moved = (max(ways) if row["role"] == "copy" else sum(ways)) or None
        known = moved or row["unknown"]
        rows.append(
            (
                row["name"],
                row["cat"],
                f"{row['count']:,}",
                duration(row["total_ns"]),
                duration(row["mean_ns"]),
                duration(row["p99_ns"] or 0),
                duration(row["max_ns"]),
                amount(moved, row["unknown"]) if known else "",
                size(row["mean_size"]) if row["mean_size"] else "",
            )
        )
    return _more(rows, len(report.calls))


PARTS = {
    "compute": "compute",
    "fetch": "fetch",
    "comm": "communication",
    "transfer": "transfer",
    "checkpoint": "checkpoint",
    "evaluation": "evaluation",
    "rest": "unattributed",
}
EPOCHS = (
    name_column("epoch"),
    Column("process"),
    Column("steps", rank=1),
    Column("time"),
    Column("compute"),
    Column("fetch"),
    *(Column(name, rank=2) for name in list(PARTS)[2:]),
)


def _epochs(report: Report) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    there = [part for part in PARTS.values() if any(report.epochs.column(f"{part}_ns"))]
    for row in report.epochs.dicts()[:TOP]:
        rows.append(
            (
                "?" if row["epoch"] is None else str(row["epoch"]),
                str(row["process"]) if row["rank"] is None else f"rank {row['rank']}",
                f"{row['steps']:,}",
                duration(row["dur_ns"]),
                *(
                    percent(row[f"{part}_ns"] / max(row["dur_ns"], 1)) if part in there else ""
                    for part in PARTS.values()
                ),
            )
        )
    return _more(rows, len(report.epochs))


BREAKDOWN = (name_column("part"), Column("time"), Column("share"))


def _breakdown(report: Report) -> list[tuple[str, ...]]:
    """From start to end, summed over processes."""
    sums: dict[str, int] = {}
    for row in report.breakdown:
        sums[row["part"]] = sums.get(row["part"], 0) + row["time_ns"]
    whole = max(sum(sums.values()), 1)
    there = [part for part in LIFE_PARTS if part in sums]
    return [(part, duration(sums[part]), percent(sums[part] / whole)) for part in there]


FILES = (
    name_column("file"),
    Column("time"),
    Column("calls"),
    Column("read", rank=1),
    Column("written", rank=1),
    Column("per call", rank=3),
    Column("access", right=False, rank=2),
)


def _files(report: Report) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for row in report.files.rows[:TOP]:
        file = dict(zip(report.files.columns, row))
        calls = file["opens"] + file["reads"] + file["writes"] + file["metadata"]
        rows.append(
            (
                file["fname"],
                duration(file["total_ns"]),
                f"{calls:,}",
                amount(file["read_bytes"], file["read_unknown"]),
                amount(file["write_bytes"], file["write_unknown"]),
                size(file["mean_size"]) if file["mean_size"] else "",
                _access(file),
            )
        )
    return _more(rows, len(report.files))


def _access(file: dict[str, Any]) -> str:
    if not file["mapped_bytes"]:
        return str(file["pattern"])
    touched = file["touched_bytes"]
    told = f", touched {size(touched)}" if touched is not None else ""
    return f"mapped {size(file['mapped_bytes'])}{told}"


LINES = (
    name_column("line", keep_start=True),
    name_column("calling", rank=3, keep_start=True),
    Column("time"),
    Column("calls"),
    Column("read", rank=1),
    Column("written", rank=1),
    Column("files", rank=2),
)


def _lines(report: Report) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [
        (
            line["place"],
            line["callee"] or (line["caller"] if line["file"] else None) or "",
            duration(line["total_ns"]),
            f"{line['calls']:,}",
            size(line["read_bytes"]),
            size(line["write_bytes"]),
            f"{line['files']:,}",
        )
        for line in report.lines.dicts()[:TOP]
    ]
    return _more(rows, len(report.lines))


STRAGGLERS = (
    name_column("kind"),
    Column("process"),
    Column("measure", right=False),
    Column("value"),
    Column("median", rank=1),
    Column("ratio"),
)


def _stragglers(report: Report) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    off = [row for row in report.stragglers if row["ratio"] and row["ratio"] >= 1.2]
    for row in off[:TOP]:
        text = size if row["measure"] == "read bytes" else duration
        rows.append(
            (
                row["kind"],
                str(row["process"]) if row["rank"] is None else f"rank {row['rank']}",
                row["measure"],
                text(row["value"]),
                text(row["median"]),
                f"{row['ratio']:.2f}",
            )
        )
    return rows


ARRIVALS = (
    name_column("rank"),
    Column("collectives"),
    Column("came last"),
    Column("late, median", rank=1),
    Column("waited for others"),
    Column("others waited"),
    Column("reason", right=False, rank=2),
)


def _arrivals(report: Report) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for row in report.arrivals.dicts()[:TOP]:
        late = row["median_late_ns"]
        rows.append(
            (
                f"process {row['process']}" if row["rank"] is None else f"rank {row['rank']}",
                f"{row['collectives']:,}",
                f"{row['last']:,}",
                "" if late is None else duration(late),
                duration(row["waited_ns"]),
                duration(row["given_ns"]),
                row["reason"] or "",
            )
        )
    return _more(rows, len(report.arrivals)) if any(report.arrivals.column("last")) else []


MPI = (
    name_column("rank"),
    Column("calls"),
    Column("time in MPI"),
    Column("in collectives", rank=2),
    Column("messages", rank=1),
    Column("sent"),
    Column("MPI-IO", rank=1),
    Column("read by it", rank=3),
    Column("written by it", rank=3),
)


def _mpi(report: Report) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for row in report.mpi_ranks.dicts()[:TOP]:
        rows.append(
            (
                f"process {row['process']}" if row["rank"] is None else f"rank {row['rank']}",
                f"{row['calls']:,}",
                duration(row["time_ns"]),
                duration(row["collective_ns"]),
                f"{row['messages']:,}",
                size(row["sent_bytes"]),
                duration(row["file_ns"]) if row["file_calls"] else "",
                size(row["read_bytes"]) if row["file_calls"] else "",
                size(row["write_bytes"]) if row["file_calls"] else "",
            )
        )
    return _more(rows, len(report.mpi_ranks))


OPERATIONS = (
    name_column("operation"),
    Column("phase", right=False, rank=2),
    Column("count"),
    Column("time"),
    Column("mean", rank=1),
    Column("p99", rank=3),
)


def _torch(report: Report) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for row in report.torch_ops.dicts()[:TOP]:
        rows.append(
            (
                row["name"],
                row["phase"] or "",
                f"{row['count']:,}",
                duration(row["total_ns"]),
                duration(row["mean_ns"]),
                duration(row["p99_ns"]),
            )
        )
    return _more(rows, len(report.torch_ops))

"""The report in a terminal: what it was, where the time went, what is worth a look."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from dftracer.reports.model import Report
from dftracer.reports.text import counted, duration, percent, rate, size
from dftracer.reports.workers import starts, waits
from dftracer.trace.runs import when_text

Row = dict[str, Any]
TOP = 8
# What is said of a job's time if not its start and end records tell it.
TIMED_BY = {
    "its events": " from its first to its last event",
    "its start record and its last event": " until its last event (its end is not known)",
    "its first event and its end record": " from its first event (its start is not known)",
}
SHARES = (
    ("compute_ns", "compute"),
    ("fetch_ns", "waiting for data"),
    ("communication_ns", "communication"),
    ("transfer_ns", "transfers"),
    ("checkpoint_ns", "checkpoints"),
    ("unattributed_ns", "not attributed"),
)


def plain(text: str, style: str) -> str:
    return text


def summarise(
    report: Report, style: Callable[[str, str], str] = plain, width: int = 100
) -> list[str]:
    """Lines of at most `width` columns. style(text, "bold" or "dim") may decorate."""
    lines = [*_head(report), ""]
    lines += _findings(report, style, width)
    for title, rows in _sections(report):
        if len(rows) > 1:
            lines += ["", style(title, "bold"), *_table(rows, style, width)]
    return lines


def _head(report: Report) -> list[str]:
    facts = report.overview.dicts()[0]
    roles = [row["role"] for row in report.processes]
    parts = [
        f"{roles.count(role)} {role}" for role in ("main", "worker", "helper") if role in roles
    ]
    # A trace of another tool may not say where it was made.
    where = f" on {counted(facts['hosts'], 'host')}" if facts["hosts"] else ""
    if facts["ranks"]:
        where += f", {counted(facts['ranks'], 'rank')}"
    lines = [
        *_runs(report),
        f"job       {duration(facts['job_ns'] or 0)}{TIMED_BY.get(facts['timed_by'] or '', '')}, "
        f"{counted(facts['processes'], 'process', 'processes')} ({', '.join(parts) or 'none'})"
        f"{where}; {counted(facts['events'], 'event')} in {counted(facts['traces'], 'trace')}",
    ]
    if facts["clock"]:
        lines += [f"clock     {part}" for part in facts["clock"].split("; ")]
    training = _training(report)
    if facts["bound_by"] and not training:
        lines.append(f"time      {facts['bound_by']}")
    lines += training
    if facts["io_ns"] or facts["read_bytes"] or facts["write_bytes"]:
        lines.append(_io(report, facts))
    lines += [f"not seen  {part}" for part in (facts["not_traced"] or "").split("; ") if part]
    return lines


def _runs(report: Report) -> list[str]:
    """Several runs are added up only with a word about it, and about how to choose one."""
    runs = report.runs.dicts()
    if len(runs) < 2:
        return []
    guess = " (by their times: not all traces carry the id of a run)" if any(
        run["guessed"] for run in runs
    ) else ""  # fmt: skip
    lines = [
        f"runs      {len(runs):,} different runs are added up here{guess}; choose one with "
        "--run latest, or --run N"
    ]
    shown = runs if len(runs) <= TOP else [*runs[: TOP - 2], *runs[-1:]]
    for run in shown:
        command = (run["command"] or "").strip()
        lines.append(
            f"          {run['run']}: {when_text(run['start_ns'])}, "
            f"{duration(run['dur_ns'] or 0)}, "
            f"{counted(run['processes'], 'process', 'processes')}"
            f"{': ' + _printable(command)[:60] if command else ''}"
        )
    if len(shown) < len(runs):
        lines.insert(-1, f"          and {len(runs) - len(shown):,} more")
    return lines


def _printable(text: str) -> str:
    """A name may hold anything, and a terminal must not act on it."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _training(report: Report) -> list[str]:
    epochs = report.epochs.dicts()
    evaluation = sum(epoch["evaluation_ns"] for epoch in epochs)
    steps = len(report.steps)
    whole = sum(report.steps.column("dur_ns"))
    if not whole:
        return []
    trainers = len({epoch["process"] for epoch in epochs})
    numbers = {epoch["epoch"] for epoch in epochs}
    passes = f" in {counted(len(numbers), 'epoch')}" if numbers != {None} else ""
    parts = []
    started = sum(waits(starts(report.processes, report.steps)).values())
    for column, name in SHARES:
        value = sum(report.steps.column(column))
        if column == "fetch_ns" and started:
            parts.append(f"waiting for workers to start {percent(started / whole)}")
            value -= started
        if value:
            parts.append(f"{name} {percent(value / whole)}")
    evaluated = f"; evaluation {duration(evaluation)} besides" if evaluation else ""
    return [
        f"training  {counted(steps, 'step')}{passes}, "
        f"{counted(trainers, 'process', 'processes')}, {duration(whole / max(steps, 1))} a step",
        f"          {', '.join(parts)}{evaluated}",
    ]


def _io(report: Report, facts: Row) -> str:
    calls = [row for row in report.calls if row["class"] == "io"]
    busy = facts["io_ns"]
    moved = facts["read_bytes"] + facts["write_bytes"]
    text = (
        f"I/O       read {size(facts['read_bytes'])}, wrote {size(facts['write_bytes'])} in "
        f"{counted(sum(row['count'] for row in calls), 'call')}, {duration(busy)}"
    )
    if busy and moved:
        text += f", {rate(moved * 1e9 / busy)}"
    computing = [row for row in report.processes if row["compute_ns"] and row["io_ns"]]
    io = sum(row["io_ns"] for row in computing)
    if io:
        hidden = sum(row["hidden_io_ns"] for row in computing)
        text += (
            f"; in processes that compute {duration(io)}, {percent(hidden / io)} of it "
            "while they computed"
        )
    return text


def _findings(report: Report, style: Callable[[str, str], str], width: int) -> list[str]:
    rows = report.findings.dicts()
    if not rows:
        return ["Nothing stands out: no finding reaches the share and time from which it matters."]
    lines = [style(f"Worth a look ({len(rows)})", "bold")]
    for row in rows:
        title = f"{row['severity']:<6} {row['title']}"
        lines.append(style(title[:width], "bold" if row["severity"] == "high" else "plain"))
        for words in (row["evidence"], f"try: {row['advice']}"):
            lines += textwrap.wrap(words, max(width, 40), initial_indent=" " * 7,
                                   subsequent_indent=" " * 7)  # fmt: skip
    return lines


def _sections(report: Report) -> list[tuple[str, list[tuple[str, ...]]]]:
    return [
        ("Categories", _layers(report)),
        ("Calls, by time", _calls(report)),
        ("Epochs", _epochs(report)),
        ("Files, by time", _files(report)),
        ("Ranks and workers off the median", _stragglers(report)),
        ("PyTorch operations, by time", _torch(report)),
    ]


def _more(rows: list[tuple[str, ...]], whole: int) -> list[tuple[str, ...]]:
    if whole > TOP:
        rows.append((f"and {whole - TOP:,} more",))
    return rows


def _layers(report: Report) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [
        ("category", "events", "time", "union", "read", "written", "rate", "hidden")
    ]
    for row in report.layers.dicts()[:TOP]:
        io = row["class"] == "io"
        hidden = row["overlap_percent"] if io else None
        rows.append(
            (
                row["cat"] or "(none)",
                f"{row['events']:,}",
                duration(row["total_ns"]),
                duration(row["union_ns"]),
                size(row["read_bytes"]) if io else "",
                size(row["write_bytes"]) if io else "",
                rate(row["bandwidth"]),
                "" if hidden is None else percent(hidden / 100),
            )
        )
    return _more(rows, len(report.layers))


def _calls(report: Report) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [
        ("name", "category", "count", "time", "mean", "p99", "longest", "bytes", "a call")
    ]
    for row in report.calls.dicts()[:TOP]:
        moved = max(row["read_bytes"], row["write_bytes"])
        rows.append(
            (
                row["name"],
                row["cat"],
                f"{row['count']:,}",
                duration(row["total_ns"]),
                duration(row["mean_ns"]),
                duration(row["p99_ns"] or 0),
                duration(row["max_ns"]),
                size(moved) if moved else "",
                size(row["mean_size"]) if row["mean_size"] else "",
            )
        )
    return _more(rows, len(report.calls))


def _epochs(report: Report) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [
        ("epoch", "process", "steps", "time", "compute", "fetch", "comm", "transfer", "checkpoint",
         "evaluation", "rest")
    ]  # fmt: skip
    for row in report.epochs.dicts()[:TOP]:
        parts = ("compute", "fetch", "communication", "transfer", "checkpoint", "evaluation",
                 "unattributed")  # fmt: skip
        rows.append(
            (
                "?" if row["epoch"] is None else str(row["epoch"]),
                str(row["process"]) if row["rank"] is None else f"rank {row['rank']}",
                f"{row['steps']:,}",
                duration(row["dur_ns"]),
                *(percent(row[f"{part}_ns"] / max(row["dur_ns"], 1)) for part in parts),
            )
        )
    return _more(rows, len(report.epochs))


def _files(report: Report) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("file", "time", "calls", "read", "written", "a call", "access")]
    for row in report.files.rows[:TOP]:
        file = dict(zip(report.files.columns, row))
        calls = file["opens"] + file["reads"] + file["writes"] + file["metadata"]
        rows.append(
            (
                file["fname"],
                duration(file["total_ns"]),
                f"{calls:,}",
                size(file["read_bytes"]),
                size(file["write_bytes"]),
                size(file["mean_size"]) if file["mean_size"] else "",
                file["pattern"],
            )
        )
    return _more(rows, len(report.files))


def _stragglers(report: Report) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("kind", "process", "measure", "value", "median", "ratio")]
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


def _torch(report: Report) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("operation", "phase", "count", "time", "mean", "p99")]
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


def _table(
    rows: Sequence[tuple[str, ...]], style: Callable[[str, str], str], width: int
) -> list[str]:
    """Columns side by side: text to the left, numbers to the right; the first gives way."""
    full = [row for row in rows if len(row) > 1]
    widths = [max(len(row[at]) for row in full) for at in range(len(full[0]))]
    over = sum(widths) + 2 * len(widths) - width
    widths[0] = max(min(widths[0], 12), widths[0] - max(over, 0))
    lines = []
    for row in rows:
        cells = []
        for at, cell in enumerate(row):
            clean = _printable(cell)
            if at == 0 and len(row) > 1 and len(clean) > widths[0]:
                clean = "…" + clean[1 - widths[0] :]
            left = at == 0 or not any(other[at][:1].isdigit() for other in full[1:])
            cells.append(f"{clean:<{widths[at]}}" if left else f"{clean:>{widths[at]}}")
        text = "  " + "  ".join(cells).rstrip()
        lines.append(style(text, "dim") if row is rows[0] else text)
    return lines

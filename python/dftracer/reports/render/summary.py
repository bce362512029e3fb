"""The report in a terminal: the job, where the time went, findings, tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dftracer._format import amount, counted, duration, percent, rate, size
from dftracer._layout import Column, name_column, table, wrap
from dftracer._names import shorten
from dftracer.reports.bounds import bound
from dftracer.reports.dataloader_workers import starts, waits
from dftracer.reports.model import Report
from dftracer.reports.render.summary_tables import TOP, sections
from dftracer.reports.whatif import best_change, gain, signed
from dftracer.trace.runs import when_text

Row = dict[str, Any]
MOST_CHAINS = 5
# What making a batch consists of.
WORK = ("reading", "decoding", "collating")
# How a job was timed, unless by its start and end records.
TIMED_BY = {
    "its events": " from its first to its last event",
    "its start record and its last event": " until its last event (its end is unknown)",
    "its first event and its end record": " from its first event (its start is unknown)",
}
SHARES = (
    ("compute_ns", "compute"),
    ("fetch_ns", "waiting for data"),
    ("communication_ns", "communication"),
    ("waited_ns", "waiting for others"),
    ("transfer_ns", "transfers"),
    ("checkpoint_ns", "checkpoints"),
    ("unattributed_ns", "unattributed"),
)


def plain(text: str, style: str) -> str:
    return text


def summarise(
    report: Report, style: Callable[[str, str], str] = plain, width: int = 100
) -> list[str]:
    """Lines of at most `width` columns, decorated by style(text, "bold" or "dim")."""
    lines = []
    for key, text in _head(report):
        lines += wrap(text, width, f"{key:<10}", " " * 10)
    lines += ["", *_findings(report, style, width), *_slow_steps(report, style, width)]
    lines += _whatif(report, style, width)
    for title, columns, rows in sections(report):
        if rows:
            head, *body = table(columns, rows, width - 2)
            lines += ["", style(title, "bold"), style(f"  {head}", "dim")]
            lines += [f"  {line}" for line in body]
    return lines


def _head(report: Report) -> list[tuple[str, str]]:
    facts = report.overview.dicts()[0]
    roles = [row["role"] for row in report.processes]
    plurals = {"main": "main", "worker": "workers", "helper": "helpers"}
    parts = [
        counted(roles.count(role), role, plural)
        for role, plural in plurals.items()
        if role in roles
    ]
    # A trace of another tool may not name its host.
    where = f" on {counted(facts['hosts'], 'host')}" if facts["hosts"] else ""
    if facts["ranks"]:
        where += f", {counted(facts['ranks'], 'rank')}"
    job = (
        f"{duration(facts['job_ns'] or 0)}{TIMED_BY.get(facts['timed_by'] or '', '')}, "
        f"{counted(facts['processes'], 'process', 'processes')} ({', '.join(parts) or 'none'})"
        f"{where}; {counted(facts['events'], 'event')} in {counted(facts['traces'], 'trace')}"
    )
    lines = [*_runs(report), ("job", job)]
    if facts["clock"]:
        lines += [("clock", part) for part in facts["clock"].split("; ")]
    training = _training(report)
    told = bound(report.tables)
    if told is not None:
        lines.append(("bound by", told[1]))
    if facts["bound_by"] and not training:
        lines.append(("time", facts["bound_by"]))
    lines += training
    lines += _input(report)
    if facts["io_ns"] or facts["read_bytes"] != 0 or facts["write_bytes"] != 0:
        lines.append(("I/O", _io(report, facts)))
    lines += _mapped(report)
    lines += _stores(report)
    lines += _network(report)
    lines += [("untraced", part) for part in (facts["not_traced"] or "").split("; ") if part]
    return lines


def _runs(report: Report) -> list[tuple[str, str]]:
    """A note that several runs are added up, and how to select one."""
    runs = report.runs.dicts()
    if len(runs) < 2:
        return []
    guessed = any(run["guessed"] for run in runs)
    guess = " (guessed from their times, because some traces have no run id)" if guessed else ""
    head = (
        f"{len(runs):,} different runs are added up here{guess}; select one with "
        "--run latest or --run N"
    )
    lines = [("runs", head)]
    shown = runs if len(runs) <= TOP else [*runs[: TOP - 2], *runs[-1:]]
    for run in shown:
        command = shorten((run["command"] or "").strip(), 60, keep_start=True)
        facts = (
            f"{run['run']}: {when_text(run['start_ns'])}, {duration(run['dur_ns'] or 0)}, "
            f"{counted(run['processes'], 'process', 'processes')}"
        )
        lines.append(("", f"{facts}: {command}" if command else facts))
    if len(shown) < len(runs):
        lines.insert(-1, ("", f"… and {len(runs) - len(shown):,} more"))
    return lines


def _training(report: Report) -> list[tuple[str, str]]:
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
        if column == "communication_ns":
            value -= sum(report.steps.column("waited_ns"))
        if value:
            parts.append(f"{name} {percent(value / whole)}")
    evaluated = f"; plus {duration(evaluation)} of evaluation" if evaluation else ""
    return [
        (
            "training",
            f"{counted(steps, 'step')}{passes}, "
            f"{counted(trainers, 'process', 'processes')}, "
            f"{duration(whole / max(steps, 1))} per step",
        ),
        ("", f"{', '.join(parts)}{evaluated}"),
    ]


def _input(report: Report) -> list[tuple[str, str]]:
    """What making batches took, and how much of it training waited for."""
    sums: dict[str, list[int]] = {}
    for row in report.input_overlap:
        one = sums.setdefault(row["activity"], [0, 0])
        one[0] += row["total_ns"]
        one[1] += row["exposed_ns"]
    parts = [
        f"{duration(sums[name][0])} of {name}, {percent(1 - sums[name][1] / sums[name][0])} hidden"
        for name in WORK
        if name in sums
    ]
    if not parts:
        return []
    waited = sum(exposed for _, exposed in sums.values())
    return [("batches", f"{'; '.join(parts)}; training waited {duration(waited)} in all")]


def _slow_steps(report: Report, style: Callable[[str, str], str], width: int) -> list[str]:
    """The latest steps, in words."""
    table = report.slow_steps
    if not table.rows:
        return []
    chain = table.columns.index("chain")
    lines = ["", style(f"Slow steps ({len(table):,})", "bold")]
    for row in table.rows[:MOST_CHAINS]:
        lines += wrap(row[chain], width, "  ", "    ")
    if len(table) > MOST_CHAINS:
        lines.append(f"  … and {len(table) - MOST_CHAINS:,} more")
    return lines


WHATIF = (
    name_column("change", keep_start=True),
    Column("process", rank=4),
    Column("step"),
    Column("95 % interval", rank=2),
    Column("against measured"),
    Column("job", rank=1),
    Column("job, 95 % interval", rank=3),
)


def whatif_cells(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """Predictions; processes are named if there are several."""
    several = len({row["process"] for row in rows}) > 1

    def interval(row: Row, what: str) -> str:
        low, high = row.get(f"{what}_low_ns"), row.get(f"{what}_high_ns")
        return "" if low is None or high is None else f"{duration(low)} to {duration(high)}"

    def cells(row: Row) -> tuple[str, ...]:
        rank = f"rank {row['rank']}" if row["rank"] is not None else str(row["process"])
        change = row.get("change_percent")
        return (
            row["change"],
            rank if several else "",
            duration(row["step_ns"]),
            interval(row, "step"),
            "" if change is None else signed(change),
            duration(row["job_ns"]),
            interval(row, "job"),
        )

    return [cells(row) for row in rows]


def whatif_notes(rows: Sequence[Row]) -> list[str]:
    """What predictions assume, or why there are none, each once."""
    found: dict[str, list[str]] = {}
    for row in rows:
        if row.get("note"):
            changes = found.setdefault(row["note"], [])
            changes += [row["change"]] if row["change"] not in changes else []
    every = len({row["change"] for row in rows}) - 1
    return [
        f"{note[0].upper()}{note[1:]}."
        if len(changes) == every or len(rows) == 1
        else f"{', '.join(changes)}: {note}."
        for note, changes in found.items()
    ]


def _whatif(report: Report, style: Callable[[str, str], str], width: int) -> list[str]:
    """The change that would gain most, in a line; `dftracer whatif` shows all."""
    best = best_change(report.whatif.dicts())
    if best is None:
        return []
    words = (
        f"{gain([best], best['change'])} (predicted; 95 % interval {duration(best['step_low_ns'])} "
        f"to {duration(best['step_high_ns'])}); `dftracer whatif` shows other changes"
    )
    return ["", style("What if", "bold"), *wrap(words, width, "  ", "    ")]


def _io(report: Report, facts: Row) -> str:
    calls = [row for row in report.calls if row["class"] == "io"]
    text = (
        f"read {amount(facts['read_bytes'], facts['read_unknown'])}, "
        f"wrote {amount(facts['write_bytes'], facts['write_unknown'])} in "
        f"{counted(sum(row['count'] for row in calls), 'call')}"
    )
    if facts["bandwidth"]:
        text += f", {rate(facts['bandwidth'])} over {duration(facts['any_ns'])} with an open call"
    elif facts["any_ns"]:
        text += f", {duration(facts['any_ns'])} with an open call"
    computing = [row for row in report.processes if row["compute_ns"] and row["io_ns"]]
    io = sum(row["io_ns"] for row in computing)
    if io:
        hidden = sum(row["hidden_io_ns"] for row in computing)
        text += (
            f"; {duration(io)} in processes that compute, {percent(hidden / io)} of it "
            "hidden by compute"
        )
    return text


def _mapped(report: Report) -> list[tuple[str, str]]:
    """Files that were mapped into memory, and what was touched of them; no line without."""
    rows = report.mappings.dicts()
    if not rows:
        return []
    text = f"{size(sum(row['mapped_bytes'] for row in rows))} of {counted(len(rows), 'file')}"
    told = [row["touched_bytes"] for row in rows if row["touched_bytes"] is not None]
    if told:
        text += f", touched {size(sum(told))}"
    faults = sum(row["faults"] for row in rows)
    if faults:
        text += f", {counted(faults, 'page fault')}"
    major = sum(row["major_faults"] for row in rows)
    if major:
        waited = duration(sum(row["major_ns"] for row in rows))
        text += f", {major:,} of them waited {waited} for storage"
    return [("mapped", text)]


UPLOADS = ("PutObject", "UploadPart")


def _stores(report: Report) -> list[tuple[str, str]]:
    """Requests to object stores, and what caches above them fetched; no line if there are none."""
    rows = report.stores.dicts()
    caches = report.store_caches.dicts()
    if not rows and not caches:
        return []

    def total(wanted: bool) -> int:
        return sum(row["bytes"] or 0 for row in rows if (row["operation"] in UPLOADS) == wanted)

    buckets = len({(row["store"], row["bucket"]) for row in rows})
    parts = [
        f"{counted(sum(row['requests'] for row in rows), 'request')} to "
        f"{counted(buckets, 'bucket or host', 'buckets and hosts')}, received "
        f"{size(total(False))}, sent {size(total(True))}, "
        f"{duration(sum(row['total_ns'] for row in rows))} in all"
    ]
    for column, one, many in (("errors", "error", "errors"), ("retries", "retry", "retries")):
        number = sum(row[column] for row in rows)
        if number:
            parts.append(counted(number, one, many))
    read = sum(row["read_bytes"] for row in caches)
    if read:
        fetched = sum(row["fetched_bytes"] for row in caches)
        parts.append(
            f"caches fetched {size(fetched)} for the {size(read)} that were read "
            f"({fetched / read:.2f} ×)"
        )
    return [("stores", "; ".join(parts))]


def _network(report: Report) -> list[tuple[str, str]]:
    """What went through sockets with peers on the network, and on this host; no line without."""
    lines = []
    rows = report.connections.dicts()
    for title, reaches, where in (
        ("network", ("network",), ""),
        ("sockets", ("loopback", "local"), " on this host"),
    ):
        here = [row for row in rows if row["reach"] in reaches]
        if not here:
            continue

        def total(column: str, rows: list[dict[str, Any]] = here) -> int:
            return sum(row[column] for row in rows)

        text = (
            f"{counted(total('connections'), 'connection')} with {counted(len(here), 'peer')}"
            f"{where}, received {size(total('received_bytes'))} in "
            f"{duration(total('receive_ns'))}, sent {size(total('sent_bytes'))} in "
            f"{duration(total('send_ns'))}"
        )
        if total("in_progress"):
            text += f"; {total('in_progress'):,} connected in the background"
        if total("errors"):
            text += f"; {counted(total('errors'), 'call')} failed"
        lines.append((title, text))
    return lines


def _findings(report: Report, style: Callable[[str, str], str], width: int) -> list[str]:
    rows = report.findings.dicts()
    if not rows:
        nothing = "No findings: nothing takes enough time to matter."
        return wrap(nothing, width)
    lines = [style(f"Findings ({len(rows)})", "bold")]
    for row in rows:
        grave = "bold" if row["severity"] == "high" else "plain"
        for line in wrap(row["title"], width, f"{row['severity']:<7}", " " * 7):
            lines.append(style(line, grave))
        sure = " (estimated)" if row["sure"] == "estimated" else ""
        for words in (f"{row['evidence']}{sure}", f"try: {row['advice']}"):
            lines += wrap(words, width, " " * 7, " " * 7)
    return lines

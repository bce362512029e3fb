"""The report as one HTML file: no network, no second file, under 10 MB whatever the trace."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib.resources import files as package_files
from typing import TYPE_CHECKING, Any

from dftracer import _cleanup
from dftracer._files import create, file_mode
from dftracer._format import amount, count, counted, duration, percent, rate
from dftracer.reports.bounds import bound
from dftracer.reports.model import Report, Table
from dftracer.reports.programs import program_name
from dftracer.reports.render import column_format
from dftracer.reports.render.figures import HEAT, NARROW_LABEL, ROLES, Figure, figures, labels
from dftracer.reports.render.markup import (
    attribute,
    breakable,
    escaped,
    prose,
    share_bar,
    table_html,
)
from dftracer.reports.render.plots.processes import neither
from dftracer.reports.render.plots.slow_steps import part_role
from dftracer.reports.render.plots.training import EPOCH_COLUMNS, EPOCH_PARTS
from dftracer.reports.render.script import json_text, plotly_script
from dftracer.reports.render.summary import TIMED_BY
from dftracer.reports.schema import LIFE_PARTS, parts_of
from dftracer.reports.tree import tree_table
from dftracer.trace.runs import when_text

if TYPE_CHECKING:
    from dftracer.reports.compare import Comparison

LIMIT = 9_500_000  # bytes

# Colours of the page itself: on a light and on a dark background.
COLOURS = {
    "ground": ("#ffffff", "#11161c"),
    "raised": ("#f5f7f9", "#1a212a"),
    "ink": ("#18202a", "#e8edf2"),
    "soft": ("#56616d", "#9fabb8"),
    "line": ("#e4e8ed", "#28313b"),
    "edge": ("#c3cad2", "#44505d"),
    "shade": ("#00000026", "#000000a0"),
    "accent": ("#005f99", "#6bb7ee"),
    "high": ("#b93800", "#ff8f5f"),
    "medium": ("#8a6400", "#e6bb4d"),
    "low": ("#4d5b69", "#a8b4c0"),
    "good": ("#00734f", "#39c79a"),
}

# Sections: key, title, figures, and tables without a figure.
SECTIONS: tuple[tuple[str, str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("training", "Training", ("epochs", "steps"), ("breakdown", "worker_starts")),
    ("programs-section", "Programs", (), ("programs", "process_tree", "pipes")),
    ("slow-steps", "Slow steps", ("slow_steps", "input_overlap"), ()),
    ("what-if", "What if", ("whatif",), ()),
    ("overlap-section", "Overlap", ("overlap",), ()),
    ("time", "Over time", ("timeline", "heat"), ()),
    ("calls-section", "Calls", ("calls", "latencies", "sizes"), ("layers",)),
    ("files-section", "Files", ("files",), ("mappings", "directories", "costs")),
    ("lines-section", "Lines of code", (), ("lines", "functions")),
    ("stores-section", "Object stores", (), ("stores", "store_caches")),
    ("network-section", "Network", (), ("connections",)),
    (
        "processes-section",
        "Ranks",
        ("stragglers",),
        ("arrivals", "collectives", "mpi_ranks", "mpi_peers", "hosts", "runs"),
    ),
    ("torch", "PyTorch", ("torch_ops",), ()),
)

# A page about a program that does not train leads with what such programs do.
WITHOUT_TRAINING = ("programs-section", "files-section", "calls-section")
RENAMED = {"overlap-section": "Processes", "processes-section": "Hosts"}

CAPTIONS = {
    "programs": "Programs",
    "process_tree": "Processes",
    "pipes": "Pipes and terminals",
    "connections": "Peers of sockets",
    "layers": "Categories",
    "mappings": "Mapped files",
    "directories": "Directories",
    "hosts": "Hosts",
    "costs": "Costliest files, directories and lines, by kind of call",
    "lines": "Lines that made I/O calls",
    "functions": "Functions that made I/O calls",
    "stores": "Requests",
    "store_caches": "Files with a cache",
    "arrivals": "Ranks at collectives",
    "collectives": "Collectives",
    "mpi_ranks": "MPI, by rank",
    "mpi_peers": "Messages of MPI, from rank to rank",
    "runs": "Runs",
    "worker_starts": "Starts of DataLoader workers, with their settings",
    "breakdown": "Time of training processes, from start to end",
}


@dataclass
class _Part:
    key: str
    name: str  # in the list of sections
    html: str


def page(report: Report, comparison: Comparison | None = None, *, title: str = "") -> str:
    """The HTML text."""
    library = plotly_script()
    found = comparison.figures() if comparison is not None else {}
    found.update(figures(report))
    drawn = json_text({name: _spec(figure) for name, figure in found.items()})
    for shrink in (1, 4, 16, 64):
        made = _fill(report, comparison, found, title, shrink, library, drawn)
        if len(made.encode()) < LIMIT:
            break
    return made


def write_page(
    path: str, report: Report, comparison: Comparison | None = None, *, mode: int | None = None
) -> int:
    """Writes the file and returns its size. A new file gets this mode, or file_mode()."""
    made = page(report, comparison).encode()
    with _cleanup.replacing(path) as part, create(part, "wb", file_mode(mode)) as file:
        file.write(made)
    return len(made)


def _fill(
    report: Report,
    comparison: Comparison | None,
    found: dict[str, Figure],
    title: str,
    shrink: int,
    library: str,
    drawn: str,
) -> str:
    parts = []
    if comparison is not None:
        from dftracer.reports.render.compare_page import section

        parts.append(_Part("compared", "Compared", section(comparison, found, _figure, shrink)))
    parts += [
        _Part("findings", "Findings", _findings(report)),
        _Part("overview", "Overview", _overview(report)),
        *_sections(report, found, shrink),
        _Part("about", "About", _about(report)),
    ]
    program, trace = title or program_of(report), trace_of(report)
    links = "".join(f'<a href="#{part.key}">{escaped(part.name)}</a>' for part in parts)
    body = "\n".join(
        f'<section id="{part.key}" aria-labelledby="{part.key}-title">'
        f'<h2 id="{part.key}-title">{escaped(part.name)}</h2>\n{part.html}</section>'
        for part in parts
    )
    values = {
        "title": escaped(f"{program} · {trace}" if trace and not title else program),
        "program": escaped(program),
        "lede": prose(_lede(report, trace)),
        "links": links,
        "body": body,
        "colours": colours_css(),
        "style": _template("page.css"),
        "script": _template("page.js"),
        "figures": drawn,
        "plotly": library,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: values[match[1]], _template("page.html"))


def _template(name: str) -> str:
    return (
        package_files("dftracer.reports.render")
        .joinpath("template")
        .joinpath(name)
        .read_text("utf-8")
    )


def colours_css() -> str:
    """Light for print and by default, dark if the system or the user prefers it."""
    every: dict[str, tuple[str, str]] = {
        **COLOURS,
        **{f"c-{role}": pair for role, pair in ROLES.items()},
        **{
            f"heat-{kind}-{at}": pair for kind, ramp in HEAT.items() for at, pair in enumerate(ramp)
        },
    }
    light, dark = (
        ";".join(f"--{name}:{pair[ground]}" for name, pair in every.items()) for ground in (0, 1)
    )
    return (
        f":root{{{light};color-scheme:light}}\n"
        "@media screen and (prefers-color-scheme:dark)"
        f"{{:root:not([data-theme=light]){{{dark};color-scheme:dark}}}}\n"
        f"@media screen{{:root[data-theme=dark]{{{dark};color-scheme:dark}}}}"
    )


def _spec(figure: Figure) -> dict[str, Any]:
    views = []
    for at, view in enumerate(figure.views):
        views.append({"data": view.data, "layout": figure.layout(at)})
        if view.rows:
            # In a narrow window, long names would leave no room for the bars.
            views[-1]["narrow"] = labels(view.rows, NARROW_LABEL)
    return {"views": views}


def program_of(report: Report) -> str:
    """The program, without its arguments: a title appears in tabs, histories and names of printed
    files, and a command line may contain a secret."""
    rows = report.table("processes").dicts()
    trainers = set(report.table("steps").column("process"))
    # The process that trains says more than the shell that started it.
    rows.sort(
        key=lambda row: (
            row["process"] not in trainers,
            row["role"] != "main",
            row["first_ns"] or 0,
        )
    )
    for row in rows:
        name = program_name(row["command"] or "")
        if name:
            return column_format.clean(name, LONGEST_PROGRAM)
    return "dftracer report"


LONGEST_PROGRAM = 60
MOST_CHAINS = 10


def trace_of(report: Report) -> str:
    """The name of the trace: its file, or the directory of its files."""
    paths = report.traces
    if not paths:
        return ""
    name = os.path.basename(paths[0])
    if len(paths) > 1:
        name = os.path.basename(
            os.path.commonpath([os.path.dirname(os.path.abspath(path)) for path in paths])
        )
    for ending in (".gz", ".pfw", ".json", ".trace"):
        name = name[: -len(ending)] if name.endswith(ending) else name
    return column_format.clean(name, LONGEST_PROGRAM)


def _first(table: Table) -> dict[str, Any]:
    rows = table.dicts()
    return rows[0] if rows else dict.fromkeys(table.columns)


def _lede(report: Report, trace: str) -> str:
    facts = _first(report.table("overview"))
    if not facts["events"]:
        return "The trace contains no events."
    when = datetime.fromtimestamp((facts["first_ns"] or 0) / 1e9, tz=timezone.utc)
    words = [
        *([trace] if trace else []),
        f"{when:%Y-%m-%d %H:%M:%S} UTC",
        duration(facts["job_ns"] or 0),
        counted(facts["processes"] or 0, "process", "processes"),
        counted(facts["events"], "event"),
    ]
    return " · ".join(words)


def _findings(report: Report) -> str:
    rows = report.table("findings").dicts()
    if not rows:
        events = _first(report.table("overview"))["events"]
        return (
            '<p class="none">No findings: nothing in this trace takes enough time to matter.</p>'
            if events
            else '<p class="none">No findings: the trace contains no events.</p>'
        )
    cards = []
    for row in rows:
        severity = row["severity"] if row["severity"] in ("high", "medium", "low") else "low"
        share = row["share"]
        facts = []
        if row["concerns_ns"] is not None:
            facts.append(f"<b>{escaped(duration(row['concerns_ns']))}</b>")
        if share is not None:
            base = row["base"] or "of the time"
            facts.append(f"<span>{escaped(percent(share))} {escaped(base)}</span>")
        cards.append(
            f'<li class="finding {severity}"><div class="about"><h3>{prose(row["title"])}</h3>'
            f'<p class="evidence">{prose(_sentence(row["evidence"]))}</p>{_files(row["files"])}'
            f'<p><span class="try">Try</span> {prose(_sentence(row["advice"]))}</p></div>'
            f'<div class="weight"><span class="severity">{severity}</span>'
            f'<span class="concerns">{" ".join(facts)}</span>'
            f'<span class="rule">{escaped(row["sure"] or "measured")}</span>'
            f'<span class="rule">rule: {escaped(row["rule"])}</span></div></li>'
        )
    return f'<ol class="findings">{"".join(cards)}</ol>'


def _files(names: str | None) -> str:
    """The files that a finding concerns most, if the list says more than its evidence."""
    every = (names or "").split("\n")
    if len(every) < 2:
        return ""
    items = "".join(f"<li><bdi>{breakable(escaped(name))}</bdi></li>" for name in every)
    return f'<ul class="traces">{items}</ul>'


def _sentence(words: object) -> str:
    text = str(words or "")
    return f"{text[:1].upper()}{text[1:]}"


def _overview(report: Report) -> str:
    facts = _first(report.table("overview"))
    io, hidden = facts["io_ns"] or 0, facts["hidden_io_ns"] or 0

    def some(number: int | None, noun: str, plural: str = "") -> str:
        return counted(number, noun, plural) if number else ""

    def over_the_job(number: int | None) -> str:
        seconds = (facts["job_ns"] or 0) / 1e9
        return f"{rate(number / seconds)} over the job" if number and seconds else ""

    lost = some(facts["lost"], "event") + " lost" if facts["lost"] else "none lost"
    recovered = (
        f", {some(facts['recovered'], 'process', 'processes')} recovered"
        if facts["recovered"]
        else ""
    )
    places = [some(facts["ranks"], "rank"), some(facts["hosts"], "host")]
    tiles = [
        ("Job time", duration(facts["job_ns"] or 0), some(facts["traces"], "trace file")),
        (
            "Processes",
            count(facts["processes"] or 0),
            ", ".join(filter(None, [*places, some(facts["threads"], "thread")])),
        ),
        ("Events", count(facts["events"] or 0), lost + recovered),
        (
            "Read",
            amount(facts["read_bytes"], facts["read_unknown"] or 0),
            over_the_job(facts["read_bytes"]),
        ),
        (
            "Written",
            amount(facts["write_bytes"], facts["write_unknown"] or 0),
            over_the_job(facts["write_bytes"]),
        ),
        (
            "I/O time",
            duration(io),
            f"{percent(hidden / io)} hidden by compute" if io else "",
        ),
    ]
    if facts["compute_ns"] or not facts["events"]:
        unhidden, compute = facts["unhidden_io_ns"] or 0, facts["compute_ns"] or 0
        tiles += [
            ("I/O not hidden", duration(unhidden), "summed over processes"),
            ("Compute", duration(compute), "summed over processes"),
        ]
    else:
        # Without compute regions nothing can hide I/O; what there is says more.
        cpu = facts["cpu_ns"]
        waited = sum(facts[f"{kind}_wait_ns"] or 0 for kind in ("child", "pipe", "net"))
        tiles[-1] = ("I/O time", duration(io), "summed over processes")
        tiles += [
            ("CPU time", "unknown" if cpu is None else duration(cpu), "summed over processes"),
            ("Waiting", duration(waited), "for children, pipes and sockets"),
        ]
    shown = "".join(
        f"<div><dt>{escaped(name)}</dt><dd><b>{escaped(value)}</b>"
        f"<span>{escaped(more)}</span></dd></div>"
        for name, value, more in tiles
    )
    return f'{_whole(report)}<dl class="tiles">{shown}</dl>{_bars(report)}{_gaps(report)}'


def _whole(report: Report) -> str:
    """What to know first: several runs, clocks that differ, where the time went."""
    facts = _first(report.table("overview"))
    runs = report.table("runs").dicts()
    lines = []
    if len(runs) > 1:
        each = "; ".join(
            f"{run['run']}: {when_text(run['start_ns'])}, {duration(run['dur_ns'] or 0)}, "
            f"{counted(run['processes'], 'process', 'processes')}"
            for run in runs[:20]
        )
        more = f"; … and {len(runs) - 20:,} more" if len(runs) > 20 else ""
        lines.append(
            f"These traces are from {len(runs):,} different runs, which are added up here. "
            f"dftracer report --run N reports on one of them. {each}{more}."
        )
    if facts["clock"]:
        lines.append(f"{_sentence(facts['clock'])}.")
    told = bound(report.tables)
    if told is not None:
        lines.append(f"Bound by {told[1]}.")
    if facts["bound_by"] and not len(report.table("steps")):
        lines.append(f"Where the time went: {facts['bound_by']}.")
    known = TIMED_BY.get(facts["timed_by"] or "")
    if known:
        lines.append(f"The time of the job is counted{known}.")
    return "".join(f'<p class="fact">{escaped(line)}</p>' for line in lines)


def _bars(report: Report) -> str:
    rows = report.table("processes").dicts()

    def total(get: Callable[[dict[str, Any]], int]) -> int:
        return sum(get(row) for row in rows)

    computed = total(lambda row: row["compute_ns"] or 0)
    waits = [
        ("I/O", "unhidden", total(lambda row: row["io_ns"] or 0)),
        ("waiting for locks", "checkpoint", total(lambda row: row["lock_ns"] or 0)),
        ("waiting for children, pipes, sockets", "fetch", total(lambda row: row["wait_ns"] or 0)),
        ("asleep or in untraced waits", "hidden", total(lambda row: row["idle_ns"] or 0)),
    ]
    rest = total(lambda row: row["life_ns"] or 0) - sum(time for _, _, time in waits)
    lives = share_bar(
        "lives",
        "Time of all processes",
        "From start to end, summed over processes.",
        [*waits, ("the rest: mostly on processors", "compute", max(rest, 0))]
        if not computed
        else [
            ("I/O, not hidden", "unhidden", total(lambda row: row["unhidden_io_ns"] or 0)),
            ("I/O hidden by compute", "hidden", total(lambda row: row["hidden_io_ns"] or 0)),
            (
                "compute alone",
                "compute",
                total(lambda row: (row["compute_ns"] or 0) - (row["hidden_io_ns"] or 0)),
            ),
            ("neither", "other", total(neither)),
        ],
    )
    spent: dict[str, int] = {}
    for row in report.table("breakdown"):
        spent[row["part"]] = spent.get(row["part"], 0) + row["time_ns"]
    training = share_bar(
        "training-lives",
        "Time of training processes",
        "From start to end, summed over them.",
        [(part, part_role(part), spent[part]) for part in LIFE_PARTS if part in spent],
    )
    epochs = report.table("epochs")
    sums = {c: sum(value or 0 for value in epochs.column(c)) for c in EPOCH_COLUMNS.values()}
    steps = share_bar(
        "split",
        "Time of all epochs",
        "Summed over training processes.",
        [(EPOCH_PARTS[part], part, int(ns)) for part, ns in parts_of(sums, EPOCH_COLUMNS).items()],
    )
    shown = f"{training}{steps}{lives}"
    return f'<div class="splits">{shown}</div>' if shown else ""


def _gaps(report: Report) -> str:
    """What the numbers above do not include."""
    text = str(_first(report.table("overview"))["not_traced"] or "")
    lines = [f"Not traced: {part}." for part in text.split("; ") if part]
    shown = "".join(f"<li>{escaped(line)}</li>" for line in lines)
    return f'<ul class="gaps">{shown}</ul>' if lines else ""


def _sections(report: Report, found: dict[str, Figure], shrink: int) -> list[_Part]:
    parts = []
    trains = bool(len(report.table("steps")))
    for key, name, drawn, tables in SECTIONS if trains else _without_training():
        found_tables = [_named_table(report, each) for each in tables]
        pieces = [_table(table, shrink) for table in found_tables if len(table)]
        plots = [_figure(found[each], shrink) for each in drawn if each in found]
        # The short table of categories comes before its plots; the others after.
        pieces = pieces + plots if key == "calls-section" else plots + pieces
        if key == "files-section":
            pieces.insert(1 if plots else 0, _patterns(report))
        if key == "slow-steps":
            pieces.insert(0, _chains(report))
        if any(pieces):
            parts.append(_Part(key, name, "\n".join(pieces)))
    return parts


def _without_training() -> list[tuple[str, str, tuple[str, ...], tuple[str, ...]]]:
    """Files, processes and programs first; nothing computes, so that nothing overlaps."""
    by_key = {
        key: (key, RENAMED.get(key, name), drawn, tables) for key, name, drawn, tables in SECTIONS
    }
    keys = (*WITHOUT_TRAINING, *(key for key in by_key if key not in WITHOUT_TRAINING))
    return [by_key[key] for key in keys]


def _named_table(report: Report, name: str) -> Table:
    if name != "process_tree":
        return report.table(name)
    return tree_table(report.table("processes").dicts())


def _chains(report: Report) -> str:
    """The latest steps, in words."""
    table = report.table("slow_steps")
    if not len(table):
        return ""
    rows = [dict(zip(table.columns, row)) for row in table.rows[:MOST_CHAINS]]
    items = "".join(
        f'<li><span class="cause">{escaped(row["cause"])}</span> '
        f"{prose(_sentence(row['chain']))}.</li>"
        for row in rows
    )
    more = len(table) - len(rows)
    rest = f'<p class="note">{counted(more, "more step")} in the table below.</p>' if more else ""
    return f'<ol class="chains">{items}</ol>{rest}'


def _patterns(report: Report) -> str:
    """How all files were accessed."""
    table = report.table("files")
    counts = {key: sum(v or 0 for v in table.column(key)) for key in PATTERNS}
    whole = sum(counts.values())
    if not whole:
        return ""
    shares = ", ".join(f"{percent(value / whole)} {key}" for key, value in counts.items() if value)
    return f'<p class="fact">{count(whole)} transfers after the first: {escaped(shares)}.</p>'


PATTERNS = ("sequential", "strided", "random")


def _table(table: Table, shrink: int) -> str:
    name = CAPTIONS[table.name]
    return (
        f'<div class="block"><h3>{escaped(name)}</h3>'
        f"{table_html(table, f'table-{table.name}', table.schema.meaning, shrink=shrink)}</div>"
    )


def _figure(figure: Figure, shrink: int) -> str:
    key = figure.name
    views = ""
    if len(figure.views) > 1:
        buttons = "".join(
            f'<button type="button" data-view="{at}" '
            f'aria-pressed="{"true" if at == 0 else "false"}">{escaped(view.label)}</button>'
            for at, view in enumerate(figure.views)
        )
        views = f'<div class="views" role="group" aria-label="View">{buttons}</div>'
    notes = f'<p class="note">{escaped("; ".join(figure.notes))}</p>' if figure.notes else ""
    spoken = attribute(f"{figure.title}. {figure.meaning} The numbers are in the table below.")
    table = table_html(
        figure.table,
        f"data-{key}",
        figure.table.schema.meaning,
        origin=figure.origin,
        shrink=shrink,
    )
    rows = counted(len(figure.table), "row")
    return f"""<figure class="plot" id="{key}"><figcaption><div><h3>{escaped(figure.title)}</h3>
<p>{escaped(figure.meaning)}</p></div>{views}</figcaption>
<div class="draw" data-figure="{key}" role="img" aria-label="{spoken}"
 style="height:{figure.height}px"></div>{notes}
<details class="data"><summary>Data <span>{rows}</span></summary>
{table}</details></figure>"""


def _about(report: Report) -> str:
    from dftracer import __version__

    shown = report.traces[:50]
    traces = "".join(f"<li><bdi>{escaped(path)}</bdi></li>" for path in _cleaned(shown))
    more = len(report.traces) - len(shown)
    rest = f"<li>… and {counted(more, 'more file')}</li>" if more > 0 else ""
    return f"""<p>Made by <code>dftracer report</code> {escaped(__version__)}. This file is
self-contained: it needs no network and no other file. Times are wall-clock time; sizes are in
powers of ten (1 MB is 1,000,000 bytes), except the bounds of size classes, which are powers of two.
Names longer than {column_format.LONGEST_NAME} characters are shortened in the middle.
<code>--csv</code>, <code>--json</code> and <code>--parquet</code> write complete tables.</p>
<details><summary>{counted(len(report.traces), "trace file")}</summary>
<ul class="traces">{traces}{rest}</ul></details>"""


def _cleaned(paths: Sequence[str]) -> list[str]:
    return [column_format.clean(path) for path in paths]

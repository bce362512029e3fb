"""What if: step and job times with other settings of the DataLoader, predicted from a report.

    from dftracer.reports import whatif
    for row in whatif.predict(report, [whatif.Change(workers=8, prefetch=4)]):
        print(row["change"], row["step_ns"])

The model simulates the loader with the times that were recorded; docs/howto/whatif.md explains it,
and how far it was from runs with these settings.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dftracer._format import duration, percent
from dftracer.reports.model import Report, Table
from dftracer.reports.schema import SCHEMAS
from dftracer.reports.whatif.changes import Change, fastest, standard
from dftracer.reports.whatif.predict import MOST_OFF, Model
from dftracer.reports.whatif.recorded import LEAST_STEPS, Recorded, Unknown, recorded

__all__ = [
    "FASTEST",
    "MEASURED",
    "UNCHANGED",
    "Change",
    "Unknown",
    "best_change",
    "find",
    "gain",
    "predict",
]

Row = dict[str, Any]

MEASURED = "measured"
UNCHANGED = str(Change())
# In place of a rate: that of the fastest tenth of the reads.
FASTEST = -1.0
# Percent of the time of steps from which a predicted gain is worth mentioning.
LEAST_GAIN = 5.0
SAME = 2.0  # and by which two do not differ
SETTINGS = ("num_workers", "prefetch_factor", "persistent_workers")


def predict(
    report: Report | Mapping[str, Table],
    changes: Sequence[Change] | None = None,
    *,
    cores: int | None = None,
) -> list[Row]:
    """Rows of the table `whatif`: per training process the measured run, the predicted run without
    a change, and one row per change (default: the standard ones). Raises Unknown.

    cores: that the processes may use (default: as recorded).
    """
    tables = report.tables if isinstance(report, Report) else report
    by_process: dict[int, list[Recorded]] = {}
    for found in recorded(dict(tables)):
        by_process.setdefault(found.process, []).append(found)
    job = tables["overview"].dicts()[0]["job_ns"] or 0
    names = [column.name for column in SCHEMAS["whatif"].columns]
    rows = []
    for loaders in by_process.values():
        for row in _process(loaders, job, changes, cores):
            rows.append({name: row.get(name) for name in names})
    return rows


def find(tables: Mapping[str, Table]) -> list[tuple[Any, ...]]:
    """The table of a report; empty if nothing can be predicted."""
    try:
        return [tuple(row.values()) for row in predict(tables)]
    except Unknown:
        return []


def gain(rows: Sequence[Row], change: str, process: int | None = None) -> str:
    """What a change would gain, in words, for findings: "num_workers=8: steps 31 ms instead of
    58 ms, -46 %". Empty if it is not among the rows, or nothing is predicted.

    rows: of the table. change: its text there. process: the one that it is about (default: any).
    """
    for row in rows:
        if row["change"] == change and row["step_ns"] is not None and change != MEASURED:
            if process is not None and row["process"] != process:
                continue
            steps = f"steps {duration(row['step_ns'])} instead of {duration(row['measured_ns'])}"
            return f"{change}: {steps}, {signed(row['change_percent'])}"
    return ""


def best_change(rows: Sequence[Row]) -> Row | None:
    """The least of the changes that gain about the most; one of the settings, if any gains."""
    gaining = [row for row in rows if (row["change_percent"] or 0) <= -LEAST_GAIN]
    settings = [row for row in gaining if row["change"].split("=")[0] in SETTINGS]
    chosen = settings or gaining
    most = min((row["change_percent"] for row in chosen), default=0.0)
    return next((row for row in chosen if row["change_percent"] <= most + SAME), None)


def signed(change: float) -> str:
    return f"+{percent(change / 100)}" if change > 0 else percent(change / 100)


def _process(
    loaders: Sequence[Recorded], job: int, changes: Sequence[Change] | None, cores: int | None
) -> list[Row]:
    first = loaders[0]
    measured = first.steps_ns / first.steps
    about: Row = {"process": first.process, "rank": first.rank, "measured_ns": round(measured)}
    rows = [{**about, "change": MEASURED, "step_ns": round(measured), "job_ns": job}]
    if first.steps < LEAST_STEPS:
        note = f"{first.steps} steps are too few to predict others from"
        return [{**rows[0], "note": note}]
    models = [Model(found, cores) for found in loaders]
    base = _row(about, models, Change(), job)
    rows.append(base)
    off = base["step_ns"] / measured - 1 if measured else 0.0
    if abs(off) > MOST_OFF:
        base["note"] = (
            f"the prediction of the recorded run itself is off by {signed(100 * off)}: "
            "changes are not predicted"
        )
        return rows
    longest = max(loaders, key=lambda found: sum(sum(one.waits) for one in found.passes))
    if changes is None:
        changes = standard(longest)
    for change in changes:
        rows.append(_row(about, models, _settled(change, longest), job))
    return rows


def _settled(change: Change, found: Recorded) -> Change:
    """With the rate that it asks for."""
    if change.disk != FASTEST:
        return change
    disk = fastest(found.passes)
    if disk is None:
        raise Unknown("no batch reads enough to tell the rate of the fastest reads")
    return replace(change, disk=disk, each=True)


def _row(about: Row, models: Sequence[Model], change: Change, job: int) -> Row:
    """All loaders of a process together."""
    steps_ns, steps = models[0].found.steps_ns, models[0].found.steps
    found = [model.predict(change) for model in models]
    more = sum(one.steps_ns - steps_ns for one in found)
    between = sum(one.between_ns for one in found)
    half = math.sqrt(sum(one.half_ns**2 for one in found))
    step = max((steps_ns + more) / steps, 0.0)
    whole = max(job + more + between, 0.0)
    notes = dict.fromkeys(note for one in found for note in one.notes)
    if len(models) == 1 and models[0].found.rank is not None and models[0].found.sharing > 1:
        notes.setdefault("other ranks gain as much", None)
    return {
        **about,
        "change": str(change),
        "step_ns": round(step),
        "step_low_ns": round(max(step - half / steps, 0.0)),
        "step_high_ns": round(step + half / steps),
        "change_percent": 100 * (step * steps / steps_ns - 1) if steps_ns else 0.0,
        "job_ns": round(whole),
        "job_low_ns": round(max(whole - half, 0.0)),
        "job_high_ns": round(whole + half),
        "note": f"assumes that {'; that '.join(notes)}" if notes else None,
    }

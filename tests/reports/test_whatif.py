"""Predictions from traces whose every microsecond is known, against traces with the change."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from support.report_tables import empty
from support.simulated_loader import Item, Loader
from support.synthetic_program import training

from dftracer import reports
from dftracer.reports import Report, whatif
from dftracer.reports.whatif import MEASURED, UNCHANGED, Change, Unknown
from dftracer.reports.whatif.predict import LIMIT, Model
from dftracer.reports.whatif.recorded import Pass, recorded

US = 1000
MS = 1000 * US


def some_batches(count: int = 80, seed: int = 3) -> list[list[Item]]:
    chance = random.Random(seed)
    return [
        [Item(read=chance.randint(50, 900), decode=chance.randint(100, 2_000)) for _ in range(4)]
        for _ in range(count)
    ]


def load(directory: Path, **settings: Any) -> Report:
    directory.mkdir(exist_ok=True)
    Loader(**settings).run().write(directory)
    return reports.load(directory)


def run_of(**settings: Any) -> tuple[float, float]:
    """The mean step and the job of a run, in nanoseconds, by a plain count over its events."""
    main = Loader(**settings).run().main
    events = [json.loads(line) for line in main.lines]
    spans = [event for event in events if event["cat"] in ("dataloader", "compute")]
    spans = [event for event in spans if event["name"] in ("fetch", "forward", "backward")]
    spans.sort(key=lambda event: event["ts"])
    whole = 0
    for epoch in range(settings.get("passes", 1)):
        mine = [event for event in spans if event["args"]["epoch"] == epoch]
        whole += mine[-1]["ts"] + mine[-1]["dur"] - mine[0]["ts"]
        # A start of workers belongs to the step before it.
        if epoch and not settings.get("persistent", True):
            whole += 400
    return whole * US / sum(event["name"] == "fetch" for event in spans), main.now * US


BASES: dict[str, dict[str, Any]] = {
    "waits": {"batches": some_batches(), "compute": lambda step: 1_500},
    "persists": {"batches": some_batches(40), "passes": 2, "persistent": True},
    "restarts": {
        "batches": some_batches(12),
        "passes": 6,
        "persistent": False,
        "start": 30_000,
        "compute": lambda step: 1_500,
    },
    "pins, out of order": {
        "batches": some_batches(),
        "workers": 3,
        "in_order": False,
        "pin": 700,
        "compute": lambda step: 1_500,
    },
    "computes": {"batches": some_batches(), "compute": lambda step: 9_000},
}
FASTER = {
    Change(reads=2.0): lambda item: Item(item.read // 2, item.decode),
    Change(decode=4.0): lambda item: Item(item.read, item.decode // 4),
    Change(disk=1e9, each=True): lambda item: Item(min(item.read, 100), item.decode),  # 100 KB each
}


def variants(base: dict[str, Any]) -> dict[Change, dict[str, Any]]:
    found: dict[Change, dict[str, Any]] = {
        Change(workers=count): {"workers": count} for count in (0, 1, 4, 8)
    }
    found[Change(prefetch=4)] = {"prefetch": 4}
    if base.get("in_order", True):  # the simulation does not look for a worker that is free
        found[Change(workers=4, prefetch=1)] = {"workers": 4, "prefetch": 1}
    if base.get("passes", 1) > 1:
        found[Change(persistent=True)] = {"persistent": True}
    for change, faster in FASTER.items():
        found[change] = {"batches": [[faster(item) for item in one] for one in base["batches"]]}
    return found


@pytest.mark.long(keep=3)
@pytest.mark.parametrize("name", BASES)
def test_predictions_agree_with_runs_of_the_change(tmp_path: Path, name: str) -> None:
    base = BASES[name]
    report = load(tmp_path / "base", **base)
    wanted = variants(base)
    rows = {row["change"]: row for row in whatif.predict(report, list(wanted))}
    measured, _ = run_of(**base)
    assert rows[MEASURED]["step_ns"] == pytest.approx(measured, abs=1)
    assert rows[UNCHANGED]["step_ns"] == pytest.approx(measured, rel=0.01)
    for change, settings in wanted.items():
        step, job = run_of(**{**base, **settings})
        row = rows[str(change)]
        # A start of workers takes as long for any number of them in these traces, and longer for
        # more in reality; hence not closer.
        assert row["step_ns"] == pytest.approx(step, rel=0.03), change
        assert row["job_ns"] == pytest.approx(job, rel=0.03), change
        assert row["step_low_ns"] <= row["step_ns"] <= row["step_high_ns"]
        assert row["measured_ns"] == rows[MEASURED]["step_ns"]


def test_from_no_workers_to_some(tmp_path: Path) -> None:
    base = {"batches": some_batches(), "workers": 0, "compute": lambda step: 1_500}
    rows = {row["change"]: row for row in whatif.predict(load(tmp_path, **base))}
    step, _ = run_of(**{**base, "workers": 2})
    row = rows["num_workers=2"]
    assert row["step_ns"] == pytest.approx(step, rel=0.03)
    assert "workers start, and hand batches over, in no time" in row["note"]
    # Prefetching and persistence are of workers.
    assert not any("prefetch" in change or "persistent" in change for change in rows)


@pytest.mark.parametrize(("share", "gains"), [(1.0, False), (0.0, True)])
def test_more_workers_than_cores(tmp_path: Path, share: float, gains: bool) -> None:
    """Two cores: four workers that compute are no faster than two; four that sleep are."""
    batches = [[Item(read=0, decode=8_000)] for _ in range(60)]
    settings = {"prefetch": 2, "cpus": 2, "cpu_us": 0}
    loader = Loader(batches, workers=1, compute=lambda step: 500, settings=settings).run()
    spent = sum(json.loads(line)["dur"] for line in loader.made[0].lines if '"batch",' in line)
    loader.write(tmp_path, cpu_us=int(spent * share) + loader.start)
    changes = [Change(workers=2), Change(workers=4)]
    rows = whatif.predict(reports.load(tmp_path), changes)
    two, four = (row["step_ns"] for row in rows[-2:])
    assert two == pytest.approx(4_100 * US, rel=0.05)
    assert four == pytest.approx(2_200 * US if gains else two, rel=0.05)
    # As many as are given take the place of those that were recorded.
    (unlimited,) = whatif.predict(reports.load(tmp_path), [Change(workers=4)], cores=8)[-1:]
    assert unlimited["step_ns"] == pytest.approx(2_200 * US, rel=0.05)


def test_a_run_on_too_few_cores_is_reproduced(tmp_path: Path) -> None:
    """Four workers on two cores: half of what looks like waiting is waiting for a core."""
    batches = [[Item(read=0, decode=16_000)] for _ in range(60)]
    settings = {"prefetch": 2, "cpus": 2, "cpu_us": 0}
    loader = Loader(batches, workers=4, compute=lambda step: 500, settings=settings).run()
    loader.write(tmp_path, cpu_us=8_000 * 15 + loader.start)
    report = reports.load(tmp_path)
    rows = {row["change"]: row["step_ns"] for row in whatif.predict(report)}
    assert rows[UNCHANGED] == pytest.approx(rows[MEASURED], rel=0.05)
    assert rows["num_workers=2"] == pytest.approx(rows[MEASURED], rel=0.1)
    assert rows["num_workers=8"] == pytest.approx(rows[MEASURED], rel=0.1)
    assert rows["num_workers=1"] > 1.7 * rows[MEASURED]


def test_nothing_is_predicted_if_the_model_misses_the_recorded_run(tmp_path: Path) -> None:
    """The trace says that batches are handed over in order; the run took what came first."""
    slow = [[Item(read=0, decode=60_000 if n % 8 == 5 else 2_000)] for n in range(64)]
    base = {
        "batches": slow,
        "workers": 4,
        "in_order": False,
        "compute": lambda step: 2_000,
        "settings": {"prefetch": 2},
    }
    report = load(tmp_path, **base)
    rows = whatif.predict(report)
    assert [row["change"] for row in rows] == [MEASURED, UNCHANGED]
    assert "off by +" in rows[1]["note"]
    assert "not predicted" in rows[1]["note"]
    assert whatif.gain(rows, "num_workers=2") == ""


def test_too_few_steps(tmp_path: Path) -> None:
    report = load(tmp_path, batches=some_batches(11))
    (row,) = whatif.predict(report)
    assert row["note"] == "11 steps are too few to predict others from"
    assert len(report.whatif) == 1


def test_without_steps_or_lineage(tmp_path: Path) -> None:
    with pytest.raises(Unknown, match="no training steps"):
        whatif.predict(empty())
    training().write(tmp_path)
    report = reports.load(tmp_path)
    with pytest.raises(Unknown, match="does not say how batches were made"):
        whatif.predict(report)
    assert not report.whatif.rows


def test_batches_of_workers_without_a_trace(tmp_path: Path) -> None:
    loader = Loader(some_batches()).run()
    loader.main.write(tmp_path)
    report = reports.load(tmp_path)
    assert len(report.batches) == 80
    with pytest.raises(Unknown, match="whose making is known"):
        whatif.predict(report)


def test_a_trace_that_does_not_contain_the_settings(tmp_path: Path) -> None:
    base = {"batches": some_batches(), "compute": lambda step: 1_500}
    report = load(tmp_path, **base, settings={})
    row = whatif.predict(report, [Change(workers=4)])[-1]
    step, _ = run_of(**{**base, "workers": 4})
    assert row["step_ns"] == pytest.approx(step, rel=0.03)
    assert "prefetch_factor=2, which the trace does not contain" in row["note"]
    assert "there are cores enough, because their number is unknown" in row["note"]


def test_evaluation_is_not_part_of_the_prediction(tmp_path: Path) -> None:
    """A pass over other data after the training: its loader does not count."""
    loader = Loader(some_batches(40), compute=lambda step: 1_500).run()
    main = loader.main
    for batch in range(20):
        told = {"loader": 1, "pass": 0, "batch": batch, "epoch": 0, "step": 40}
        main.span("dataloader", "batch", 5_000, at=main.now, parent=100, index=[0], **told)
        main.span("dataloader", "fetch", 5_100, **told)
        main.span("compute", "forward", 500, epoch=0, step=40, training=False)
    loader.write(tmp_path)
    report = reports.load(tmp_path)
    assert {row["loader"] for row in report.batches} == {0, 1}
    assert [found.loader for found in recorded(report.tables)] == [0]


def test_starts_of_workers_against_the_events(tmp_path: Path) -> None:
    loader = Loader(some_batches(12), passes=3, persistent=False).run().write(tmp_path)
    events = [json.loads(line) for line in loader.main.lines]
    starts = [event for event in events if event["name"] == "start_workers"]
    rows = reports.load(tmp_path).worker_starts.dicts()
    assert len(rows) == len(starts) == 3
    for row, event in zip(rows, starts):
        args = event["args"]
        assert (row["start_ns"], row["dur_ns"]) == (event["ts"] * US, event["dur"] * US)
        names = ("loader", "pass", "workers", "prefetch", "persistent", "in_order", "pins")
        assert [row[name] for name in names] == [args[name] for name in names]
        assert row["cpus"] is None


def test_impossible_settings_are_left_out(tmp_path: Path) -> None:
    """Of a damaged or forged trace."""
    loader = Loader(some_batches(12))
    for number, odd in enumerate(
        ({"prefetch": 10**12}, {"prefetch": "many"}, {"cpus": -1}, {"cpu_us": 1 << 62})
    ):
        loader.main.span(
            "dataloader", "start_workers", 9, loader=0, workers=2, **odd, **{"pass": number}
        )
    loader.run().write(tmp_path)
    rows = reports.load(tmp_path).worker_starts.dicts()
    assert [(row["prefetch"], row["cpus"], row["cpu_ns"]) for row in rows] == [
        (None, None, None),
        (None, None, None),
        (2, None, None),
    ]


def test_a_long_run_is_sampled(tmp_path: Path) -> None:
    """The model simulates so many batches at most, and counts each batch once."""
    passes = [
        Pass([0.0] * n, [1.0] * n, [0.0] * n, [0.0] * n, [0.0] * n, [1.0] * n)
        for n in (10, 5_000, 700)
    ]
    report = load(tmp_path, batches=some_batches(12))
    (found,) = recorded(report.tables)
    found.passes = passes
    found.steps_ns = sum(sum(one.waits) + sum(one.own) for one in passes)
    model = Model(found)
    counted = sum(piece.weight * (piece.end - piece.begin) for piece in model._pieces)
    assert counted == pytest.approx(5_710)
    assert sum(piece.end - piece.begin + piece.lead_in for piece in model._pieces) < 3 * LIMIT


def test_all_workers_share_a_disk(tmp_path: Path) -> None:
    """80 MB at 40 MB/s take two seconds, however many workers read."""
    batches = [[Item(read=60_000, decode=0, size=1_000_000)] for _ in range(80)]
    report = load(tmp_path, batches=batches, compute=lambda step: 1_000)
    changes = [Change(workers=16, disk=4e7), Change(workers=16, disk=4e7, each=True)]
    shared, each = whatif.predict(report, changes)[-2:]
    assert shared["step_ns"] * 80 == pytest.approx(2e9, rel=0.01)
    assert each["step_ns"] * 80 < 0.4e9
    # A disk that is slower than what was read from does not make reading slower.
    (slow,) = whatif.predict(report, [Change(disk=1e6)])[-1:]
    assert slow["step_ns"] == pytest.approx(slow["measured_ns"], rel=0.02)


def test_the_gain_in_words(tmp_path: Path) -> None:
    rows = [
        {"process": 0, "change": MEASURED, "step_ns": 58 * MS, "measured_ns": 58 * MS},
        {
            "process": 0,
            "change": "num_workers=8",
            "step_ns": 31 * MS,
            "measured_ns": 58 * MS,
            "change_percent": 100 * (31 / 58 - 1),
        },
    ]
    words = "num_workers=8: steps 31 ms instead of 58 ms, -47 %"
    assert whatif.gain(rows, "num_workers=8") == words
    assert whatif.gain(rows, "num_workers=8", process=1) == ""
    assert whatif.gain(rows, "num_workers=4") == ""
    assert whatif.gain(rows, MEASURED) == ""


def test_a_report_has_the_table_and_the_line(tmp_path: Path) -> None:
    from dftracer.reports.render.page import page
    from dftracer.reports.render.summary import summarise

    report = load(tmp_path, batches=some_batches(), compute=lambda step: 2_500)
    assert report.whatif.dicts() == whatif.predict(report)
    lines = "\n".join(summarise(report))
    rows = {row["change"]: row["step_ns"] for row in report.whatif}
    # The least change of the settings that is within two percent of the best.
    assert rows["num_workers=8"] > 0.98 * rows["num_workers=4"]
    words = whatif.gain(report.whatif.dicts(), "num_workers=4")
    assert f"What if\n  {words}" in lines.replace("\n    ", " ")
    advice = [row["advice"] for row in report.findings if row["rule"] == "waiting-for-data"]
    (text,) = advice
    assert text.endswith(f". Predicted with {words}")
    assert 'id="what-if"' in page(report)
    few = load(tmp_path / "few", batches=some_batches(2))
    assert 'id="what-if"' not in page(few)
    assert "What if" not in "\n".join(summarise(few))

"""Two runs side by side: a change is told from noise, and only a change ends with 1."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from support import report_tables

from dftracer.errors import DFTracerError
from dftracer.reports.compare import change, compare, parse_limit, step_times
from dftracer.reports.model import Report
from dftracer.reports.render.compare_text import lines, verdict

Noise = Callable[[random.Random, int], list[float]]


def quiet(chance: random.Random, count: int) -> list[float]:
    return [80 * chance.lognormvariate(0, 0.05) for _ in range(count)]


def drifting(chance: random.Random, count: int) -> list[float]:
    """One step resembles the one before."""
    values, now = [], 0.0
    for _ in range(count):
        now = 0.8 * now + chance.gauss(0, 1)
        values.append(80 + 2 * now)
    return values


def stalling(chance: random.Random, count: int) -> list[float]:
    """Now and then one takes ten times as long."""
    return [80 * (10 if chance.random() < 0.03 else chance.gauss(1, 0.03)) for _ in range(count)]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("noise", [quiet, drifting, stalling])
def test_noise_alone_is_seldom_called_a_change(noise: Noise) -> None:
    """95 % intervals: 400 pairs of equal runs; some 20 false calls are the promise."""
    chance = random.Random(5)
    pairs = [(noise(chance, 300), noise(chance, 300)) for _ in range(400)]
    called = sum(change("step time", *pair).verdict != "noise" for pair in pairs)
    assert called <= 400 * 0.09


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("noise", [quiet, drifting])
def test_a_change_beyond_noise_is_found(noise: Noise) -> None:
    chance = random.Random(7)
    for _ in range(50):
        before = noise(chance, 200)
        after = [1.08 * value for value in noise(chance, 200)]
        assert change("step time", before, after).verdict == "slower"
        assert change("step time", after, before).verdict == "faster"


@pytest.mark.long
def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    chance = random.Random(11)
    held = 0
    for _ in range(300):
        found = change("t", quiet(chance, 60), [1.2 * v for v in quiet(chance, 60)])
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 20 <= found.high
    assert 300 * 0.90 <= held <= 300


def test_a_few_noisy_steps_prove_nothing() -> None:
    found = change("step time", [80, 120, 70], [90, 140, 85])
    assert found.percent == pytest.approx(16.7, abs=0.1)
    assert found.verdict == "noise"


def test_first_steps_of_epochs_and_faster_ranks_do_not_count() -> None:
    report = report_tables.training(ranks=2, epochs=3, steps=10)
    times = step_times(report)
    assert len(times) == 27
    rows = report.table("steps").dicts()
    longest = max(row["dur_ns"] for row in rows if row["epoch"] == 0 and row["step"] == 1)
    assert times[0] == longest


def test_a_part_of_one_step_has_no_interval_and_no_verdict() -> None:
    """A checkpoint at the end of a run was "slower, +204 to +204 %"."""
    found = change("step: checkpoint", [0.0] * 62 + [65.8], [0.0] * 62 + [200.0])
    assert (found.low, found.high, found.verdict) == (None, None, "")
    assert found.percent == pytest.approx(204, abs=1)


def test_slower_beyond_noise_fails_and_names_the_part() -> None:
    before = report_tables.training(findings=False)
    after = report_tables.training(seed=2, slower_fetch=1.5)
    found = compare(after, before, 5)
    assert found.too_slow
    assert verdict(found)[0] == "slower"
    rows = {row["measure"]: row for row in found.tables["changes"]}
    assert rows["step: waiting for data"]["verdict"] == "slower"
    assert rows["step: compute"]["verdict"] == "noise"
    told = "\n".join(lines(found))
    assert "Slower: step time" in told
    assert "slower by more than the allowed 5 %" in told
    assert "<strong>Slower: step time" in found._repr_html_()
    assert "new finding: Half of the reads are smaller than 4 KB" in told
    assert not compare(after, before, 50).too_slow
    assert not compare(before, after, 5).too_slow


def test_equal_runs_pass_whatever_the_limit() -> None:
    before, after = report_tables.training(), report_tables.training(seed=2)
    found = compare(after, before, 0)
    assert not found.too_slow
    assert verdict(found)[0] == "same"


def test_without_repeated_steps_epochs_and_then_the_job_are_compared() -> None:
    def without(report: Report, *names: str) -> Report:
        for name in names:
            report.table(name).rows.clear()
        return report

    def pair(*names: str) -> tuple[Report, Report]:
        slow = report_tables.training(seed=2, step_ms=100, epochs=4)
        usual = report_tables.training(epochs=4)
        return without(slow, *names), without(usual, *names)

    epochs = compare(*pair("steps"), 5)
    assert epochs.main is not None
    assert epochs.main.measure == "epoch time"
    assert epochs.too_slow
    job = compare(*pair("steps", "epochs"), 5)
    assert job.main is not None
    assert job.main.measure == "job time"
    assert "the noise is unknown" in verdict(job)[1]
    assert job.too_slow
    nothing = compare(report_tables.empty(), report_tables.empty(), 5)
    assert nothing.main is None
    assert not nothing.too_slow
    assert lines(nothing)


def test_calls_of_one_run_alone_are_in_the_table() -> None:
    before, after = report_tables.training(), report_tables.training()
    after.table("calls").rows[0] = ("POSIX", "mmap64", *after.table("calls").rows[0][2:])
    rows = {(row["cat"], row["name"]): row for row in compare(after, before).tables["call_changes"]}
    assert rows["POSIX", "read"]["after_count"] == 0
    assert rows["POSIX", "mmap64"]["before_count"] == 0
    assert rows["POSIX", "mmap64"]["change_percent"] is None
    assert rows["POSIX", "read"]["change_percent"] == -100


@pytest.mark.parametrize(("words", "limit"), [("5%", 5), ("5", 5), (" 2.5 % ", 2.5), ("0%", 0)])
def test_limits(words: str, limit: float) -> None:
    assert parse_limit(words) == limit


@pytest.mark.parametrize("words", ["", "fast", "-5%", "nan", "inf", "5%%"])
def test_what_is_no_limit(words: str) -> None:
    with pytest.raises(DFTracerError, match="--fail-if-slower: invalid percentage"):
        parse_limit(words)

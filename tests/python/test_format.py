"""dftracer._format: numbers as people read them, the same in a terminal and on a page."""

from __future__ import annotations

import pytest

from dftracer import _format


@pytest.mark.parametrize(
    ("nanoseconds", "shown"),
    [
        (0, "0 s"),
        (1, "1 ns"),
        (999, "999 ns"),
        (1500, "1.5 us"),
        (999_999, "1 ms"),
        (80_100_000, "80.1 ms"),
        (12_345_678_900, "12.3 s"),
        (89_000_000_000, "89 s"),
        (125_000_000_000, "2 min 05 s"),
        (7_384_000_000_000, "2 h 03 min"),
        (-1500, "-1.5 us"),
    ],
)
def test_durations(nanoseconds: int, shown: str) -> None:
    assert _format.duration(nanoseconds) == shown


def test_fewer_digits_where_no_more_are_known() -> None:
    assert _format.duration(124_300, 2) == "120 us"


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (999, "999 B"),
        (999.7, "1 KB"),
        (1_500_000, "1.5 MB"),
        (2e18, "2,000 PB"),
    ],
)
def test_sizes(number: float, shown: str) -> None:
    assert _format.size(number) == shown


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (0, "0 %"),
        (0.0004, "< 0.1 %"),
        (-0.0004, "> -0.1 %"),
        (0.0072, "0.72 %"),
        (0.05, "5 %"),
        (0.065, "6.5 %"),
        (0.314, "31 %"),
        (1, "100 %"),
        (34, "3,400 %"),
    ],
)
def test_percentages(share: float, shown: str) -> None:
    assert _format.percent(share) == shown


def test_a_rate_of_nothing_has_a_unit() -> None:
    assert _format.rate(0) == "0 B/s"


def test_powers_of_two_stay_round() -> None:
    sizes = [_format.binary_size(1 << n) for n in (0, 9, 10, 12, 20, 34)]
    assert sizes == ["1 B", "512 B", "1 KiB", "4 KiB", "1 MiB", "16 GiB"]


@pytest.mark.parametrize(
    ("seconds", "unit"),
    [(0.5, "ms"), (59, "s"), (90, "s"), (599, "s"), (600, "min"), (35_000, "min"), (36_000, "h")],
)
def test_an_axis_has_no_fractions_of_a_minute(seconds: float, unit: str) -> None:
    """Ten of a unit, at least, fit on its axis."""
    scale, found = _format.axis_scale(seconds * 1e9)
    assert found == unit
    if unit in ("min", "h"):
        assert seconds * 1e9 / scale >= 10


def test_a_number_stays_with_its_unit() -> None:
    text = "1.24 s of 3.53 s at 586 MB/s, 35 % of it, in 2 sorts of 3 homes"
    kept = _format.unbroken(text)
    assert kept.split() == text.split()  # split() parts at every kind of space
    assert kept.split(" ") == [
        "1.24\xa0s", "of", "3.53\xa0s", "at", "586\xa0MB/s,", "35\xa0%", "of", "it,", "in", "2",
        "sorts", "of", "3", "homes",
    ]  # fmt: skip

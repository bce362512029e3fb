"""Numbers and names as people read them."""

from __future__ import annotations

import pytest

from dftracer.reports import units


@pytest.mark.parametrize(
    ("nanoseconds", "shown"),
    [
        (0, "0"),
        (1, "1 ns"),
        (999, "999 ns"),
        (1500, "1.5 µs"),
        (999_999, "1 ms"),
        (80_100_000, "80.1 ms"),
        (12_345_678_900, "12.3 s"),
        (125_000_000_000, "2 min 05 s"),
        (7_384_000_000_000, "2 h 03 min"),
        (-1500, "-1.5 µs"),
    ],
)
def test_durations(nanoseconds: int, shown: str) -> None:
    assert units.duration(nanoseconds) == shown


@pytest.mark.parametrize(
    ("value", "kind", "shown"),
    [
        (1_500_000, "size", "1.5 MB"),
        (2_000_000_000, "rate", "2 GB/s"),
        (0.314, "share", "31 %"),
        (0.0004, "share", "< 0.1 %"),
        (31.46, "percent", "31 %"),
        (1234567, "count", "1,234,567"),
        (4100, "label", "4100"),
        (None, "time", ""),
        (5_000, "moment", "4 µs"),
    ],
)
def test_cells(value: object, kind: str, shown: str) -> None:
    assert units.cell(value, kind, origin=1000) == shown


def test_what_a_column_holds_follows_from_its_name() -> None:
    kinds = {"total_ns": "time", "start_ns": "moment", "read_bytes": "size", "rank": "label"}
    assert {name: units.kind_of(name, "int") for name in kinds} == kinds
    assert units.kind_of("name", "text") == "text"


def test_a_name_is_made_visible_and_its_middle_left_out() -> None:
    assert units.clean("a\x1b[31m\u202eb\n") == "a\ufffd[31m\ufffdb\ufffd"
    long = units.clean("/start" + "x" * 5000 + "/end", 41)
    assert len(long) == 41
    assert long.startswith("/start")
    assert long.endswith("/end")


def test_powers_of_two_stay_round() -> None:
    assert [units.binary(1 << n) for n in (0, 9, 10, 12, 20, 34)] == [
        "1 B",
        "512 B",
        "1 KiB",
        "4 KiB",
        "1 MiB",
        "16 GiB",
    ]

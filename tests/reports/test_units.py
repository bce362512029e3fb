"""What the page shows of a cell, and calls a column."""

from __future__ import annotations

import pytest

from dftracer.reports.model import SCHEMAS
from dftracer.reports.render import column_format


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
        (5_000, "moment", "4 us"),
        (0, "rate", "0 B/s"),
        (0, "size", "0 B"),
        (0, "time", "0 s"),
        (65536, "binary", "64 KiB"),
    ],
)
def test_cells(value: object, kind: str, shown: str) -> None:
    assert column_format.cell(value, kind, origin=1000) == shown


def test_what_a_column_holds_follows_from_its_name() -> None:
    kinds = {"total_ns": "time", "start_ns": "moment", "read_bytes": "size", "rank": "label"}
    assert {name: column_format.kind_of(name, "int") for name in kinds} == kinds
    assert column_format.kind_of("name", "text") == "text"


def test_a_name_is_made_visible_and_its_middle_left_out() -> None:
    assert column_format.clean("a\x1b[31m\u202eb\n") == "a\ufffd[31m\ufffdb\ufffd"
    long = column_format.clean("/start" + "x" * 5000 + "/end", 41)
    assert len(long) == 41
    assert long.startswith("/start")
    assert long.endswith("/end")


def test_no_two_columns_of_a_table_have_one_label() -> None:
    for schema in SCHEMAS.values():
        labels = [column_format.label(column.name) for column in schema.columns]
        assert len(labels) == len(set(labels)), schema.name

"""dftracer._layout: tables for terminals of any width."""

from __future__ import annotations

import pytest

from dftracer._layout import Column, name_column, table, wrap
from dftracer._names import columns_of

COLUMNS = (
    name_column("name"),
    Column("events"),
    Column("total"),
    Column("mean", rank=1),
    Column("p99", rank=2),
    Column("empty"),
)
ROWS = [
    ["/data/" + "a" * 60 + "/one.bin", "1,234,567", "12.3 ms", "1.25 us", "999 us", ""],
    ["/data/" + "a" * 60 + "/two.bin", "89", "1 min 30 s", "3 us", "4 us", ""],
]


@pytest.mark.parametrize("room", [12, 24, 36, 48, 60, 80, 100, 200])
def test_a_number_is_whole_or_not_there(room: int) -> None:
    head, *lines = table(COLUMNS, ROWS, room)
    rows = lines[:2]
    assert all(columns_of(line) <= room for line in (head, *rows))
    for at, column in enumerate(COLUMNS[1:-1], 1):
        shown = column.name in head.split()
        assert all((row[at] in line) == shown for row, line in zip(ROWS, rows))
    left = {column.name for column in COLUMNS[1:-1]} - set(head.split())
    said = " ".join(lines[2:])
    assert left == {column.name for column in COLUMNS[1:-1] if column.name in said}


def test_what_matters_least_goes_first() -> None:
    head, *_, last = table(COLUMNS, ROWS, 50)
    assert "mean" in head
    assert last == "(no room for p99)"


def test_columns_of_nothing_are_left_out() -> None:
    assert "empty" not in table(COLUMNS, ROWS, 200)[0]


def test_a_remark_has_no_columns() -> None:
    lines = table(COLUMNS, [*ROWS, ["and 3 more"]], 100)
    assert lines[-1] == "and 3 more"


def test_the_start_of_a_command_is_kept() -> None:
    columns = (name_column("file"), name_column("command", keep_start=True))
    lines = table(columns, [["a.pfw.gz", "python train.py " + "--x " * 40]], 40)
    assert lines[1].startswith("a.pfw.gz  python train.py")


def test_no_line_ends_within_a_number() -> None:
    text = "It took 1.24 s of 3.53 s and 586 MB/s and 12 % of 1,024 KB in 3 min 20 s. " * 4
    for room in range(40, 80):
        lines = wrap(text, room, "job       ", " " * 10)
        assert all(len(line) <= room for line in lines)
        assert not any(line.rstrip()[-1].isdigit() for line in lines)
        assert " ".join(" ".join(lines).split()).removeprefix("job ") == text.strip()

"""`dftracer split`: pieces that open alone, and together are the whole."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import synthetic
from support.synthetic import EPOCH, events_of, lines_of, records_of, write

from dftracer.commands._cli.main import main
from dftracer.trace import summarise_all

if TYPE_CHECKING:
    from support.perfetto_importer import Importer


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    place = tmp_path / "traces"
    place.mkdir()
    for rank in range(3):
        write(
            place / f"r{rank}.pfw.gz", synthetic.process(rank=rank, events=600, host=f"n{rank % 2}")
        )
    synthetic.write_document(
        place / "t.trace.json", synthetic.torch_document(pid=100, rank=1, host="n1")
    )
    return place


def split(traces: Path, stem: Path, *how: str, status: int = 0) -> list[Path]:
    assert main(["split", str(traces), "-o", str(stem), "--quiet", *how]) == status
    return sorted(stem.parent.glob(stem.name + "-*"))


WAYS = [
    ("-n", "5"),
    ("-n", "1"),
    ("-s", "0.005"),
    ("--by-process",),
    ("--every", "500us"),
    ("--every", "10s"),
]


@pytest.mark.parametrize("how", WAYS, ids=" ".join)
def test_pieces_open_alone_and_add_up(
    how: tuple[str, ...], traces: Path, tmp_path: Path, perfetto: Importer
):
    pieces = split(traces, tmp_path / "piece", *how)
    summary = summarise_all([*traces.glob("*")])
    assert sum(len(events_of(piece)) for piece in pieces) == summary.events
    for piece in pieces:
        found = summarise_all([piece])
        assert not found.damage.damaged
        assert not [file.path for file in found.used if file.path.startswith("#")]
        named = {r["pid"] for r in records_of(piece) if r["name"] == "process_name"}
        assert {r["pid"] for r in records_of(piece)} == named
        assert perfetto.load(piece).clean

    # Put together again, nothing is missing and nothing is there twice.
    once = tmp_path / "once.pfw"
    again = tmp_path / "again.pfw"
    assert main(["merge", str(traces), "-o", str(once), "--quiet"]) == 0
    assert main(["merge", *map(str, pieces), "-o", str(again), "--quiet"]) == 0
    assert sorted(lines_of(again)) == sorted(lines_of(once))


def test_parts_are_as_many_and_as_large_as_asked(traces: Path, tmp_path: Path):
    pieces = split(traces, tmp_path / "p", "-n", "7")
    sizes = [sum(r["ph"] != "M" for r in records_of(piece)) for piece in pieces]
    assert len(pieces) == 7
    assert max(sizes) - min(sizes) <= 1


def test_every_process_has_its_piece(traces: Path, tmp_path: Path):
    pieces = split(traces, tmp_path / "p", "--by-process")
    for piece in pieces:
        assert len({event["pid"] for event in events_of(piece)}) == 1
    counts = Counter(event["name"] for piece in pieces for event in events_of(piece))
    assert counts["read"] == 1800


def test_a_range_of_time(traces: Path, tmp_path: Path):
    split(traces, tmp_path / "p.pfw", "--from", "1ms", "--to", "2ms")
    (piece,) = tmp_path.glob("p-*.pfw")
    times = [event["ts"] for event in events_of(piece)]
    assert len(times) == 300
    assert min(times) >= EPOCH + 1000
    assert max(times) < EPOCH + 2000


def test_the_kind_is_that_of_the_name(traces: Path, tmp_path: Path):
    for end in (".pfw", ".json", ".pfw.gz"):
        split(traces, tmp_path / f"x{end}", "-n", "2")
        pieces = sorted(tmp_path.glob(f"x-*{end}"))
        assert [piece.name for piece in pieces] == [f"x-0001{end}", f"x-0002{end}"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "specify one of -n, -s"),
        (["-n", "0"], "at least 1"),
        (["-s", "0"], "is not a number above 0"),
        (["--every", "soon"], "invalid duration 'soon' (for example 500ms, 10s, 2m)"),
        (["--every", "1us"], "more than 500 pieces"),
    ],
)
def test_mistakes_are_one_line(
    words: list[str],
    message: str,
    traces: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
):
    assert main(["split", str(traces), "-o", str(tmp_path / "p"), *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert not list(tmp_path.glob("p-*"))

"""`dftracer recover FILE`: a damaged file becomes whole, from every record that can be read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import synthetic
from support.corrupt import Wound, damage, wounds
from support.members import pack
from support.synthetic import lines_of, write

from dftracer.commands._cli.main import main
from dftracer.trace import summarise_all

if TYPE_CHECKING:
    from support.perfetto_importer import Importer

LINES = [synthetic.line(record) for record in synthetic.process(rank=0, events=300)]
GZIP = b"".join(pack(LINES, 40))
PLAIN = b"[\n" + b"".join(one + b"\n" for one in LINES)
STREAM = gzip.compress(PLAIN)


def without_bracket(data: bytes) -> bytes:
    return data.replace(b"[\n", b"", 1)


DAMAGE: dict[str, tuple[str, bytes, int]] = {
    "cut gzip of ours": ("a.pfw.gz", GZIP[:-30], 280),
    "cut gzip of others": ("a.pfw.gz", STREAM[: len(STREAM) * 3 // 4], 100),
    "cut line": ("a.pfw", PLAIN[:-40], len(LINES) - 1),
    "broken line": ("a.pfw", PLAIN.replace(LINES[50], LINES[50][:30], 1), len(LINES) - 1),
    "rubbish between": ("a.pfw", PLAIN.replace(LINES[50], b"\x00\xff?!", 1), len(LINES) - 1),
    "no bracket": ("a.pfw", without_bracket(PLAIN), len(LINES)),
    "broken member": ("a.pfw.gz", GZIP[:400] + b"\0\0\0\0" + GZIP[404:], 200),
    "empty": ("a.pfw.gz", b"", 0),
    "empty and plain": ("a.pfw", b"", 0),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_file_becomes_whole(name: str, tmp_path: Path, perfetto: Importer):
    file, data, least = DAMAGE[name]
    path = tmp_path / file
    path.write_bytes(data)
    assert main(["validate", "--quiet", str(path)]) == 3
    readable = summarise_all([path]).records
    assert readable >= least
    assert main(["recover", str(path)]) == 0
    assert main(["validate", "--quiet", str(path)]) == 0
    kept = [row for row in lines_of(path) if b'"repaired"' not in row]
    assert len(kept) == readable
    assert kept == [row for row in LINES if row in set(kept)]
    assert (tmp_path / (file + ".damaged")).read_bytes() == data
    if least:
        assert perfetto.load(path).clean


def test_the_trace_says_that_it_was_mended(tmp_path: Path):
    path = tmp_path / "a.pfw"
    path.write_bytes(PLAIN.replace(LINES[50], b"{broken", 1))
    assert main(["recover", "--quiet", "--in-place", str(path)]) == 0
    note = json.loads(lines_of(path)[-1])
    assert note["name"] == "repaired"
    assert "1 x" in note["args"]["value"]
    assert [file.name for file in tmp_path.iterdir()] == ["a.pfw"]


def test_a_cut_document_keeps_its_clock(tmp_path: Path):
    document = synthetic.torch_document(pid=5, rank=2)
    path = synthetic.write_document(tmp_path / "t.json", document)
    path.write_bytes(path.read_bytes()[:-400])
    assert main(["recover", "--quiet", str(path)]) == 0
    mended = json.loads(path.read_bytes())
    assert mended["baseTimeNanoseconds"] == document["baseTimeNanoseconds"]
    assert mended["distributedInfo"]["rank"] == 2
    assert summarise_all([path]).first == synthetic.EPOCH * 1000 + 125  # to the nanosecond
    assert main(["validate", "--quiet", str(path)]) == 0


def test_a_whole_file_is_not_touched(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = write(tmp_path / "a.pfw.gz", synthetic.process(rank=0))
    before = path.read_bytes()
    assert main(["recover", str(path)]) == 0
    assert "not damaged" in capsys.readouterr().out
    assert path.read_bytes() == before


def test_a_stranger_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "notes.pfw"
    path.write_bytes(b"these are\nno records\n")
    assert main(["recover", str(path)]) != 0
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert path.read_bytes() == b"these are\nno records\n"
    assert len(list(tmp_path.iterdir())) == 1


def test_of_a_directory_files_are_mended_when_asked(tmp_path: Path):
    path = tmp_path / "a.pfw"
    path.write_bytes(PLAIN[:-40])
    whole = write(tmp_path / "b.pfw.gz", synthetic.process(rank=1))
    before = whole.read_bytes()
    assert main(["recover", "--quiet", "--files", str(tmp_path)]) == 0
    assert main(["validate", "--quiet", str(tmp_path)]) == 0
    assert whole.read_bytes() == before


def test_strangers_in_a_directory_keep_nobody_from_being_mended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "a.pfw").write_bytes(PLAIN[:-40])
    (tmp_path / "notes.pfw").write_bytes(b"these are\nno records\n")
    (tmp_path / "readme.txt").write_bytes(b"{")
    (tmp_path / "config.json").write_bytes(b"{}")
    (tmp_path / "dir.pfw").mkdir()
    assert main(["recover", "--files", "--json", str(tmp_path)]) == 3
    found = capsys.readouterr()
    assert len(found.err.splitlines()) == 1
    assert "notes.pfw: contains no readable record" in found.err
    facts = [json.loads(row) for row in found.out.splitlines()]
    assert [one.get("mended") for one in facts] == [None, True]
    assert facts[1]["records"] == len(LINES) - 1
    assert facts[1]["troubles"] == {"cut_line": 1}
    assert (tmp_path / "config.json").read_bytes() == b"{}"


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.sampled_from([("a.pfw.gz", GZIP), ("a.pfw", PLAIN), ("a.pfw.gz", STREAM)]),
    wounds(),
)
def test_random_damage_never_costs_a_readable_record(
    tmp_path_factory: pytest.TempPathFactory,
    start: tuple[str, bytes],
    hurt: list[Wound],
):
    name, data = start
    data = damage(data, hurt)
    path = tmp_path_factory.mktemp("damage") / name
    path.write_bytes(data)
    readable = summarise_all([path]).records
    status = main(["recover", "--quiet", str(path)])
    if status == 0:
        assert main(["validate", "--quiet", str(path)]) == 0
        kept = [row for row in lines_of(path) if b'"repaired"' not in row]
        assert len(kept) == readable
    else:
        assert readable == 0
        assert path.read_bytes() == data

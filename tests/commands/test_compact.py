"""`dftracer compact`: fewer bytes, the same records in the same order."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from support import synthetic
from support.synthetic import lines_of, write

from dftracer.commands._cli.main import main
from dftracer.trace import summarise_all


def test_a_plain_trace_becomes_a_compressed_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = write(tmp_path / "a.pfw", synthetic.process(rank=0, events=3000))
    before, size = lines_of(path), path.stat().st_size
    assert main(["compact", str(path)]) == 0
    out = tmp_path / "a.pfw.gz"
    assert [file.name for file in tmp_path.iterdir()] == ["a.pfw.gz"]
    assert lines_of(out) == before
    assert out.stat().st_size * 15 < size
    assert not summarise_all([out]).damage.damaged
    words = capsys.readouterr().out
    assert " to 1)" in words


def test_small_blocks_become_large_ones(tmp_path: Path):
    path = write(tmp_path / "a.pfw.gz", synthetic.process(rank=0, events=3000), a_member=10)
    before, size = lines_of(path), path.stat().st_size
    path.chmod(0o640)
    assert main(["compact", "--quiet", str(path)]) == 0
    assert lines_of(path) == before
    assert path.stat().st_size * 2 < size
    assert path.stat().st_mode & 0o777 == 0o640
    # A second time there is nothing to gain, and nothing changes.
    data = path.read_bytes()
    assert main(["compact", "--quiet", str(path)]) == 0
    assert path.read_bytes() == data


def test_a_foreign_stream_keeps_its_records_as_they_are(tmp_path: Path):
    rows = [synthetic.line(record) for record in synthetic.numeric(synthetic.process(rank=0))]
    path = tmp_path / "a.pfw.gz"
    path.write_bytes(gzip.compress(b",\n".join(rows) + b"\n]"))
    assert main(["compact", "--quiet", str(path)]) in (0,)
    plain = tmp_path / "b.pfw"
    plain.write_bytes(b"[\n" + b",\n".join(rows) + b"\n]\n")
    assert main(["compact", "--quiet", "--keep", str(plain)]) == 0
    assert lines_of(tmp_path / "b.pfw.gz") == rows
    assert plain.exists()


def test_a_damaged_trace_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = write(tmp_path / "a.pfw.gz", synthetic.process(rank=0, events=500))
    path.write_bytes(path.read_bytes()[:-20])
    before = path.read_bytes()
    assert main(["compact", str(path)]) == 3
    assert "left unchanged" in capsys.readouterr().err
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_what_is_there_already_is_not_replaced(tmp_path: Path):
    path = write(tmp_path / "a.pfw", synthetic.process(rank=0))
    other = write(tmp_path / "a.pfw.gz", synthetic.process(rank=1))
    before = other.read_bytes()
    assert main(["compact", str(path)]) == 1
    assert other.read_bytes() == before
    assert path.exists()

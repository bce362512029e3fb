"""Reading of traces in every state that a crash, a copy or another tool leaves them in."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from dftracer.errors import DFTracerError
from dftracer.trace.lines import Health, find_traces, read_records, resolve


def event(number: int) -> dict[str, object]:
    return {"id": number, "name": "work", "cat": "C_APP", "ph": "X", "args": {"text": "ä\n" * 40}}


def line(number: int) -> bytes:
    return json.dumps(event(number)).encode() + b"\n"


def ids(path: Path, health: Health | None = None) -> list[int]:
    return [record["id"] for record in read_records(path, health)]


def test_members_brackets_commas_and_blank_lines(tmp_path: Path) -> None:
    path = tmp_path / "t.pfw.gz"
    members = [b"[\n" + line(1), line(2) + b"\n  " + line(3)[:-1] + b",\n", line(4) + b"]"]
    path.write_bytes(b"".join(map(gzip.compress, members)))
    health = Health()
    assert ids(path, health) == [1, 2, 3, 4]
    assert health == Health(members=3, lines=4)


def test_many_small_members_across_chunks(tmp_path: Path) -> None:
    path = tmp_path / "t.pfw.gz"
    path.write_bytes(b"".join(gzip.compress(line(number)) for number in range(2000)))
    assert ids(path) == list(range(2000))


@pytest.mark.parametrize("cut", [1, 7, 12, 40])
def test_last_member_cut_short_keeps_the_members_before_it(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "t.pfw.gz"
    path.write_bytes((gzip.compress(line(1)) + gzip.compress(line(2)))[:-cut])
    health = Health()
    assert ids(path, health)[:1] == [1]
    assert health.truncated
    assert health.bad_lines == 0


def test_rubbish_after_the_last_member(tmp_path: Path) -> None:
    path = tmp_path / "t.pfw.gz"
    path.write_bytes(gzip.compress(line(1)) + b"\0" * 512)
    health = Health()
    assert ids(path, health) == [1]
    assert health.corrupt


def test_plain_file_with_half_a_line(tmp_path: Path) -> None:
    path = tmp_path / "t.pfw"
    path.write_bytes(b"[\n" + line(1) + b"nonsense\n" + line(2) + line(3)[:20])
    health = Health()
    assert ids(path, health) == [1, 2]
    assert health == Health(lines=2, bad_lines=1, truncated=True)


def test_line_longer_than_many_chunks(tmp_path: Path) -> None:
    path = tmp_path / "t.pfw.gz"
    record = {"id": 1, "args": {"text": "x" * 1_000_000}}
    path.write_bytes(gzip.compress(json.dumps(record).encode() + b"\n"))
    assert list(read_records(path)) == [record]


def test_empty_file_has_no_records(tmp_path: Path) -> None:
    path = tmp_path / "t.pfw"
    path.touch()
    assert ids(path) == []


def test_plain_name_finds_the_compressed_file(tmp_path: Path) -> None:
    path = tmp_path / "t.pfw.gz"
    path.write_bytes(gzip.compress(line(1)))
    assert resolve(tmp_path / "t.pfw") == path
    assert find_traces([tmp_path, tmp_path / "t.pfw"]) == [path]
    with pytest.raises(DFTracerError, match="no such file"):
        resolve(tmp_path / "u.pfw")

"""`dftracer merge` as a command: damage, mistakes, what is there twice, the guide's name for it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import synthetic
from support.corrupt import Wound, damage, wounds
from support.limits import HANG
from support.members import member, pack
from support.synthetic import events_of, torch_document, write
from support.synthetic import merge as merged

from dftracer.commands._cli.main import main
from dftracer.trace import summarise_all

if TYPE_CHECKING:
    from support.perfetto_importer import Importer


def test_a_damaged_input_is_read_as_far_as_it_goes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    whole = write(tmp_path / "whole.pfw.gz", synthetic.process(rank=0))
    cut = write(tmp_path / "cut.pfw.gz", synthetic.process(rank=1, events=200), a_member=50)
    cut.write_bytes(cut.read_bytes()[:-200])
    out = merged(tmp_path / "o.pfw.gz", whole, cut, status=3)
    assert "cut.pfw.gz" in capsys.readouterr().err
    assert len(events_of(out)) == summarise_all([whole, cut]).events
    assert not summarise_all([out]).damage.damaged


def test_an_earlier_output_is_not_an_input(tmp_path: Path):
    for rank in (0, 1):
        write(tmp_path / f"{rank}.pfw.gz", synthetic.process(rank=rank))
    for _ in range(2):
        out = merged(tmp_path / "all.pfw.gz", tmp_path)
        assert len(events_of(out)) == 10
    assert not list(tmp_path.glob("*.part"))


def test_a_copy_is_named_and_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    one = write(tmp_path / "one.pfw", synthetic.process(rank=0))
    copy = tmp_path / "copy.pfw"
    copy.write_bytes(one.read_bytes())
    out = merged(tmp_path / "o.pfw", one, copy)
    assert "copy.pfw: a copy of the trace of the same process in" in capsys.readouterr().err
    assert len(events_of(out)) == 5


def test_what_is_there_twice_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    one = write(tmp_path / "one.pfw", synthetic.process(rank=0))
    before = merged(tmp_path / "before.pfw", one)
    out = merged(tmp_path / "o.pfw", one, before)
    assert "rank 0: in several of the files" in capsys.readouterr().err
    assert len(events_of(out)) == 10


def test_numbers_that_differ_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    from dftracer import _reader

    path = write(tmp_path / "a.pfw", synthetic.process(rank=0))
    real = _reader.merge

    def short(*args: object, **kwargs: object) -> object:
        found = real(*args, **kwargs)  # type: ignore[arg-type]
        return {**found, "mismatch": "5 events went in, 4 came out"}

    monkeypatch.setattr(_reader, "merge", short)
    merged(tmp_path / "o.pfw", path, status=1)
    assert "5 events went in, 4 came out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["a.pfw", "-o", "out.txt"], 2, "must end with"),
        (["a.pfw", "-o", "nowhere/out.pfw"], 2, "no such directory"),
        (["a.pfw", "-o", "a.pfw"], 2, "both an input and the output"),
        (["-o", "out.pfw"], 2, "missing TRACE"),
        (["missing.pfw", "-o", "out.pfw"], 2, "no such file"),
        (["a.pfw", "-o", "out.pfw", "--threads", "-1"], 2, "is not a whole number"),
    ],
)
def test_mistakes_are_one_line(
    words: list[str],
    status: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.pfw", synthetic.process(rank=0))
    before = (tmp_path / "a.pfw").read_bytes()
    assert main(["merge", *words]) == status
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert (tmp_path / "a.pfw").read_bytes() == before


def test_the_guides_command_writes_strict_json(tmp_path: Path, perfetto: Importer):
    torch = synthetic.write_document(tmp_path / "torch-trace-0-of-24.json", torch_document(pid=44))
    ours = write(tmp_path / "trace-0-of-24.pfw.gz", synthetic.process(rank=0))
    out = tmp_path / "combine-trace-0-of-24.json"
    # `trace-0-of-24.pfw` finds the compressed file.
    words = ["--file-list", str(torch), str(ours)[:-3], "--output", str(out)]
    subprocess.run([Path(sys.executable).with_name("merge_trace"), *words], check=True)
    document = json.loads(out.read_bytes())
    assert {"aten::mm", "read"} <= {event["name"] for event in document["traceEvents"]}
    assert perfetto.load(out).clean


def test_a_copy_of_a_foreign_trace_is_named_as_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    one = synthetic.write_document(tmp_path / "one.json", torch_document(pid=44, rank=3))
    copy = tmp_path / "copy.json"
    copy.write_bytes(one.read_bytes())
    merged(tmp_path / "o.pfw", one, copy)
    assert "rank 3, rank 3 GPU 0, rank 3 Spans: in several of the files" in capsys.readouterr().err


LINES = [synthetic.line(record) for record in synthetic.process(rank=0, events=200)]
STARTS = [
    ("a.pfw.gz", b"".join(pack(LINES, 40))),
    ("a.pfw", b"[\n" + b"\n".join(LINES) + b"\n"),
    ("a.json", json.dumps(torch_document(pid=7, rank=1, steps=40)).encode()),
]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.sampled_from(STARTS), wounds(least=1))
def test_random_damage_is_told_and_costs_no_readable_record(
    tmp_path_factory: pytest.TempPathFactory,
    start: tuple[str, bytes],
    hurt: list[Wound],
):
    name, data = start
    data = damage(data, hurt)
    place_of = tmp_path_factory.mktemp("damage")
    path = place_of / name
    path.write_bytes(data)
    whole = write(place_of / "whole.pfw.gz", synthetic.process(rank=1, pid=9))
    before = summarise_all([path, whole])
    out = place_of / "out.pfw"
    words = ["merge", str(path), str(whole), "-o", str(out), "--quiet"]
    assert main(words) == (3 if before.damage.damaged else 0)
    after = summarise_all([out])
    assert after.events == before.events
    assert not after.damage.damaged


def test_memory_does_not_grow_with_the_input(tmp_path: Path):
    """The same members over and over: sixteen times the text, and no more memory for it."""
    lines = [synthetic.line(record) for record in synthetic.process(rank=0, events=4000)]
    head = [row for row in lines if b'"read"' not in row]
    body = [row for row in lines if b'"read"' in row]
    first = member(head, bracket=True)
    members = b"".join(member(body[at : at + 1000]) for at in range(0, len(body), 1000))
    peaks = []
    for times in (8, 128):
        path = tmp_path / f"{times}.pfw.gz"
        path.write_bytes(first + members * times)
        words = [sys.executable, "-m", "dftracer", "merge", str(path), "--json", "--threads", "2"]
        peak = (
            "import resource, subprocess, sys;"
            "subprocess.run(sys.argv[1:], check=True);"
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        )
        done = subprocess.run(
            [sys.executable, "-c", peak, *words, "-o", str(tmp_path / "o.pfw.gz")],
            check=True,
            capture_output=True,
            text=True,
            timeout=HANG,
        )
        text, _, size = done.stdout.rstrip().rpartition("\n")
        assert json.loads(text)["out"]["events"] == 4000 * times
        peaks.append(int(size) / 1024)
    assert peaks[1] < peaks[0] + 40
    assert peaks[1] < 300

"""What others make of our files: zcat, gzip, jq, DuckDB, pandas. None of them is ours to change."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
from pathlib import Path

import duckdb
import pandas
import pytest
from support import traces
from support.api_driver import Command, play
from support.traces import Trace

AWKWARD = 'quo"te \\ new\nline \x01 é 大 😀'
INIT: Command = ("init", "t.pfw", None, None)
WORK: list[Command] = [
    INIT,
    ("begin", 0, "outer", "app"),
    ("string", 0, "text", AWKWARD),
    ("string", 0, "bytes", b"\xff\xfe"),
    ("float", 0, "f", "0.25"),
    ("spans", 5000, "span"),
    ("flush",),
    ("spans", 5000, "span"),
    ("instant", AWKWARD, "app"),
    ("counter", "c", "app", 2.5),
    ("metadata", AWKWARD, AWKWARD),
    ("end", 0),
    ("on", 1, "spans", 100, "thread"),
    ("fini",),
]


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """A trace of several members, with text that is hard to read."""
    play(*WORK, cwd=tmp_path)
    found = traces.read_one(tmp_path)
    assert len(found.members) > 2
    return found


def tool(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.fail(f"{name} is not installed; it is one of the readers that traces must suit")
    return path


def test_zcat(trace: Trace) -> None:
    done = subprocess.run([tool("zcat"), trace.path], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == b"[\n" + b"\n".join(trace.lines) + b"\n"
    subprocess.run([tool("gzip"), "-t", trace.path], check=True)


def test_python_gzip(trace: Trace) -> None:
    with gzip.open(trace.path, "rt", encoding="utf-8") as file:
        assert file.readline() == "[\n"
        assert [json.loads(line) for line in file] == trace.records


def test_a_member_can_be_read_alone(trace: Trace) -> None:
    """What a parallel reader does: jump to a member by the sizes in the headers before it."""
    data = trace.path.read_bytes()
    for member in trace.members:
        piece = gzip.decompress(data[member.offset : member.offset + member.size])
        assert piece == member.text


def test_jq(trace: Trace) -> None:
    script = f'{tool("zcat")} "$0" | tail -n +2 | {tool("jq")} -c .'
    done = subprocess.run(["sh", "-c", script, trace.path], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert [json.loads(line) for line in done.stdout.splitlines()] == trace.records


def test_duckdb(trace: Trace) -> None:
    """Straight on the compressed file; its first line is no object, which is to be passed over."""
    relation = (
        f"read_json('{trace.path}', format='newline_delimited', ignore_errors=true,"
        " columns={id: 'UBIGINT', name: 'VARCHAR', cat: 'VARCHAR', ph: 'VARCHAR', pid: 'UINTEGER',"
        " tid: 'UINTEGER', ts: 'UBIGINT', dur: 'UBIGINT', args: 'JSON'})"
    )
    rows = duckdb.sql(
        f"select name, count(*), sum(cast(args->>'i' as bigint)) from {relation}"
        " where ph = 'X' group by name order by name"
    ).fetchall()
    total = sum(range(5000)) * 2
    assert rows == [
        ("end", 1, None),
        ("outer", 1, None),
        ("span", 10_000, total),
        ("start", 1, None),
        ("thread", 100, sum(range(100))),
    ]
    text = duckdb.sql(f"select args->>'text' from {relation} where name = 'outer'").fetchall()
    assert text == [(AWKWARD,)]


def test_duckdb_finds_the_types_itself(trace: Trace) -> None:
    relation = f"read_json('{trace.path}', format='newline_delimited', ignore_errors=true)"
    count = duckdb.sql(f"select count(*) from {relation} where name is not null").fetchall()
    assert count == [(len(trace.records),)]
    kinds = dict(
        duckdb.sql(f"select column_name, column_type from (describe from {relation})").fetchall()
    )
    assert {kinds[key] for key in ("id", "pid", "tid", "ts", "dur")} == {"BIGINT"}


def test_pandas(trace: Trace) -> None:
    with gzip.open(trace.path, "rt", encoding="utf-8") as file:
        file.readline()
        frame = pandas.read_json(file, lines=True)
    assert len(frame) == len(trace.records)
    assert list(frame["name"]) == [record["name"] for record in trace.records]
    spans = frame[frame["name"] == "span"]
    assert list(spans["args"].map(lambda args: args["i"])) == list(range(5000)) * 2


def test_pandas_from_a_plain_file(tmp_path: Path) -> None:
    play(*WORK, cwd=tmp_path, env={"DFTRACER_TRACE_COMPRESSION": "0"})
    plain = traces.read_one(tmp_path)
    with plain.path.open(encoding="utf-8") as file:
        file.readline()
        assert len(pandas.read_json(file, lines=True)) == len(plain.records)


def test_concatenated_files_are_a_file(tmp_path: Path) -> None:
    """As merge scripts do it: cat a.pfw.gz b.pfw.gz > all.pfw.gz."""
    for name in ("a", "b"):
        play(("init", f"{name}.pfw", None, None), ("spans", 100, name), cwd=tmp_path)
    parts = [tmp_path / "a.pfw.gz", tmp_path / "b.pfw.gz"]
    whole = tmp_path / "all.pfw.gz"
    with whole.open("wb") as file:
        subprocess.run(["cat", *parts], stdout=file, check=True)
    text = subprocess.run([tool("zcat"), whole], capture_output=True, check=True).stdout
    records = [json.loads(line) for line in text.splitlines() if line != b"["]
    assert records == [record for part in parts for record in traces.read(part).records]
    count = duckdb.sql(
        f"select count(*) from read_json('{whole}', format='newline_delimited',"
        " ignore_errors=true) where ph = 'X'"
    ).fetchall()
    assert count == [(2 * (100 + 2),)]

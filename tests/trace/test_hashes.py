"""Hashes that are numbers of 64 bits, as DFTracer 1.0.6 to 1.0.9 write them: every verb."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from support.perfetto_importer import Importer
from support.synthetic import records_of

from dftracer import reports, trace
from dftracer.commands._cli.main import main

# Below and above 2^63, the largest of all, and one that no double can hold.
HOST = 17_446_744_073_709_551_557
PATHS = {
    3_922_338_940_068_026_856: "/data/small",
    9_223_372_036_854_775_808: "/data/two-to-the-63",
    13_000_000_000_000_000_001: "/data/large",
    18_446_744_073_709_551_615: "/data/largest",
}
UNKNOWN = 11_111_111_111_111_111_111
COMMAND, PROGRAM, CWD = 9_900_000_000_000_000_003, 18_000_000_000_000_000_007, 2**64 - 7


def write(
    path: Path, pid: int = 7, host: int = HOST, name: str = "node1", unexplained: int = 0
) -> Path:
    records: list[dict[str, Any]] = []

    def add(what: str, ph: str, cat: str = "dftracer", **fields: Any) -> None:
        args = {"hhash": host, **fields.pop("args")}
        head = {"id": len(records) + 1, "name": what, "cat": cat, "pid": pid, "tid": pid}
        records.append({**head, **fields, "ph": ph, "args": args})

    def explain(what: str, text: str, value: int) -> None:
        add(what, "M", args={"name": text, "value": value})

    explain("HH", name, host)
    explain("SH", "python;train.py", COMMAND)
    explain("SH", "/usr/bin/python3", PROGRAM)
    explain("FH", "/work", CWD)
    opening = {"ppid": 1, "cmd_hash": COMMAND, "exec_hash": PROGRAM, "cwd": CWD, "version": 100008}
    add("start", "X", ts=1_790_000_000_000_000, dur=0, args=opening)
    for index, (value, text) in enumerate(PATHS.items()):
        explain("FH", text, value)
        call = {"ret": 100, "count": 100, "fhash": value}
        add("read", "X", "POSIX", ts=1_790_000_000_000_010 + 20 * index, dur=9, args=call)
    if unexplained:
        call = {"ret": 100, "count": 100, "fhash": unexplained}
        add("read", "X", "POSIX", ts=1_790_000_000_000_900, dur=9, args=call)
    add("end", "X", ts=1_790_000_000_001_000, dur=0, args={"num_events": len(records)})
    path.write_text("[\n" + "".join(json.dumps(record) + "\n" for record in records))
    return path


def files_and_hosts(path: Path) -> tuple[list[str], set[str]]:
    rows = pa.table(trace.read(path)).to_pylist()
    return [row["fname"] for row in rows], {row["host"] for row in rows}


def test_numeric_hashes_from_2_to_the_63_on_are_resolved(tmp_path: Path) -> None:
    path = write(tmp_path / "t.pfw")
    assert files_and_hosts(path) == (list(PATHS.values()), {"node1"})
    found = trace.summarise_all([path])
    assert sorted(file.path for file in found.used) == sorted(PATHS.values())
    (process,) = found.processes
    assert (process.host, process.command, process.program, process.cwd) == (
        "node1",
        "python train.py",
        "/usr/bin/python3",
        "/work",
    )


def test_a_report_shows_all_files_and_bytes_of_numeric_hashes(tmp_path: Path) -> None:
    report = reports.load(write(tmp_path / "t.pfw"))
    assert {file["fname"]: file["read_bytes"] for file in report.files} == dict.fromkeys(
        PATHS.values(), 100
    )
    assert [host["host"] for host in report.hosts] == ["node1"]


def test_query_and_parquet_know_the_files_of_numeric_hashes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "t.pfw")
    sql = "select fname, host from events order by ts"
    assert main(["query", sql, str(path), "--json"]) == 0
    wanted = [{"fname": name, "host": "node1"} for name in PATHS.values()]
    assert json.loads(capsys.readouterr().out) == wanted
    out = tmp_path / "t.parquet"
    assert main(["export", "--to", "parquet", str(path), "-o", str(out)]) == 0
    rows = duckdb.sql(f"select fname from '{out}' order by ts").fetchall()
    assert [name for (name,) in rows] == list(PATHS.values())


def test_perfetto_gets_names_and_every_digit_of_a_hash(tmp_path: Path, perfetto: Importer) -> None:
    out = tmp_path / "t.pftrace"
    path = write(tmp_path / "t.pfw", unexplained=UNKNOWN)
    assert main(["export", "--to", "perfetto", str(path), "-o", str(out)]) == 0
    assert perfetto.load(out).clean
    rows = perfetto.query("select int_value as number, string_value as text from args")
    assert set(PATHS.values()) <= {row["text"] for row in rows}
    # Perfetto keeps 64 bits, and shows them with a sign.
    assert UNKNOWN in {row["number"] % 2**64 for row in rows if row["number"] is not None}


def test_chrome_json_has_names_and_every_digit_of_a_hash(tmp_path: Path) -> None:
    out = tmp_path / "t.json"
    path = write(tmp_path / "t.pfw", unexplained=UNKNOWN)
    assert main(["export", "--to", "chrome", str(path), "-o", str(out)]) == 0
    calls = [e for e in json.loads(out.read_text())["traceEvents"] if e["name"] == "read"]
    shown = [set(map(str, call["args"].values())) for call in calls]
    for number, name in enumerate([*PATHS.values(), str(UNKNOWN)]):
        assert name in shown[number]


def test_merge_tells_hosts_apart_by_numeric_hashes(tmp_path: Path) -> None:
    one = write(tmp_path / "one.pfw")
    two = write(tmp_path / "two.pfw", host=HOST + 1, name="node2")
    out = tmp_path / "all.pfw.gz"
    assert main(["merge", str(one), str(two), "-o", str(out), "--quiet"]) == 0
    names, hosts = files_and_hosts(out)
    assert sorted(names) == sorted([*PATHS.values()] * 2)
    assert hosts == {"node1", "node2"}
    assert len({record["pid"] for record in records_of(out) if record["name"] == "read"}) == 2


def test_each_piece_explains_the_numeric_hashes_that_it_uses(tmp_path: Path) -> None:
    path = write(tmp_path / "t.pfw")
    words = ["split", str(path), "-n", "3", "-o", str(tmp_path / "piece"), "--quiet"]
    assert main(words) == 0
    pieces = sorted(tmp_path.glob("piece-*.pfw.gz"))
    assert len(pieces) == 3
    found = []
    for piece in pieces:
        names, hosts = files_and_hosts(piece)
        assert hosts <= {"node1"}
        found += names
    assert found == list(PATHS.values())


@pytest.mark.parametrize("value", ['"fh\\u00e9"', "12.5", "[]", "{}", "null", "true"])
def test_a_hash_of_another_type_names_no_file_or_is_text(tmp_path: Path, value: str) -> None:
    """All readers agree on what it names, and nothing of it is lost."""
    line = '{"id":1,"name":"read","cat":"POSIX","pid":7,"tid":7,"ts":5,"dur":1,"ph":"X","args":'
    path = tmp_path / "t.pfw"
    path.write_text(f'[\n{line}{{"hhash":{value},"fhash":{value},"ret":3}}}}\n')
    (row,) = pa.table(trace.read(path)).to_pylist()
    found = trace.summarise_all([path])
    names = value.startswith('"')
    assert row["fname"] == ("#fhé" if names else None)
    assert [file.path for file in found.used] == (["#fhé"] if names else [])
    assert row["host"] == ("fhé" if names else None)
    assert [process.host for process in found.processes] == ["fhé" if names else ""]
    kept = json.loads(row["args"]) if row["args"] else {}
    assert kept == ({} if names else {"hhash": json.loads(value), "fhash": json.loads(value)})

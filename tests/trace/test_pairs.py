"""Spans that are two records, B and E, as Chrome's JSON has them: one event with a duration."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.perfetto_importer import Importer

from dftracer import reports, trace
from dftracer.commands._cli.main import main

Record = dict[str, Any]
Capture = pytest.CaptureFixture[str]


def half(ph: str, name: str | None, ts: float, pid: Any = 1, tid: Any = 1, **args: Any) -> Record:
    record: Record = {"ph": ph, "cat": "c", "ts": ts, "pid": pid, "tid": tid}
    if name is not None:
        record["name"] = name
    return {**record, "args": args} if args else record


# Name, beginning and duration of each span, as written below.
NESTED = [("outer", 10, 90), ("inner", 20, 30), ("inner", 60, 20), ("other", 15, 100)]
RECORDS = [
    half("B", "outer", 10, size=1),
    half("B", "other", 15, tid=2),
    half("B", "inner", 20),
    half("E", None, 50, found=7),
    half("B", "inner", 60),
    half("E", "inner", 80),
    half("E", "outer", 100, size=2, more="x"),
    half("E", "other", 115, tid=2),
]


def document(path: Path, records: list[Record], **options: Any) -> Path:
    text = json.dumps({"traceEvents": records}, **options).encode()
    path.write_bytes(gzip.compress(text) if path.name.endswith(".gz") else text)
    return path


def lines(path: Path, records: list[Record]) -> Path:
    path.write_text("[\n" + "".join(json.dumps(record) + ",\n" for record in records) + "]\n")
    return path


def rows(path: Path) -> list[dict[str, Any]]:
    return list(pa.table(trace.read(path)).to_pylist())


def spans(path: Path) -> list[tuple[str, int, int]]:
    found = rows(path)
    assert {row["ph"] for row in found} == {"X"}
    return sorted((row["name"], row["ts"], row["dur"]) for row in found)


@pytest.mark.parametrize("name", ["t.json", "t.json.gz", "t.pfw"])
def test_beginnings_and_ends_are_spans_with_durations(tmp_path: Path, name: str) -> None:
    path = (lines if name.endswith(".pfw") else document)(tmp_path / name, RECORDS)
    assert spans(path) == sorted(NESTED)
    found = trace.summarise_all([path])
    assert (found.events, found.records) == (4, 8)
    assert not found.damage.damaged
    assert found.damage.odd == {}
    assert {row.name: (row.count, row.total) for row in found.rows} == {
        "outer": (1, 90_000),
        "inner": (2, 50_000),
        "other": (1, 100_000),
    }


def test_the_arguments_of_both_ends_are_those_of_the_span(tmp_path: Path) -> None:
    found = {(row["name"], row["ts"]): row for row in rows(document(tmp_path / "t.json", RECORDS))}
    assert found["outer", 10]["size"] == 2  # the end knows better
    assert json.loads(found["outer", 10]["args"]) == {"size": 2, "more": "x"}
    assert json.loads(found["inner", 20]["args"]) == {"found": 7}
    assert found["inner", 60]["args"] is None


def test_ends_are_found_in_the_order_of_time(tmp_path: Path) -> None:
    """Chrome's format does not ask for any order of the records."""
    assert spans(document(tmp_path / "t.json", RECORDS[::-1])) == sorted(NESTED)


def test_spans_of_other_processes_and_threads_do_not_mix(tmp_path: Path) -> None:
    keys = [(1, 1), (1, 2), (2, 1), ("GPU", "stream")]
    records = [half("B", "n", 10 + i, pid, tid) for i, (pid, tid) in enumerate(keys)]
    records += [half("E", "n", 50 - i, pid, tid) for i, (pid, tid) in enumerate(keys)]
    assert spans(document(tmp_path / "t.json", records)) == [
        ("n", 10 + i, 40 - 2 * i) for i in range(4)
    ]


def test_an_end_with_a_name_closes_the_span_of_its_name(tmp_path: Path) -> None:
    records = [half("B", "a", 1), half("B", "b", 2), half("E", "a", 5), half("E", "b", 9)]
    assert spans(document(tmp_path / "t.json", records)) == [("a", 1, 4), ("b", 2, 7)]


def test_halves_without_the_other_are_told_and_kept(tmp_path: Path, capsys: Capture) -> None:
    records = [half("B", "open", 5), half("E", "never begun", 7), half("E", "x", 8, 2, 2)]
    path = document(tmp_path / "t.json", [*records, *RECORDS[2:4]])
    found = rows(path)
    assert [(row["name"], row["ph"], row["dur"]) for row in found] == [
        ("open", "B", None),
        ("never begun", "E", None),
        ("x", "E", None),
        ("inner", "X", 30),
    ]
    summary = trace.summarise_all([path])
    assert summary.damage.odd == {"unpaired": 3}
    assert main(["stats", str(path)]) == 0
    assert capsys.readouterr().err.count("a B without its E, or an E without its B") == 3
    assert main(["validate", str(path)]) == 0
    assert "sound, 4 events" in capsys.readouterr().out


def test_pairs_far_apart_in_a_large_file(tmp_path: Path) -> None:
    """Blocks are read by several threads, and the first ones hold no halves at all."""
    filler = {"ph": "X", "name": "f", "cat": "c", "pid": 9, "tid": 9, "dur": 1, "args": {}}
    records: list[Record] = [{**filler, "ts": n, "args": {"t": "x" * 60}} for n in range(20_000)]
    outer = [half("B", "outer", 5), *(half("B", f"n{n}", 10 + n) for n in range(300))]
    ends = [half("E", f"n{n}", 1_000_000 - n) for n in range(300)]
    every = [*records, *outer, *records, *ends, half("E", None, 2_000_000), *records]
    for path in (document(tmp_path / "t.json", every), lines(tmp_path / "t.pfw", every)):
        assert path.stat().st_size > 5 << 20
        for threads in (1, 4):
            found = pa.table(trace.read(path, threads=threads, columns=["name", "ph", "dur"]))
            durations = {row["name"]: row["dur"] for row in found.to_pylist() if row["name"] != "f"}
            assert found.num_rows == 60_301
            assert durations["outer"] == 1_999_995
            assert all(durations[f"n{n}"] == 999_990 - 2 * n for n in range(300))
            assert trace.summarise_all([path], threads=threads).damage.odd == {}


def test_a_report_has_the_time_of_spans_in_two_records(tmp_path: Path) -> None:
    report = reports.load(document(tmp_path / "t.json", RECORDS))
    calls = {call["name"]: call["total_ns"] for call in report.calls}
    assert calls == {"outer": 90_000, "inner": 50_000, "other": 100_000}


@pytest.mark.parametrize("form", ["chrome", "perfetto", "speedscope", "parquet", "merge", "split"])
def test_what_is_written_of_spans_in_two_records(
    tmp_path: Path, form: str, perfetto: Importer, capsys: Capture
) -> None:
    path = document(tmp_path / "t.json", RECORDS)
    out = tmp_path / ("o.json" if form == "chrome" else f"o.{form}")
    if form == "merge":
        out = tmp_path / "o.pfw.gz"
        assert main(["merge", str(path), "-o", str(out)]) == 0
    elif form == "split":
        assert main(["split", str(path), "-n", "1", "-o", str(tmp_path / "o.pfw")]) == 0
        out = tmp_path / "o-0001.pfw"
    else:
        assert main(["export", "--to", form, str(path), "-o", str(out)]) == 0
    assert "4 events" in capsys.readouterr().out
    if form in ("chrome", "merge", "split"):
        assert spans(out) == sorted(NESTED)
    if form in ("chrome", "merge", "perfetto"):
        assert perfetto.load(out).clean
        found = perfetto.query("select name, dur from slice order by dur")
        wanted = [("inner", 20), ("inner", 30), ("outer", 90), ("other", 100)]
        assert [(row["name"], row["dur"]) for row in found] == [(n, d * 1000) for n, d in wanted]


def test_compact_keeps_both_records(tmp_path: Path) -> None:
    path = lines(tmp_path / "t.pfw", RECORDS)
    assert main(["compact", str(path), "--quiet"]) == 0
    text = gzip.decompress((tmp_path / "t.pfw.gz").read_bytes()).decode()
    assert [json.loads(line) for line in text.splitlines()[1:]] == RECORDS
    assert spans(tmp_path / "t.pfw.gz") == sorted(NESTED)

"""Every dialect that traces come in, as the tools wrote it: what is read of it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest

from dftracer import trace

DATA = Path(__file__).resolve().parents[1] / "data"
RELEASES = sorted(DATA.glob("dftracer-*.pfw*")) + sorted(DATA.glob("pydftracer-*.pfw*"))


def rows(path: Path | list[Path], **options: object) -> list[dict[str, object]]:
    table = pa.table(trace.read(path, **options))  # type: ignore[arg-type]
    return table.to_pylist()


def write(path: Path, *records: dict[str, object], start: str = "[\n", end: str = "") -> Path:
    path.write_text(start + "".join(json.dumps(record) + "\n" for record in records) + end)
    return path


def event(**fields: object) -> dict[str, object]:
    base = {"id": 1, "name": "n", "cat": "c", "pid": 5, "tid": 6, "ts": 10, "dur": 3, "ph": "X"}
    return {**base, **fields}


@pytest.mark.parametrize("path", RELEASES, ids=lambda path: path.name)
def test_releases_of_dftracer(path: Path) -> None:
    found = rows(path)
    assert len(found) == 48
    # The same program under every release: 12 opens, 6 reads, 6 writes of 100 to 105 bytes.
    by_name: dict[object, list[dict[str, object]]] = {}
    for row in found:
        by_name.setdefault(row["name"], []).append(row)
    assert {name: len(group) for name, group in by_name.items()} == {
        "open64": 12, "close": 12, "read": 6, "write": 6, "step": 6, "workload.<locals>.step": 6,
    }  # fmt: skip
    assert [row["bytes"] for row in by_name["write"]] == [100, 101, 102, 103, 104, 105]
    assert [row["ret"] for row in by_name["read"]] == [100, 101, 102, 103, 104, 105]
    assert [row["step"] for row in by_name["step"]] == [0, 1, 2, 3, 4, 5]
    assert {row["epoch"] for row in by_name["step"]} == {1}
    names = {"/data/demo/data/part-0.bin", "/data/demo/data/part-1.bin"}
    assert {row["fname"] for row in found if row["cat"] == "POSIX"} == names
    assert {row["host"] for row in found} == {"node1"}
    assert {row["ph"] for row in found} == {"X"}
    summary = trace.summarise(path)
    assert summary.status == "ended cleanly"
    assert [process.command for process in summary.processes.values()] == ["python demo.py"]


@pytest.mark.parametrize("name", ["torch-2.13.trace.json", "torch-2.13.trace.json.gz"])
def test_torch_profiler(name: str) -> None:
    text = json.loads((DATA / "torch-2.13.trace.json").read_text())
    wanted = [record for record in text["traceEvents"] if record["ph"] != "M"]
    found = rows(DATA / name, time_unit="ns")
    assert [row["name"] for row in found] == [record["name"] for record in wanted]
    base = text["baseTimeNanoseconds"]
    for row, record in zip(found, wanted):
        # Exact, where doubles are not: the digits are taken as they are written.
        assert abs(row["ts"] - base - record["ts"] * 1000) < 600  # type: ignore[operator]
        assert row["ph"] == record["ph"]
        kept = json.loads(row["args"] or "{}") | json.loads(row["extra"] or "{}")  # type: ignore[arg-type]
        for key, value in record.get("args", {}).items():
            assert kept[key] == value
        if isinstance(record["pid"], str):
            assert row["pid"] is None
            assert kept["pid"] == record["pid"]
        else:
            assert row["pid"] == record["pid"]
    step = next(row for row in found if row["name"] == "training_step")
    assert step["ts"] == 1790857026000000000 + int(
        f"{next(r['ts'] for r in wanted if r['name'] == 'training_step'):.3f}".replace(".", "")
    )


def test_unfinished_files_of_1x(tmp_path: Path) -> None:
    path = write(tmp_path / "t.pfw", event(id=1), event(id=2), start="  ")
    assert [row["id"] for row in rows(path)] == [1, 2]
    assert not trace.summarise(path).damaged


def test_a_child_that_shared_its_parents_file(tmp_path: Path) -> None:
    first, second = (json.dumps(event(id=number)) for number in (1, 2))
    path = tmp_path / "t.pfw"
    path.write_text(f"[\n{first}\n]\n{second}\n]")
    assert [row["id"] for row in rows(path)] == [1, 2]
    assert not trace.summarise(path).damaged


def test_commas_and_strings_for_numbers(tmp_path: Path) -> None:
    text = json.dumps(event(ts="1000", dur="20", pid="7", args={"count": "1", "ret": "x"}))
    path = tmp_path / "t.pfw"
    path.write_text(f"[\n{text},\n{text}\n]")
    one, two = rows(path)
    assert one == two
    assert (one["ts"], one["dur"], one["pid"], one["count"]) == (1000, 20, 7, 1)
    assert (one["ret"], one["args"]) == (None, '{"ret":"x"}')


def test_aggregates_and_counters(tmp_path: Path) -> None:
    numbers = {"dur_min": 1, "dur_max": 20, "dur_sum": 68, "dft_cnt": 20}
    aggregate = {"name": "step", "cat": "compute", "ts": 5, "ph": 3, "pid": 1, "tid": 1}
    path = write(
        tmp_path / "t.pfw",
        {**aggregate, "args": numbers},
        {"name": "cpu", "cat": "sys", "ts": 6, "ph": 2, "pid": 0, "tid": 0, "args": {"user": 1.5}},
    )
    one, two = rows(path)
    assert (one["ph"], two["ph"]) == ("A", "C")
    assert json.loads(str(one["args"])) == numbers
    row = trace.summarise(path).rows["compute", "step"]
    assert (row.count, row.total, row.shortest, row.longest) == (20, 68000, 1000, 20000)


def test_other_units_of_time(tmp_path: Path) -> None:
    metric = {"name": "CM", "cat": "dftracer", "pid": 5, "tid": 5, "ph": "M"}
    for unit, factor in (("NS", 1), ("US", 1000), ("MS", 10**6), ("SEC", 10**9)):
        path = write(
            tmp_path / f"{unit}.pfw",
            {**metric, "args": {"name": "time_metric", "value": unit}},
            event(ts=1234567, dur=89),
        )
        (row,) = rows(path, time_unit="ns")
        assert (row["ts"], row["dur"]) == (1234567 * factor, 89 * factor)


def test_hashes_are_resolved_wherever_they_are_explained(tmp_path: Path) -> None:
    own = {"cat": "dftracer", "pid": 5, "tid": 5, "ph": "M"}
    late = {**own, "name": "FH", "args": {"hhash": "h", "name": "/late", "value": "aa"}}
    elsewhere = {**own, "name": "FH", "args": {"hhash": "h", "name": "/parent", "value": "bb"}}
    host = {**own, "name": "HH", "args": {"hhash": "h", "name": "node", "value": "h"}}
    uses = [event(args={"hhash": "h", "fhash": value}) for value in ("aa", "bb", "cc")]
    child = write(tmp_path / "a.pfw", *uses, late)
    parent = write(tmp_path / "b.pfw", host, elsewhere)
    found = rows([child, parent])
    assert [row["fname"] for row in found] == ["/late", "/parent", "#cc"]
    assert {row["host"] for row in found} == {"node"}
    summary = trace.summarise_all([child, parent])
    assert [file.path for file in summary.used] == ["#cc", "/late", "/parent"]


def test_arrays_and_documents_of_others(tmp_path: Path) -> None:
    records = [event(id=number) for number in range(50)]
    shapes = {
        "line.json": json.dumps(records),
        "pretty.json": json.dumps(records, indent=2),
        "object.json": json.dumps({"traceEvents": records, "x": {"traceEvents": [1]}}),
        "pretty-object.json": json.dumps({"a": [1], "traceEvents": records}, indent=1),
    }
    for name, text in shapes.items():
        path = tmp_path / name
        path.write_text(text)
        assert [row["id"] for row in rows(path)] == list(range(50)), name
        assert not trace.summarise(path).damaged, name


def test_a_clock_behind_the_events(tmp_path: Path) -> None:
    path = tmp_path / "t.json.gz"
    records = [event(id=number, ts=number, args={"pad": "x" * 500}) for number in range(3000)]
    text = json.dumps({"traceEvents": records, "baseTimeNanoseconds": 5 * 10**15}, indent=1)
    path.write_bytes(gzip.compress(text.encode()))
    found = rows(path)
    assert [row["ts"] for row in found] == [5 * 10**12 + number for number in range(3000)]

"""There is a report of whatever a trace holds: empty, damaged, foreign, hostile."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import duckdb
import pytest
from support.command import dftracer
from support.synthetic_program import Program, training

from dftracer import reports
from dftracer.errors import DFTracerError
from dftracer.reports.model import SCHEMAS
from dftracer.reports.render.summary import summarise
from dftracer.reports.store import Store
from dftracer.trace import is_trace

DATA = Path(__file__).parents[1] / "data"
FOREIGN = sorted(path for path in DATA.iterdir() if is_trace(path))


def test_the_command_and_its_formats(tmp_path: Path) -> None:
    place = tmp_path / "traces"
    place.mkdir()
    training(rank=3).write(place)
    done = dftracer("report", place, cwd=tmp_path)
    assert "40 steps in 2 epochs" in done.stdout
    assert "No findings" in done.stdout
    assert done.stderr == ""
    words = ("--json", "--csv", "c", "--parquet", "p")
    told = json.loads(dftracer("report", place, *words, cwd=tmp_path).stdout)
    report = reports.load(place)
    assert set(told) == {"traces", *SCHEMAS}
    with duckdb.connect() as connection:
        for name, table in report.tables.items():
            assert told[name] == table.dicts(), name
            with open(tmp_path / "c" / f"{name}.csv", newline="") as file:
                rows = list(csv.reader(file))
            assert tuple(rows[0]) == table.columns
            assert len(rows) - 1 == len(table)
            found = connection.execute(f"from '{tmp_path / 'p' / f'{name}.parquet'}'").fetchall()
            assert found == table.rows, name
    frame = report.steps.df()
    assert frame["dur_ns"].sum() == sum(report.steps.column("dur_ns"))
    assert str(frame["rank"].dtype) == "Int64"
    assert "<table>" in report._repr_html_()
    with pytest.raises(AttributeError, match="no table 'nonsense'"):
        _ = report.nonsense


@pytest.mark.parametrize("path", FOREIGN, ids=lambda path: path.name)
def test_traces_of_others(path: Path) -> None:
    report = reports.load(path)
    (overview,) = report.overview
    assert overview["events"] > 0
    assert overview["job_ns"] > 0
    assert sum(call["count"] for call in report.calls) == overview["events"]
    assert len(report.processes) == overview["processes"]
    assert summarise(report)
    if "dftracer" in path.name:
        # The same program under every release: 6 reads and 6 writes of 100 to 105 bytes.
        assert (overview["read_bytes"], overview["write_bytes"]) == (615, 615)
        assert {file["fname"] for file in report.files} == {
            "/data/demo/data/part-0.bin",
            "/data/demo/data/part-1.bin",
        }
    if "torch" in path.name:
        assert overview["compute_ns"] > 0
        assert len(report.torch_ops) > 0


def test_an_aggregate_stands_for_its_calls(tmp_path: Path) -> None:
    path = tmp_path / "a.pfw"
    args = {"hhash": "aa", "dur_max": 20, "dur_min": 1, "dur_sum": 68, "dft_cnt": 20}
    record = {"name": "read", "cat": "POSIX", "ts": 5, "ph": 3, "pid": 1, "tid": 1, "args": args}
    path.write_text("[\n" + json.dumps(record) + "\n")
    (call,) = reports.load(path).calls
    assert (call["count"], call["total_ns"]) == (20, 68_000)
    assert (call["min_ns"], call["max_ns"]) == (1000, 20_000)


EMPTY = {
    "nothing but a bracket": "[\n",
    "a start and no events": "\n".join(["[", *Program().lines, ""]),
    "only blank lines": "\n\n\n",
}


@pytest.mark.parametrize("text", EMPTY.values(), ids=EMPTY.keys())
def test_no_events(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.pfw").write_text(text)
    report = reports.load(tmp_path)
    (overview,) = report.overview
    assert overview["events"] == 0
    assert "no events at all" in overview["not_traced"]
    assert len(report.findings) == 0
    done = dftracer("report", tmp_path, cwd=tmp_path, expect=None)
    assert done.rc in (0, 3)
    assert "0 events" in done.stdout
    assert "Traceback" not in done.stderr


def test_a_damaged_trace(tmp_path: Path) -> None:
    path = training().write(tmp_path)
    data = gzip.compress(path.read_bytes())
    path.unlink()
    (tmp_path / "t.pfw.gz").write_bytes(data[: len(data) * 2 // 3])
    done = dftracer("report", tmp_path, cwd=tmp_path, expect=3)
    assert "training" in done.stdout
    assert "damaged" in done.stdout
    assert "t.pfw.gz" in done.stderr
    assert reports.load(tmp_path).damage.damaged


def test_without_io_and_without_compute(tmp_path: Path) -> None:
    training().write(tmp_path)
    (overview,) = reports.load(tmp_path).overview
    assert "no I/O calls" in overview["not_traced"]
    other = tmp_path / "other"
    other.mkdir()
    program = Program()
    program.read("/d/a", 5, 5)
    program.span("app", "region", 5)
    program.write(other)
    (overview,) = reports.load(other).overview
    assert "no compute regions" in overview["not_traced"]


def test_hostile_numbers_and_names(tmp_path: Path) -> None:
    program = Program()
    most = (1 << 63) - 1
    for dur in (most, -5, 0):
        program._line("write", "POSIX", 10, dur, {"ret": most, "count": most, "fname": "/d/a"})
    for offset in (most, -most, 0):
        program._line("pread", "POSIX", 20, 1, {"ret": 9, "offset": offset, "fname": "/d/b"})
    for ts in (most, -most - 1, 4 * 10**15):
        program._line("forward", "compute", ts, 1, {"epoch": most, "step": -most})
    program._line("'; drop table e; --", "\x1b[31m\n</script>", 30, 9999, {"fname": "/d/\x07\n'x"})
    for number in range(80):  # more categories than the sweep has lanes
        program._line("n", f"cat {number}", 100 + number, 5, {})
    program.write(tmp_path)
    report = reports.load(tmp_path)
    assert report.overview.dicts()[0]["events"] == 90
    layers = {layer["cat"]: layer for layer in report.layers}
    assert all(layers[f"cat {number}"]["union_ns"] == 5000 for number in range(80))
    text = "\n".join(summarise(report))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "&lt;/script&gt;" in report.layers._repr_html_()


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    training().write(tmp_path)
    (tmp_path / "file").write_text("x")
    for words, code in (
        (("nowhere",), 2),
        ((".", "--csv", "file"), 1),
        ((".", "--threads", "-1"), 2),
    ):
        done = dftracer("report", *words, cwd=tmp_path, expect=code)
        assert done.stdout == ""
        assert len(done.stderr.splitlines()) == 1, done.stderr


def test_what_duckdb_cannot_do_is_one_line() -> None:
    with Store(1) as store, pytest.raises(DFTracerError, match="nowhere") as caught:
        store.run("from nowhere")
    assert "\n" not in str(caught.value)
    assert not Path(store.place).exists()

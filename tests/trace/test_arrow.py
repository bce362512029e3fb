"""dftracer.trace.read: the table that other tools take."""

from __future__ import annotations

import gc
import json
from pathlib import Path

import duckdb
import polars
import pyarrow as pa
import pytest
from support.members import pack

from dftracer import trace
from dftracer.errors import DFTracerError

DATA = Path(__file__).resolve().parents[1] / "data"
OURS = DATA / "ours.pfw.gz"


def test_columns_and_values() -> None:
    table = pa.table(trace.read(OURS))
    table.validate(full=True)
    assert tuple(table.column_names) == trace.COLUMNS
    found = table.to_pylist()
    assert len(found) == 201
    write = next(row for row in found if row["name"] == "write" and row["ret"] == 7)
    assert write["fname"] == "/data/demo/part-é.bin"
    assert (write["count"], write["bytes"], write["level"], write["parent"]) == (7, 7, 1, None)
    assert (write["host"], write["rank"], write["process"], write["args"]) == ("node1", 3, 0, None)
    odd = next(row for row in found if row["step"] == 7)
    assert odd["name"] == 'step \\ "quoted"'
    assert json.loads(odd["args"]) == {"why": "a\nb"}
    assert {row["trace"] for row in found} == {str(OURS)}


def test_the_same_in_every_tool() -> None:
    source = trace.read(OURS, columns=["name", "dur"])
    query = "select name::varchar n, count(*) c, sum(dur)::bigint d from source group by all"
    by_duckdb = sorted(duckdb.sql(query).fetchall())
    frame = polars.DataFrame(source)
    by_polars = sorted(
        frame.group_by(polars.col("name").cast(polars.String))
        .agg(polars.len(), polars.col("dur").sum())
        .rows()
    )
    pandas = pa.table(source).to_pandas()
    by_pandas = sorted(
        (str(name), len(group), int(group["dur"].sum()))
        for name, group in pandas.groupby("name", observed=True)
    )
    rows = trace.summarise(OURS).rows.values()
    by_summary = sorted((row.name, row.count, row.total // 1000) for row in rows)
    assert by_duckdb == by_polars == by_pandas == by_summary


def test_batches_stream_in_order_on_any_number_of_threads(tmp_path: Path) -> None:
    line = (
        '{{"id":{0},"name":"n{1}","cat":"c","pid":5,"tid":6,"ts":{0},"dur":1,"ph":"X","args":{{}}}}'
    )
    lines = [line.format(number, number % 9).encode() for number in range(40_000)]
    path = tmp_path / "t.pfw.gz"
    path.write_bytes(b"".join(pack(lines, 1000)))
    for threads in (1, 3):
        reader = pa.RecordBatchReader.from_stream(trace.read(path, threads=threads))
        batches = list(reader)
        assert len(batches) > 3
        ids = [number for batch in batches for number in batch.column("id").to_pylist()]
        assert ids == list(range(40_000))


def test_an_argument_called_hostname_is_the_programs_own(tmp_path: Path) -> None:
    line = (
        '{"id":1,"name":"n","cat":"c","pid":5,"tid":6,"ts":1,"dur":1,"ph":"X",'
        '"args":{"hhash":"0123456789abcdef","hostname":"elsewhere"}}'
    )
    other = line.replace(',"hostname":"elsewhere"', "")
    path = tmp_path / "t.pfw.gz"
    path.write_bytes(b"".join(pack([line.encode(), other.encode()], 10)))
    rows = pa.table(trace.read(path)).to_pylist()
    assert [row["host"] for row in rows] == [rows[1]["host"]] * 2
    assert [row["process"] for row in rows] == [rows[1]["process"]] * 2
    assert json.loads(rows[0]["args"]) == {"hostname": "elsewhere"}
    for by_path in (True, False):  # all arguments are read, or only the host
        assert len(trace.summarise_all([path], by_path=by_path).processes) == 1


def test_a_stream_that_is_dropped_early() -> None:
    for _ in range(20):
        source = trace.read([OURS] * 20)
        reader = pa.RecordBatchReader.from_stream(source)
        reader.read_next_batch()
        del reader
        gc.collect()
        assert source.damage is None
    # Never taken at all.
    trace.read(OURS).__arrow_c_stream__()


def test_what_was_read_is_told_at_the_end() -> None:
    source = trace.read([OURS, DATA / "dftracer-2.2.0.pfw.gz"])
    assert source.damage is None
    pa.table(source)
    damage = source.damage
    assert damage is not None
    assert not damage.damaged
    assert (damage.files, damage.events, source.rows) == (2, 249, 249)
    assert damage.bytes_read == damage.bytes_on_disk


def test_all_records() -> None:
    table = pa.table(trace.read(OURS, records="all")).to_pylist()
    names = [row["name"] for row in table if row["cat"] == "dftracer"]
    assert names[0] == "HH"
    assert names[-1] == "end"
    assert len(table) == 212
    host = next(row for row in table if row["name"] == "HH")
    assert json.loads(host["args"])["name"] == "node1"


@pytest.mark.parametrize(
    "options", [{"columns": ["nix"]}, {"time_unit": "s"}, {"records": "some"}]
)  # fmt: skip
def test_mistakes(options: dict[str, object]) -> None:
    with pytest.raises(DFTracerError):
        trace.read(OURS, **options)  # type: ignore[arg-type]


def test_a_directory_with_strangers(tmp_path: Path) -> None:
    (tmp_path / "t.pfw.gz").write_bytes(OURS.read_bytes())
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / ".hidden.pfw").write_text("{}")
    (tmp_path / "sub.pfw").mkdir()
    assert trace.read(tmp_path).files == [tmp_path / "t.pfw.gz"]
    assert trace.read(tmp_path / "t.pfw").files == [tmp_path / "t.pfw.gz"]
    with pytest.raises(DFTracerError, match="no such file"):
        trace.read(tmp_path / "u.pfw")

"""The reading commands: what they print, write and end with."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest

from dftracer import _names, trace
from dftracer.commands import query
from dftracer.commands._cli.main import main

if TYPE_CHECKING:
    from support.perfetto_importer import Importer

DATA = Path(__file__).resolve().parents[1] / "data"
OURS = DATA / "ours.pfw.gz"
EVENTS = 817  # of all golden traces together
LINKS = 36  # of them, between spans of torch.profiler

Capture = pytest.CaptureFixture[str]


def test_stats_adds_up(capsys: Capture) -> None:
    assert main(["stats", str(OURS)]) == 0
    text = capsys.readouterr().out
    assert "POSIX     write" in text
    assert "/data/demo/part-é.bin" in text
    assert text.splitlines()[-1].startswith("1 file, 1 process, 201 events, ")


def test_stats_are_equal_for_any_number_of_threads(capsys: Capture) -> None:
    answers = []
    for threads in ("1", "2", "5"):
        assert main(["stats", "--json", "--threads", threads, str(DATA)]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    assert answers[0] == answers[1] == answers[2]
    assert answers[0]["events"] == EVENTS
    assert sum(row["count"] for row in answers[0]["names"]) == EVENTS
    assert sum(process["events"] for process in answers[0]["processes"]) == EVENTS


def test_info_as_json(capsys: Capture) -> None:
    assert main(["info", "--json", str(OURS)]) == 0
    found = json.loads(capsys.readouterr().out)
    (file,) = found["files"]
    assert (file["events"], file["status"]) == (201, "ended cleanly")
    (process,) = file["processes"]
    assert (process["rank"], process["host"], process["threads"]) == ("3", "node1", 1)


def test_query_formats(tmp_path: Path, capsys: Capture) -> None:
    sql = "select name, count(*) n, sum(bytes)::bigint b from events where name in ('write', 'step') group by all order by name"  # noqa: E501
    wanted = [("step", 39, None), ("write", 40, 780)]
    assert main(["query", sql, str(OURS)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines] == [
        ["name", "n", "b"],
        ["step", "39"],
        ["write", "40", "780"],
    ]
    assert main(["query", sql, str(OURS), "--format", "csv"]) == 0
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert rows == [["name", "n", "b"], ["step", "39", ""], ["write", "40", "780"]]
    assert main(["query", sql, str(OURS), "--json"]) == 0
    assert [tuple(row.values()) for row in json.loads(capsys.readouterr().out)] == wanted
    out = tmp_path / "o'ut.parquet"
    assert main(["query", sql + ";", str(OURS), "-o", str(out)]) == 0
    assert duckdb.read_parquet(str(out)).fetchall() == wanted


def test_query_joins_the_small_tables(capsys: Capture) -> None:
    sql = (
        "select p.pid, p.command, h.host, count(*) n from events e "
        "join processes p using (process) join hosts h on h.host = p.host "
        "join files f on f.fname = e.fname group by all"
    )
    assert main(["query", sql, str(OURS), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["command"], row["host"], row["n"]) == ("python demo.py", "node1", 161)
    # The number of a process is the same in both tables, for every dialect.
    sql = (
        "select count(*) n from events e join processes p on e.process = p.process "
        "and e.pid is not distinct from coalesce(nullif(p.pid, 0), e.pid) and e.trace = p.trace"
    )
    assert main(["query", sql, str(DATA), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"n": EVENTS}]


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("select count(*) from events", ("id",)),
        ("select name, sum(dur) from events group by all", ("name", "dur")),
        ("SELECT Name FROM events WHERE ts > 5", ("name", "ts")),
        ("select * from events", None),
        ("from events", None),
        ("summarize events", None),
        ("(from events) union all (select 1)", None),
        ("with t as (from events) select name from t", None),
        ("select name from events order by all", ("name",)),
        ("select e.name from events e join events f using (ts)", ("name", "ts")),
        ("select to_json(events) from events", None),
        ("select count(distinct e) from events e", None),
        ("select E from events as e", None),
        ("select e, e.name from events as e", None),
        ("with t as (select name from events) select t from t", None),
        ("select e.args.x from events e", ("args",)),
        ("select name from events natural join processes", None),
        ("select a from events as t(a)", None),
        ("select #2 from events", None),
        ("pivot events on name", None),
        ("select name from query_table('events')", None),
        ("select columns('n.*') from events", None),
    ],
)
def test_only_columns_that_are_named_are_read(sql: str, columns: tuple[str, ...] | None) -> None:
    assert query.columns_for(sql) == columns


def test_mistakes_are_one_line(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "t.pfw").write_bytes(b"[\n")
    cases = [
        (["query", "select * from nix", str(OURS)], 1),
        (["query", "selec", str(OURS)], 1),
        (["query", "select 1", str(OURS), "--format", "parquet"], 2),
        (["query", "select 1", str(tmp_path / "none.pfw")], 2),
        (["export", "--to", "chrome", str(OURS), "-o", str(tmp_path / "no" / "x")], 2),
        (["export", "--to", "chrome", str(OURS), "-o", str(OURS)], 2),
        (["stats", "--threads", "-1", str(OURS)], 2),
    ]
    for words, code in cases:
        assert main(words) == code, words
        error = capsys.readouterr().err
        assert error.startswith("dftracer: ")
        assert error.count("\n") == 1, error


def test_without_duckdb(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert main(["query", "select 1", str(OURS)]) == 1
    assert "pip install 'pydftracer[report]'" in capsys.readouterr().err


def test_export_to_chrome_is_strict_json(tmp_path: Path, perfetto: Importer) -> None:
    out = tmp_path / "x.json"
    assert main(["export", "--to", "chrome", str(DATA), "-o", str(out)]) == 0
    records = json.loads(out.read_text())["traceEvents"]
    assert sum(r["ph"] != "M" and r["cat"] != "dftracer" for r in records) == EVENTS
    assert all(isinstance(record["ph"], str) for record in records)
    assert list(tmp_path.iterdir()) == [out]
    loaded = perfetto.load(out)
    assert loaded.clean
    own = sum(r["ph"] in ("X", "i") and r["cat"] == "dftracer" for r in records)
    assert loaded.slices == EVENTS - LINKS + own


def test_export_to_perfetto(tmp_path: Path, perfetto: Importer) -> None:
    out = tmp_path / "x.pftrace"
    assert main(["export", "--to", "perfetto", str(DATA), "-o", str(out)]) == 0
    found = perfetto.load(out)
    assert found.clean
    assert found.slices == EVENTS
    sql = "select ts, dur from slice where name = 'training_step' order by ts limit 1"
    (row,) = perfetto.query(sql)
    assert (row["ts"] % 1000, row["dur"]) == (68, 75213843)  # nanoseconds


def test_export_to_speedscope(tmp_path: Path) -> None:
    out = tmp_path / "x.json"
    assert main(["export", "--to", "speedscope", str(DATA), "-o", str(out)]) == 0
    found = json.loads(out.read_text())
    frames = found["shared"]["frames"]
    opened = 0
    for profile in found["profiles"]:
        stack: list[int] = []
        last = profile["startValue"]
        for item in profile["events"]:
            assert item["at"] >= last
            last = item["at"]
            if item["type"] == "O":
                assert 0 <= item["frame"] < len(frames)
                stack.append(item["frame"])
                opened += 1
            else:
                assert stack.pop() == item["frame"]
        assert not stack
        assert last <= profile["endValue"]
    assert opened == EVENTS


def test_export_to_parquet(tmp_path: Path) -> None:
    out = tmp_path / "x.parquet"
    assert main(["export", "--to", "parquet", str(DATA), "-o", str(out)]) == 0
    sql = "select count(*), count(distinct fname), sum(bytes)::bigint from read_parquet(?)"
    assert duckdb.execute(sql, [str(out)]).fetchall() == [(EVENTS, 4, 780 + 6150)]


HOSTILE = ["POSIX", "posix", "a/b", "..", "", "x=y", "12", "*?[a]", "50 %41", "\u00e9", "NULL"]


def test_export_to_parquet_by_category(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "hostile.pfw"
    common = {"pid": 5, "tid": 5, "dur": 1, "ph": "X"}
    rows = [
        {"id": number, "name": "n", "cat": cat, "ts": 10 * number, **common}
        for number, cat in enumerate(HOSTILE)
    ]
    rows.append({"id": 99, "name": "bare", "ts": 990, **common})
    path.write_text("[\n" + "".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "par't"
    words = ["export", "--to", "parquet", "--partition", "--json", str(path), str(OURS)]
    assert main([*words, "-o", str(out)]) == 0
    facts = json.loads(capsys.readouterr().out)
    total = len(rows) + trace.summarise_all([OURS]).events
    assert (facts["events"], facts["written"]) == (total, total)
    assert facts["bytes"] == sum(file.stat().st_size for file in out.rglob("*.parquet"))
    quoted = str(out / "*" / "*.parquet").replace("'", "''")
    # As every reader of such directories does it; a category is text, whatever it looks like.
    table = f"read_parquet('{quoted}', hive_partitioning = true, hive_types = {{cat: varchar}})"
    found = duckdb.sql(f"select cat, count(*) from {table} group by cat").fetchall()
    source = trace.read([path, OURS], columns=["cat"])  # noqa: F841  (named in the SQL)
    wanted = duckdb.sql("select cat, count(*) from source group by cat").fetchall()
    assert sorted(found, key=str) == sorted(wanted, key=str)
    assert len(list(out.iterdir())) == len(wanted)
    assert {entry.name for entry in tmp_path.iterdir()} == {"hostile.pfw", "par't"}


def test_a_directory_that_is_in_use_is_left_alone(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "mine").write_text("x")
    words = ["export", "--to", "parquet", "--partition", str(OURS), "-o"]
    assert main([*words, str(tmp_path)]) == 2
    assert "already exists" in capsys.readouterr().err
    assert [entry.name for entry in tmp_path.iterdir()] == ["mine"]
    (tmp_path / "empty").mkdir()
    assert main([*words, str(tmp_path / "empty")]) == 0
    assert main(["export", "--to", "chrome", "--partition", str(OURS), "-o", "x.json"]) == 2


def test_a_failed_export_leaves_nothing(tmp_path: Path, capsys: Capture) -> None:
    place = tmp_path / "full"
    place.symlink_to("/dev/full")
    assert main(["export", "--to", "chrome", str(OURS), "-o", str(place)]) == 1
    assert "No space left" in capsys.readouterr().err


def test_files_of_a_run_know_each_other(tmp_path: Path, capsys: Capture) -> None:
    own = {"cat": "dftracer", "pid": 5, "tid": 5, "ts": 1, "dur": 0, "ph": "X"}
    for name, run in (("a", "r1"), ("b", "r1"), ("c", "r2")):
        args = {"hhash": "h", "run": run, "proc": name}
        records = [{"id": 1, "name": "start", **own, "args": args}]
        records += [{**own, "id": 2, "name": "n", "cat": "c", "args": {"hhash": "h"}}]
        text = "[\n" + "".join(json.dumps(record) + "\n" for record in records)
        (tmp_path / f"{name}.pfw").write_text(text)
    assert main(["info", str(tmp_path / "a.pfw")]) == 0
    assert "1 more file of this run beside it; --run includes them" in capsys.readouterr().out
    assert main(["info", "--run", str(tmp_path / "a.pfw")]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("2 files, 2 processes, 2 events")


def test_nothing_that_reads_is_loaded_into_a_traced_program() -> None:
    code = (
        "import sys, dftracer.python; from pathlib import Path; "
        "maps = Path('/proc/self/maps').read_text(); "
        "print('_reader' in maps, any('reader' in name or name == 'dftracer.trace' "
        "for name in sys.modules if name.startswith('dftracer')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"


@pytest.mark.parametrize("verb", ["stats", "info"])
def test_a_name_of_a_megabyte_is_measured_once(
    tmp_path: Path, verb: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """Shortening it looked at all that was left of it for each character that it took away."""
    name = "n" * 1_000_000 + "end"
    record = {"id": 1, "name": name, "cat": name, "pid": 5, "tid": 6, "ts": 7, "dur": 8, "ph": "X"}
    path = tmp_path / "t.pfw"
    path.write_text("[\n" + json.dumps({**record, "args": {"fname": name}}) + "\n")
    measured = 0
    real = _names.columns_of

    def counted(text: str) -> int:
        nonlocal measured
        measured += len(text)
        return real(text)

    monkeypatch.setattr(_names, "columns_of", counted)
    assert main([verb, str(path)]) == 0
    assert "end" in capsys.readouterr().out
    assert measured < 10 * len(name)


@pytest.mark.parametrize("keep_start", [False, True])
@pytest.mark.parametrize("text", ["abcdef", "日本語テキスト", "e\u0301" * 9, "", "ab"])
def test_shortened_texts_take_the_room_that_there_is(text: str, keep_start: bool) -> None:
    for room in range(8):
        found = _names.shorten(text, room, keep_start=keep_start)
        assert _names.columns_of(found) <= room
        if _names.columns_of(text) <= room:
            assert found == text
        elif room > 2:
            assert _names.columns_of(found) >= room - 1

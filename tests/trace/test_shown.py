"""What viewers show of a trace: all spans, at their times, in rows with names, and paths.

The judge is Perfetto's importer, which drops spans that cross on a row.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support import synthetic
from support.command import COMMAND, dftracer, environment
from support.synthetic import EPOCH, hash_of

from dftracer import _reader
from dftracer.commands._cli.main import main

if TYPE_CHECKING:
    from support.perfetto_importer import Importer

FORMS = ["chrome", "perfetto", "view"]
UNITS = {"NS": 1, "US": 10**3, "MS": 10**6, "SEC": 10**9}
Span = tuple[str, int, int]


def written(form: str, traces: Sequence[Path], out: Path) -> Path:
    if form == "view":
        _reader.view(traces, out)
    else:
        words = ["export", "--to", form, *map(str, traces), "-o", str(out)]
        assert main(words) == 0
    return out


def base_of(path: Path) -> int:
    """What a Chrome document's times count from."""
    if path.read_bytes()[:1] != b"{":
        return 0
    found = json.loads(path.read_text()).get("baseTimeNanoseconds", 0)
    assert isinstance(found, int)
    return found


def slices(perfetto: Importer, path: Path) -> list[Span]:
    """All of the program: name, start and duration in nanoseconds."""
    loaded = perfetto.load(path)
    assert loaded.clean, loaded
    rows = perfetto.query("select name, ts, dur from slice where category != 'dftracer'")
    base = base_of(path)
    return sorted((row["name"], row["ts"] + base, row["dur"]) for row in rows)


def spans_of(records: Sequence[dict[str, Any]], unit: int = 1000) -> list[Span]:
    return sorted(
        (one["name"], one["ts"] * unit, one["dur"] * unit)
        for one in records
        if one["ph"] == "X" and one["cat"] != "dftracer"
    )


def process(pid: int, records: list[dict[str, Any]], **facts: Any) -> list[dict[str, Any]]:
    """One that began, with records of its own behind."""
    head = synthetic.process(pid=pid, events=0, **facts)
    hhash = hash_of(str(facts.get("host", "node0")))
    common = {"cat": "app", "pid": pid, "tid": pid, "ph": "X"}
    own = [
        {"id": 100 + n, **common, **one}
        | {"args": {"hhash": hhash, "p_idx": -1, "level": 1, **one.get("args", {})}}
        for n, one in enumerate(records)
    ]
    head[-1]["args"]["num_events"] += len(own)
    return [*head[:-1], *own, head[-1]]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("keyed", [True, False])
def test_two_hosts_with_one_pid_lose_no_span(
    form: str, keyed: bool, tmp_path: Path, perfetto: Importer
) -> None:
    """At the same times, half a span apart: on one row each would cross another."""
    wanted: list[Span] = []
    paths = []
    for index, host in enumerate(("node0", "node1")):
        records = synthetic.process(pid=7, host=host, events=50, start=EPOCH + 3 * index)
        wanted += spans_of(records)
        if not keyed:
            records = synthetic.numeric(records)
        paths.append(synthetic.write(tmp_path / f"{host}.pfw.gz", records))
    assert slices(perfetto, written(form, paths, tmp_path / "out")) == sorted(wanted)
    names = [row["name"] for row in perfetto.query("select name from process where name not null")]
    assert sorted(names) == [
        "main: train.py --epochs 3 on node0",
        "main: train.py --epochs 3 on node1 (pid 7)",
    ]


def test_two_containers_of_one_host_name_and_pid_are_two_rows(
    tmp_path: Path, perfetto: Importer
) -> None:
    paths = []
    for index in range(2):
        records = synthetic.process(pid=1, key=f"c{index}", events=20, start=EPOCH + 3 * index)
        paths.append(synthetic.write(tmp_path / f"{index}.pfw.gz", records))
    assert len(slices(perfetto, written("view", paths, tmp_path / "out"))) == 40
    assert perfetto.query("select count(*) as n from process where pid > 0") == [{"n": 2}]


def test_pieces_of_one_process_are_one_row(tmp_path: Path, perfetto: Importer) -> None:
    records = synthetic.process(pid=7, events=20)
    head = next(n for n, one in enumerate(records) if one["name"] == "start") + 1
    paths = [
        synthetic.write(tmp_path / "a.pfw.gz", records[:-10]),
        synthetic.write(tmp_path / "b.pfw.gz", records[:head] + records[-10:]),
    ]
    assert slices(perfetto, written("view", paths, tmp_path / "out")) == spans_of(records)
    assert perfetto.query("select count(*) as n from process where pid > 0") == [{"n": 1}]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("metric", list(UNITS))
def test_spans_stand_at_their_times_in_every_metric(
    form: str, metric: str, tmp_path: Path, perfetto: Importer
) -> None:
    unit = UNITS[metric]
    start = EPOCH * 1000 // unit
    spans = [
        {"name": "outer", "ts": start, "dur": 9, "id": 1},
        {"name": "first", "ts": start + 1, "dur": 3, "id": 2},
        {"name": "second", "ts": start + 4, "dur": 5, "id": 3},
        {"name": "after", "ts": start + 9, "dur": 1, "id": 4},
    ]
    records = process(7, spans, start=start)
    metric_record = {"name": "CM", "cat": "dftracer", "pid": 7, "tid": 7, "ph": "M"}
    records.insert(0, {**metric_record, "args": {"name": "time_metric", "value": metric}})
    path = synthetic.write(tmp_path / "a.pfw.gz", records)
    assert slices(perfetto, written(form, [path], tmp_path / "out")) == spans_of(records, unit)
    rows = perfetto.query("select name, depth from slice where category = 'app' order by name")
    depths = {row["name"]: row["depth"] for row in rows}
    assert depths == {"outer": 0, "first": 1, "second": 1, "after": 0}


@pytest.mark.parametrize("form", FORMS)
def test_calls_of_one_millisecond_keep_their_order_and_are_all_there(
    form: str, tmp_path: Path, perfetto: Importer
) -> None:
    start = EPOCH // 1000
    spans = [{"name": f"call {n:03}", "ts": start, "dur": 0} for n in range(600)]
    spans.append({"name": "long", "ts": start, "dur": 2})
    records = process(7, spans, start=start - 1)
    metric_record = {"name": "CM", "cat": "dftracer", "pid": 7, "tid": 7, "ph": "M"}
    records.insert(0, {**metric_record, "args": {"name": "time_metric", "value": "MS"}})
    path = synthetic.write(tmp_path / "a.pfw.gz", records)
    found = slices(perfetto, written(form, [path], tmp_path / "out"))
    assert len(found) == 601
    # A start is not known better than the clock tells.
    assert all(0 <= at - start * 10**6 < 10**6 for _, at, _ in found)
    rows = perfetto.query(
        "select count(distinct track_id) as tracks, max(depth) as depth from slice"
        " where category = 'app'"
    )
    assert rows[0]["tracks"] == 1
    if form != "chrome":  # whose times are exact, so that Perfetto piles them up
        assert rows[0]["depth"] == 0
        order = perfetto.query("select name from slice where name like 'call%' order by ts, id")
        assert [row["name"] for row in order] == [f"call {n:03}" for n in range(600)]


@pytest.mark.parametrize("form", FORMS)
def test_rounded_spans_are_cut_by_no_more_than_the_clock_tells(
    form: str, tmp_path: Path, perfetto: Importer
) -> None:
    """As tracers make them that round a beginning and a duration, each by itself."""
    at = EPOCH
    spans = [
        {"name": "outer", "ts": at, "dur": 10, "args": {}},
        {"name": "inner", "ts": at + 5, "dur": 6, "args": {}},  # ends a microsecond after it
        {"name": "early", "ts": at + 20, "dur": 6, "args": {}},
        {"name": "late", "ts": at + 25, "dur": 6, "args": {}},  # begins before that has ended
        {"name": "crossing", "ts": at + 28, "dur": 20, "args": {}},  # really crosses it
    ]
    path = synthetic.write(tmp_path / "a.pfw.gz", process(7, spans))
    found = {
        name: (ts - at * 1000, dur)
        for name, ts, dur in slices(perfetto, written(form, [path], tmp_path / "out"))
    }
    assert found == {
        "outer": (0, 10_000),
        "inner": (5_000, 5_000),
        "early": (20_000, 5_000),
        "late": (25_000, 6_000),
        "crossing": (28_000, 20_000),
    }
    rows = perfetto.query("select name, track_id from slice where category = 'app'")
    tracks = {row["name"]: row["track_id"] for row in rows}
    assert tracks["crossing"] != tracks["late"]
    assert len(set(tracks.values())) == 2


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("merged", [False, True], ids=["alone", "merged"])
def test_a_lane_is_named_by_its_number(
    form: str, merged: bool, tmp_path: Path, perfetto: Importer
) -> None:
    """The tracer's own lanes have no record of their name; other tracers may use such numbers."""
    lane = 1 << 22
    spans = [
        {"name": "step", "ts": EPOCH, "dur": 10, "args": {}},
        {"name": "life", "tid": 7 + lane, "ts": EPOCH + 5, "dur": 10, "args": {}},
        {"name": "second", "tid": 7 + 2 * lane, "ts": EPOCH + 6, "dur": 10, "args": {}},
        {"name": "strange", "tid": 8 + lane, "ts": EPOCH, "dur": 10, "args": {}},
    ]
    path = synthetic.write(tmp_path / "a.pfw.gz", process(7, spans))
    if merged:
        assert main(["merge", str(path), "-o", str(tmp_path / "merged.pfw.gz")]) == 0
        path = tmp_path / "merged.pfw.gz"
    assert len(slices(perfetto, written(form, [path], tmp_path / "out"))) == 4
    rows = perfetto.query(
        "select slice.name as name, coalesce(thread.name, track.name) as row from slice"
        " join track on track_id = track.id left join thread_track on track_id = thread_track.id"
        " left join thread using (utid) where category = 'app'"
    )
    assert {row["name"]: row["row"] for row in rows} == {
        "step": "main",
        "life": "thread 7 crossing 1",
        "second": "thread 7 crossing 2",
        "strange": f"thread {8 + lane}",
    }


@pytest.mark.parametrize("form", FORMS)
def test_a_null_among_the_arguments_is_no_end_of_perfetto(
    form: str, tmp_path: Path, perfetto: Importer
) -> None:
    args = {"none": None, "list": [1, None], "object": {"a": None}, "kept": "yes"}
    path = synthetic.write(
        tmp_path / "a.pfw.gz", process(7, [{"name": "x", "ts": EPOCH, "dur": 1, "args": args}])
    )
    assert slices(perfetto, written(form, [path], tmp_path / "out")) == [("x", EPOCH * 1000, 1000)]
    found = shown_args(perfetto, "x")
    assert found["kept"] == "yes"
    if form == "perfetto":
        assert found["none"] == "null"
        assert json.loads(found["list"]) == [1, None]


def shown_args(perfetto: Importer, name: str) -> dict[str, str]:
    rows = perfetto.query(
        f"select key, display_value from slice join args using (arg_set_id) where name = '{name}'"
    )
    return {row["key"].split(".", 1)[-1]: row["display_value"] for row in rows}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("numbers", [False, True])
def test_a_path_is_shown_and_not_its_hash(
    form: str, numbers: bool, tmp_path: Path, perfetto: Importer
) -> None:
    text = 'quo"te \\ é 大'
    hashes: list[Any] = [hash_of("/data/x"), hash_of("s"), hash_of("y")]
    if numbers:  # as older tracers have them
        hashes = [4711, 2**63 + 5, 99]
    meta = {"cat": "dftracer", "ph": "M"}
    args = {"fhash": hashes[0], "name_hash": hashes[1], "odd_hash": "unknown", "hash": hashes[2]}
    records = [
        {"name": "x", "ts": EPOCH, "dur": 1, "args": args},
        {"name": "own", "ts": EPOCH + 2, "dur": 1, "args": {**args, "fname": "mine"}},
        # What a hash means may stand behind its first use.
        {"name": "FH", **meta, "args": {"name": "/data/x", "value": hashes[0]}},
        {"name": "SH", **meta, "args": {"name": text, "value": hashes[1]}},
        {"name": "SH", **meta, "args": {"name": "why", "value": hashes[2]}},
    ]
    path = synthetic.write(tmp_path / "a.pfw.gz", process(7, records))
    slices(perfetto, written(form, [path], tmp_path / "out"))
    found = shown_args(perfetto, "x")
    assert found["fname"] == "/data/x"
    assert found["hostname"] == "node0"
    assert found["name"] == text
    assert found["hash"] == "why"
    assert found["odd_hash"] == "unknown"
    assert not {"fhash", "hhash", "name_hash"} & set(found)
    # An argument of the program's own keeps its name.
    found = shown_args(perfetto, "own")
    assert (found["fname"], found["fhash"]) == ("mine", "/data/x")
    if form != "perfetto":
        found = shown_args(perfetto, "start")
        assert (found["cmd"], found["cwd"]) == ("train.py;--epochs;3", "/work")


def test_an_exported_trace_is_read_as_it_was(tmp_path: Path) -> None:
    """Names for hashes, and times that count from a base, are what the reader knows."""
    records = synthetic.process(pid=7, events=9)
    path = synthetic.write(tmp_path / "a.pfw.gz", records)
    out = written("chrome", [path], tmp_path / "out.json")
    columns = "select name, cat, ts, dur, pid, tid, host, fname, ret, step from events order by ts"
    answers = [
        dftracer("query", columns, str(one), "--format", "csv", cwd=tmp_path).stdout
        for one in (path, out)
    ]
    assert answers[0] == answers[1]
    assert answers[0].count("\n") == 10


ROLES = [
    # pid, parent, category of its work, program; in no order
    (50, 10, "none", "sh"),
    (30, 10, "data", "python3"),
    (20, 10, "data", "python3"),
    (60, 50, "none", "git"),
    (10, 1, "compute", "python3"),
]


def write_roles(tmp_path: Path) -> list[Path]:
    paths = []
    for at, (pid, parent, category, program) in enumerate(ROLES):
        work = [{"name": "work", "cat": category, "ts": EPOCH + 100 + 10 * at, "dur": 5}]
        records = process(pid, work, parent=parent, start=EPOCH + pid)
        for record in records:
            if record["name"] == "process_name":
                record["args"]["name"] = program
        paths.append(synthetic.write(tmp_path / f"{at}.pfw.gz", records))
    return paths


ROWS = [
    ("main: train.py --epochs 3", 10),
    ("worker 0", 20),
    ("worker 1", 30),
    ("helper: git", 60),
    ("helper: sh", 50),
]


@pytest.mark.parametrize("form", FORMS)
def test_rows_say_who_they_are_and_come_in_that_order(
    form: str, tmp_path: Path, perfetto: Importer
) -> None:
    out = written(form, write_roles(tmp_path), tmp_path / "out")
    slices(perfetto, out)
    # The UI's numbers for processes are in the order of the file.
    rows = perfetto.query("select name, pid from process where pid > 0 order by upid")
    assert [(row["name"], row["pid"]) for row in rows] == ROWS
    if form != "perfetto":
        records = json.loads(out.read_text())["traceEvents"]
        places = {
            one["pid"]: one["args"]["sort_index"]
            for one in records
            if one["name"] == "process_sort_index"
        }
        assert sorted(places, key=lambda pid: places[pid]) == [pid for _, pid in ROWS]


def test_roles_are_those_of_the_report(tmp_path: Path) -> None:
    paths = list(map(str, write_roles(tmp_path)))
    done = dftracer("report", *paths, "--json", "--no-page", cwd=tmp_path)
    roles = {row["pid"]: row["role"] for row in json.loads(done.stdout)["processes"]}
    assert roles == {pid: name.split(":")[0].split(" ")[0] for name, pid in ROWS}


def test_a_script_is_named_without_its_directory(tmp_path: Path, perfetto: Importer) -> None:
    records = process(7, [{"name": "x", "ts": EPOCH, "dur": 1}])
    for record in records:
        if record["args"].get("value") == hash_of("train"):
            record["args"]["name"] = "/usr/bin/python3;../far/away/train.py;/data;\x1b[1m"
    path = synthetic.write(tmp_path / "a.pfw.gz", records)
    slices(perfetto, written("view", [path], tmp_path / "out"))
    (row,) = perfetto.query("select name from process where pid > 0")
    assert row["name"] == "main: python3 train.py /data ?[1m"


def test_what_a_rank_starts_is_below_it(tmp_path: Path, perfetto: Importer) -> None:
    paths = []
    for rank in (10, 2):
        pid = 100 * rank
        work = [{"name": "work", "cat": "compute", "ts": EPOCH, "dur": 5}]
        paths.append((f"main-{rank}", process(pid, work, rank=rank)))
        read = [{"name": "item", "cat": "data", "ts": EPOCH, "dur": 5}]
        paths.append((f"worker-{rank}", process(pid + 1, read, parent=pid)))
    files = [synthetic.write(tmp_path / f"{name}.pfw.gz", one) for name, one in paths]
    slices(perfetto, written("view", files, tmp_path / "out"))
    rows = perfetto.query("select name from process where pid > 0 order by upid")
    assert [row["name"] for row in rows] == [
        "rank 2: train.py --epochs 3",
        "rank 2 worker 0",
        "rank 10: train.py --epochs 3",
        "rank 10 worker 0",
    ]


def test_speedscope_has_the_same_rows(tmp_path: Path) -> None:
    out = written("speedscope", write_roles(tmp_path), tmp_path / "out")
    names = [profile["name"] for profile in json.loads(out.read_text())["profiles"]]
    assert names == [f"{name} (pid {pid}), main" for name, pid in ROWS]


@pytest.mark.parametrize("form", ["chrome", "perfetto", "speedscope", "parquet"])
def test_a_dash_is_stdout(form: str, tmp_path: Path) -> None:
    path = synthetic.write(tmp_path / "a.pfw.gz", synthetic.process(events=9))
    words = [COMMAND, "export", "--to", form, str(path), "-o"]
    done = subprocess.run(
        [*words, "-"], cwd=tmp_path, env=environment(None), capture_output=True, check=True
    )
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    subprocess.run([*words, "file"], cwd=tmp_path, env=environment(None), check=True)
    assert len(done.stdout) == (tmp_path / "file").stat().st_size
    assert done.stderr == b""
    if form != "parquet":  # which has times of its own inside
        assert done.stdout == (tmp_path / "file").read_bytes()


def test_a_dash_is_stdout_for_answers_too(tmp_path: Path) -> None:
    path = synthetic.write(tmp_path / "a.pfw.gz", synthetic.process(events=9))
    sql = "select count(*) as n from events"
    done = dftracer("query", sql, str(path), "--format", "csv", "-o", "-", cwd=tmp_path)
    assert done.stdout == "n\n9\n"
    assert [one.name for one in tmp_path.iterdir()] == [path.name]

"""`dftracer merge`: everybody on one timeline, nobody lost, whatever the order and grouping."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import synthetic
from support.synthetic import EPOCH, events_of, hash_of, lines_of, records_of, torch_document, write
from support.synthetic import merge as merged

from dftracer.commands._cli.main import main
from dftracer.trace import summarise_all

if TYPE_CHECKING:
    from support.perfetto_importer import Importer

DATA = Path(__file__).parent.parent / "data"
GOLDEN = sorted([*DATA.glob("*.pfw*"), DATA / "torch-2.13.trace.json"])


def names(path: Path) -> dict[int, str]:
    return {r["pid"]: r["args"]["name"] for r in records_of(path) if r["name"] == "process_name"}


def test_100_ranks_of_equal_pids_keep_their_rows_and_events(tmp_path: Path, perfetto: Importer):
    ranks = [
        write(
            tmp_path / f"r{rank:03}.pfw.gz", synthetic.process(rank=rank, host=f"node{rank // 50}")
        )
        for rank in range(100)
    ]
    (tmp_path / "out").mkdir()
    out = merged(tmp_path / "out" / "all.pfw.gz", *ranks)
    found = events_of(out)
    assert len(found) == 500
    assert sorted(Counter(event["pid"] for event in found).values()) == [5] * 100
    assert {event["args"].get("pid", 100) for event in found} == {100}
    assert {event["args"].get("tid", 100) for event in found} == {100}
    assert all(event["tid"] == event["pid"] for event in found)
    assert set(names(out).values()) == {f"rank {r} @ node{r // 50}" for r in range(100)}

    loaded = perfetto.load(out)
    assert loaded.clean
    assert loaded.slices == 700  # with start and end
    rows = perfetto.query(
        "select process.name as name, count(*) as n from slice join thread_track on"
        " track_id = thread_track.id join thread using (utid) join process using (upid)"
        " group by upid"
    )
    assert len(rows) == 100
    assert {row["n"] for row in rows} == {7}

    summary = summarise_all([out])
    assert not summary.damage.damaged
    assert (summary.events, len(summary.processes)) == (500, 100)
    assert {process.rank for process in summary.processes} == {str(rank) for rank in range(100)}
    assert len(summary.used) == 100  # every hash resolves


def test_rows_stand_in_the_order_of_ranks(tmp_path: Path):
    for rank in (11, 2, 0):
        write(tmp_path / f"{rank}.pfw", synthetic.process(rank=rank, pid=500 - rank))
    out = merged(tmp_path / "o.json", *tmp_path.glob("*.pfw"))
    index = {
        r["pid"]: r["args"]["sort_index"]
        for r in records_of(out)
        if r["name"] == "process_sort_index"
    }
    assert sorted(index, key=index.__getitem__) == [500, 498, 489]


def test_the_workers_of_a_rank_are_named_and_follow_it(tmp_path: Path):
    write(tmp_path / "b.pfw", synthetic.process(rank=1, pid=20, start=EPOCH - 5))
    write(tmp_path / "a.pfw", synthetic.process(rank=1, pid=21, parent=20, start=EPOCH - 9))
    out = merged(tmp_path / "o.pfw", tmp_path / "a.pfw", tmp_path / "b.pfw")
    assert names(out) == {20: "rank 1", 21: "rank 1 worker"}


SOURCES = {
    "rank0.pfw.gz": lambda p: write(p, synthetic.process(rank=0)),
    "rank1.pfw": lambda p: write(p, synthetic.process(rank=1, host="node1")),
    "again.pfw": lambda p: write(
        p, synthetic.process(pid=100, key="other run", start=EPOCH + 10**8)
    ),
    "old.pfw": lambda p: write(p, synthetic.numeric(synthetic.process(pid=100, start=EPOCH + 3))),
    "old2.pfw.gz": lambda p: write(p, synthetic.numeric(synthetic.process(pid=100, events=7))),
    "torch0.json": lambda p: synthetic.write_document(p, torch_document(pid=100, rank=0)),
    "torch1.json.gz": lambda p: synthetic.write_document(
        p, torch_document(pid=100, rank=1, host="node1", start=EPOCH + 11)
    ),
    "later.json": lambda p: synthetic.write_document(
        p, torch_document(pid=100, start=EPOCH + 10**6)
    ),
    "wide.pfw": lambda p: write(
        p,
        synthetic.process(
            rank=0,
            host="node1",
            pid=7,
            skew=5_000_000,
            extra=[synthetic.collective("barrier", EPOCH + t, EPOCH + t + 90) for t in (100, 900)],
        ),
    ),
    "narrow.pfw": lambda p: write(
        p,
        synthetic.process(
            rank=3,
            pid=8,
            extra=[synthetic.collective("barrier", EPOCH + t, EPOCH + t + 30) for t in (160, 961)],
        ),
    ),
}


@st.composite
def groupings(draw: st.DrawFn) -> tuple[list[str], list[list[int]]]:
    chosen = draw(st.lists(st.sampled_from(sorted(SOURCES)), min_size=2, max_size=6, unique=True))
    # Each step merges a few of what is left, and puts the result back.
    left = len(chosen)
    steps = []
    while left > 1:
        size = draw(st.integers(2, left))
        steps.append(draw(st.permutations(range(left)))[:size])
        left -= size - 1
    return chosen, steps


@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(groupings(), st.sampled_from([".pfw", ".pfw.gz", ".json", ".json.gz"]))
def test_any_order_and_grouping_gives_the_same_events(
    tmp_path_factory: pytest.TempPathFactory, plan: tuple[list[str], list[list[int]]], kind: str
):
    chosen, steps = plan
    place = tmp_path_factory.mktemp("grouping")
    files = [SOURCES[name](place / name) for name in chosen]
    once = merged(place / "once.pfw", *files)
    for number, step in enumerate(steps):
        last = number == len(steps) - 1
        taken = [files[index] for index in step]
        files = [file for index, file in enumerate(files) if index not in step]
        files.append(merged(place / f"step{number}{'.pfw' if last else kind}", *taken))
    assert sorted(lines_of(files[0])) == sorted(lines_of(once))


def test_merging_again_changes_nothing(tmp_path: Path):
    first = merged(tmp_path / "first.pfw.gz", *GOLDEN)
    second = merged(tmp_path / "second.pfw.gz", first)
    assert sorted(lines_of(second)) == sorted(lines_of(first))


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.name)
def test_every_dialect_comes_out_in_one_shape(golden: Path, tmp_path: Path, perfetto: Importer):
    out = merged(tmp_path / "o.pfw.gz", golden)
    before = summarise_all([golden], by_file=True)
    after = summarise_all([out], by_file=True)
    assert not after.damage.damaged
    assert after.events == before.events
    assert {(r.cat, r.name): (r.count, r.read_bytes) for r in after.rows} == {
        (r.cat, r.name): (r.count, r.read_bytes) for r in before.rows
    }
    assert {file.path for file in after.used} == {file.path for file in before.used}
    for record in records_of(out):
        assert isinstance(record["ph"], str)
        assert record["pid"] > 0
        assert isinstance(record.get("tid", 0), int)
        assert isinstance(record.get("ts", 0), int)
    loaded = perfetto.load(out)
    spans = sum(r["ph"] == "X" for r in records_of(out))
    dropped = loaded.problems.get("slice_drop_overlapping_complete_event", 0)
    # The golden trace of this project has a span that crosses another, as its program said.
    assert dropped == perfetto.load(golden).problems.get("slice_drop_overlapping_complete_event", 0)
    assert loaded.slices + dropped >= spans


def test_torch_profiler_lines_up_with_the_process_it_profiled(tmp_path: Path, perfetto: Importer):
    torch = tmp_path / "t.json"
    synthetic.write_document(torch, torch_document(pid=100, rank=0))
    ours = [write(tmp_path / f"{r}.pfw.gz", synthetic.process(rank=r)) for r in (0, 1)]
    out = merged(tmp_path / "o.pfw.gz", torch, *ours)
    by_name = {(r["name"], r["pid"]) for r in records_of(out)}
    row = next(pid for pid, name in names(out).items() if name == "rank 0")
    assert {("aten::mm", row), ("read", row)} <= by_name
    first = min(r["ts"] for r in records_of(out) if r["name"] == "aten::mm")
    assert first == EPOCH  # rebased: microseconds of the same clock, below 1 us
    exact = next(r for r in records_of(out) if r["name"] == "aten::mm" and r["ts"] == first)["args"]
    assert (exact["ts_ns"], exact["dur_ns"]) == (EPOCH * 1000 + 125, 40750)
    assert perfetto.load(out).clean
    # One process, and a row beside the thread's own.
    rows = perfetto.query(
        "select distinct upid, utid from slice join thread_track on track_id = thread_track.id"
        " join thread using (utid) join process using (upid)"
        " where slice.name in ('aten::mm', 'read') and pid = " + str(row)
    )
    assert (len({r["upid"] for r in rows}), len({r["utid"] for r in rows})) == (1, 2)
    threads = {r["args"]["tid"] for r in records_of(out) if r["name"] == "aten::mm"}
    assert threads == {100}
    assert {"rank 0 GPU 0", "rank 0 Spans"} <= set(names(out).values())


def test_two_tracers_of_a_thread_may_time_it_differently(tmp_path: Path, perfetto: Importer):
    torch = tmp_path / "t.json"
    synthetic.write_document(torch, torch_document(pid=100, rank=0))
    # Begins inside of aten::mm and ends behind it: on one row, one of the two would be dropped.
    late = synthetic.collective("late", EPOCH + 20, EPOCH + 60)
    ours = write(tmp_path / "o.pfw.gz", synthetic.process(rank=0, events=0, extra=[late]))
    out = merged(tmp_path / "all.pfw.gz", torch, ours)
    loaded = perfetto.load(out)
    assert loaded.clean
    assert loaded.slices == sum(r["ph"] == "X" for r in records_of(out))
    again = merged(tmp_path / "again.pfw", merged(tmp_path / "first.json", torch), out)
    assert summarise_all([again]).events == 2 * 16 + 1
    back = merged(tmp_path / "back.pfw", out)
    assert sorted(lines_of(back)) == sorted(lines_of(out))


def test_flows_of_two_processes_never_meet(tmp_path: Path, perfetto: Importer):
    both = [
        synthetic.write_document(tmp_path / f"{r}.json", torch_document(pid=100 + r, rank=r))
        for r in (0, 1)
    ]
    out = merged(tmp_path / "o.pfw.gz", *both)
    # What the document says of its rank is not lost with the document.
    assert Counter(process.rank for process in summarise_all([out]).processes) == {"0": 3, "1": 3}
    assert perfetto.load(out).clean
    flows = perfetto.query(
        "select p1.name as a, p2.name as b from flow"
        " join slice s1 on slice_out = s1.id join slice s2 on slice_in = s2.id"
        " join thread_track t1 on s1.track_id = t1.id join thread_track t2 on s2.track_id = t2.id"
        " join thread h1 on t1.utid = h1.utid join thread h2 on t2.utid = h2.utid"
        " join process p1 on h1.upid = p1.upid join process p2 on h2.upid = p2.upid"
    )
    assert Counter((row["a"], row["b"]) for row in flows) == {
        ("rank 0", "rank 0 GPU 0"): 3,
        ("rank 1", "rank 1 GPU 0"): 3,
    }


def test_arguments_that_are_called_like_ours_survive(tmp_path: Path):
    mine = {"pid": 1, "tid": "x", "trace": "mine", "id": 4, "ts_ns": 5}
    extra = [{"name": "odd", "ph": "X", "cat": "app", "ts": EPOCH, "dur": 1, "args": mine}]
    files = [write(tmp_path / f"{r}.pfw", synthetic.process(rank=r, extra=extra)) for r in (0, 1)]
    old = write(tmp_path / "old.pfw", synthetic.numeric(synthetic.process(rank=2, extra=extra)))
    once = merged(tmp_path / "once.pfw", *files, old)
    out = merged(tmp_path / "o.pfw", merged(tmp_path / "two.pfw", files[1], old), files[0])
    assert sorted(lines_of(out)) == sorted(lines_of(once))
    for event in (event for event in events_of(out) if event["name"] == "odd"):
        assert event["args"].items() >= mine.items()


def test_counters_get_no_new_series(tmp_path: Path, perfetto: Importer):
    counter = {"name": "loss", "ph": "C", "cat": "app", "ts": EPOCH, "args": {"value": 2.5}}
    files = []
    for rank in (0, 1, 2):
        records = synthetic.process(rank=rank, extra=[counter])
        for record in records:
            if record["ph"] == "C":
                record["args"] = {"value": 2.5}
        records = synthetic.numeric(records) if rank == 2 else records
        files.append(write(tmp_path / f"{rank}.pfw", records))
    once = merged(tmp_path / "once.pfw", *files)
    again = merged(tmp_path / "o.pfw", merged(tmp_path / "two.pfw", *files[1:]), files[0])
    assert sorted(lines_of(again)) == sorted(lines_of(once))
    counters = [event for event in events_of(again) if event["ph"] == "C"]
    assert [event["args"] for event in counters] == [{"value": 2.5}] * 3
    assert len({event["pid"] for event in counters}) == 3
    assert perfetto.load(again).clean


def test_nanoseconds_become_microseconds(tmp_path: Path):
    records = synthetic.process(rank=0)
    for record in records:
        for key in ("ts", "dur"):
            if key in record:
                record[key] = record[key] * 1000 + (7 if record["name"] == "read" else 0)
    metric = {"hhash": hash_of("node0"), "name": "time_metric", "value": "NS"}
    records.insert(1, {**records[0], "id": 99, "name": "CM", "args": metric})
    out = merged(tmp_path / "o.pfw.gz", write(tmp_path / "ns.pfw", records))
    read = events_of(out)[0]
    assert (read["ts"], read["dur"]) == (EPOCH + 1, 5)
    assert (read["args"]["ts_ns"], read["args"]["dur_ns"]) == (EPOCH * 1000 + 1007, 5007)
    assert summarise_all([out]).first == EPOCH * 1000


def test_bytes_that_are_no_text_become_visible(tmp_path: Path):
    path = write(tmp_path / "a.pfw", synthetic.process(rank=0))
    path.write_bytes(path.read_bytes().replace(b'"name":"read"', b'"name":"re\xffd"', 1))
    out = tmp_path / "o.pfw"
    main(["merge", str(path), "-o", str(out), "--quiet"])
    assert b'"name":"re\\uefffd"' in out.read_bytes()
    assert len(events_of(out)) == 5


def test_threads_of_equal_numbers_stay_on_rows_of_their_own(tmp_path: Path, perfetto: Importer):
    def threads(rank: int) -> list[synthetic.Record]:
        span = {"ph": "X", "cat": "app", "dur": 3}
        return [
            {"name": f"t{n}", "tid": 100 + n, "ts": EPOCH + 900 + n * rank, **span}
            for n in range(4)
        ]

    files = [
        write(tmp_path / f"{r}.pfw.gz", synthetic.process(rank=r, extra=threads(r)))
        for r in range(5)
    ]
    out = merged(tmp_path / "o.pfw.gz", *files)
    assert perfetto.load(out).clean
    rows = perfetto.query(
        "select process.name as who, slice.name as what, count(distinct utid) as rows,"
        " count(*) as n from slice join thread_track on track_id = thread_track.id"
        " join thread using (utid) join process using (upid) where slice.name like 't_'"
        " group by upid, slice.name"
    )
    assert {(row["who"], row["what"]) for row in rows} == {
        (f"rank {r}", f"t{n}") for r in range(5) for n in range(4)
    }
    assert {(row["rows"], row["n"]) for row in rows} == {(1, 1)}
    assert len(perfetto.query("select distinct utid from thread_track")) == 20


def test_all_dialects_on_one_timeline_drop_what_they_dropped_alone(
    tmp_path: Path, perfetto: Importer
):
    def dropped(path: Path) -> int:
        loaded = perfetto.load(path)
        assert not loaded.errors
        return loaded.problems.get("slice_drop_overlapping_complete_event", 0)

    out = merged(tmp_path / "all.pfw.gz", *GOLDEN)
    assert len(events_of(out)) == summarise_all(GOLDEN).events
    alone = [merged(tmp_path / f"{index}.pfw", path) for index, path in enumerate(GOLDEN)]
    assert dropped(out) == sum(dropped(path) for path in GOLDEN)
    slices = perfetto.load(out).slices
    assert slices == sum(perfetto.load(path).slices for path in alone)


def test_spans_that_are_ends_of_flows_never_meet_those_of_others(
    tmp_path: Path, perfetto: Importer
):
    files = []
    for pid in (5, 6):
        common = {"ph": "X", "pid": pid, "tid": pid, "cat": "app", "bind_id": "0x1"}
        spans = [
            {"name": "from", "ts": EPOCH + 10, "dur": 5, "flow_out": True, **common},
            {"name": "to", "ts": EPOCH + 30 + pid, "dur": 5, "flow_in": True, **common},
        ]
        files.append(synthetic.write_document(tmp_path / f"{pid}.json", {"traceEvents": spans}))
    out = merged(tmp_path / "o.pfw", *files)
    again = merged(tmp_path / "again.pfw", merged(tmp_path / "one.json", files[0]), files[1])
    assert sorted(lines_of(again)) == sorted(lines_of(out))
    assert {event["args"]["bind_id"] for event in events_of(out)} == {"0x1"}
    assert len({event["bind_id"] for event in events_of(out)}) == 2
    assert perfetto.load(out).clean
    assert len(perfetto.query("select * from flow")) == 2

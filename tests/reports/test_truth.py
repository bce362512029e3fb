"""Every table against programs whose truth is known, to the microsecond."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest
from support.synthetic_program import BEGIN, Program, training

from dftracer import reports
from dftracer.reports import Report
from dftracer.reports.model import SCHEMAS
from dftracer.trace import summarise_all

US = 1000
START = BEGIN * US


def row(report: Report, table: str, **wanted: Any) -> dict[str, Any]:
    (found,) = (
        row
        for row in report.table(table)
        if all(row[name] == value for name, value in wanted.items())
    )
    return found


def test_overlap_of_io_and_compute(tmp_path: Path) -> None:
    program = Program()
    program.span("compute", "forward", 100, at=0)
    program.span("compute", "forward", 50, at=80, tid=7)  # until 130, beside the first
    program.read("/d/a", 1000, 60, at=90)  # 90 to 150: 40 of it hidden
    program.read("/d/a", 1000, 20, at=100, tid=8)  # inside the other
    program.read("/d/a", 500, 10, at=200)
    program.write(tmp_path)
    report = reports.load(tmp_path)
    process = row(report, "processes")
    assert (process["io_ns"], process["compute_ns"]) == (70 * US, 130 * US)
    assert (process["hidden_io_ns"], process["unhidden_io_ns"]) == (40 * US, 30 * US)
    assert process["overlap_percent"] == pytest.approx(400 / 7)
    assert (process["ops"], process["read_bytes"], process["threads"]) == (3, 2500, 3)
    posix = row(report, "layers", cat="POSIX")
    assert (posix["total_ns"], posix["union_ns"], posix["events"]) == (90 * US, 70 * US, 3)
    assert posix["bandwidth"] == pytest.approx(2500 / 70e-6)
    assert posix["overlap_percent"] == pytest.approx(400 / 7)
    overview = row(report, "overview")
    assert (overview["first_ns"], overview["job_ns"]) == (START, 210 * US)
    assert (overview["io_ns"], overview["hidden_io_ns"]) == (70 * US, 40 * US)


def test_percentiles_of_report_and_stats_are_right_to_what_is_said(tmp_path: Path) -> None:
    """Held against the sorted durations themselves; a sixty-fourth is the 1.6 % of the tables."""
    chance = random.Random(7)
    program = Program()
    durations = [int(10 ** chance.uniform(0, 6)) for _ in range(3000)]
    for duration in durations:
        program.read("/d/a", 100, duration)
    program.write(tmp_path)
    durations.sort()
    read = row(reports.load(tmp_path), "calls", name="read")
    (stats,) = summarise_all([tmp_path / "t-node1-100.pfw"]).rows
    for share, name in ((0.5, "p50"), (0.9, "p90"), (0.99, "p99")):
        exact = durations[int(share * len(durations))] * US
        assert abs(read[f"{name}_ns"] - exact) <= exact / 64
        assert abs(getattr(stats, name) - exact) <= exact / 64
    texts = [column.meaning for schema in SCHEMAS.values() for column in schema.columns]
    assert {text for words in texts for text in re.findall(r"accurate to [0-9.]+ %", words)} == {
        "accurate to 1.6 %"
    }


def test_calls_sizes_and_percentiles(tmp_path: Path) -> None:
    program = Program()
    for i in range(1000):
        program.read("/d/a", 4096 if i % 2 else 100, i + 1)
    program.span("POSIX", "open", 5, file="/d/none", ret=-1, errno=2)
    program.read("/d/a", 0, 3)
    program.write(tmp_path)
    report = reports.load(tmp_path)
    read = row(report, "calls", name="read")
    assert (read["count"], read["errors"], read["class"]) == (1001, 0, "io")
    assert (read["min_ns"], read["max_ns"]) == (1 * US, 1000 * US)
    assert read["total_ns"] == (500_500 + 3) * US
    assert read["p50_ns"] == pytest.approx(500 * US, rel=0.03)
    assert read["p90_ns"] == pytest.approx(900 * US, rel=0.03)
    assert read["p99_ns"] == pytest.approx(990 * US, rel=0.03)
    assert read["read_bytes"] == 500 * 4196
    assert read["mean_size"] == 2098
    assert row(report, "calls", name="open")["errors"] == 1
    sizes = {(s["lower"], s["upper"]): (s["count"], s["bytes"]) for s in report.sizes}
    assert sizes == {
        (0, 0): (1, 0),
        (64, 128): (500, 50_000),
        (4096, 8192): (500, 2_048_000),
    }
    latencies = [item for item in report.latencies if item["name"] == "read"]
    assert sum(item["count"] for item in latencies) == 1001
    below = sum(item["count"] for item in latencies if item["upper_ns"] <= 1 << 19)
    assert below == 524 + 1  # 1 to 524 us, and the empty read


def test_steps_and_epochs(tmp_path: Path) -> None:
    program = training(steps=3, epochs=2, fetch=200, compute=1000, gap=50)
    # An evaluation after the last step is none: nothing is learned in it.
    program.span("compute", "forward", 400, epoch=1, step=6)
    program.write(tmp_path)
    report = reports.load(tmp_path)
    steps = report.steps.dicts()
    assert [(step["epoch"], step["step"]) for step in steps] == [
        (0, 0), (0, 1), (0, 2), (1, 3), (1, 4), (1, 5),
    ]  # fmt: skip
    for step in steps:
        last = step["step"] in (2, 5)  # of an epoch: ends with its last event
        assert step["dur_ns"] == (1250 if last else 1300) * US
        assert step["fetch_ns"] == 200 * US
        assert step["transfer_ns"] == 20 * US
        assert step["compute_ns"] == 1000 * US
        assert step["communication_ns"] == 30 * US
        assert step["checkpoint_ns"] == 0
        assert step["unattributed_ns"] == (0 if last else 50) * US
    assert [step["start_ns"] for step in steps] == [START + 1300 * US * i for i in range(6)]
    first, second = report.epochs.dicts()
    assert (first["epoch"], first["steps"], first["dur_ns"]) == (0, 3, 3850 * US)
    assert (second["start_ns"], second["compute_ns"]) == (START + 3900 * US, 3000 * US)
    assert (second["evaluation_ns"], second["dur_ns"]) == (400 * US, (3850 + 50 + 400) * US)
    assert second["unattributed_ns"] == 150 * US
    assert second["backward_ns"] == 1500 * US


def test_no_moment_of_a_step_counts_twice(tmp_path: Path) -> None:
    told = {"epoch": 0, "step": 0}
    program = Program()
    program.span("dataloader", "fetch", 300, at=0, **told)
    program.span("data", "item", 100, at=100, **told)  # inside the fetch
    program.read("/d/a", 10, 50, at=120)  # inside the item
    program.span("compute", "backward", 500, at=250, **told)  # 50 beside the fetch
    program.span("comm", "all_reduce", 100, at=400, **told)  # inside backward
    program.span("checkpoint", "capture", 200, at=700, **told)  # 50 beside backward
    program.span("pipeline", "epoch", 2000, at=0, **told)  # stands around it all
    program.write(tmp_path)
    step = row(reports.load(tmp_path), "steps")
    assert step["dur_ns"] == 900 * US
    assert step["fetch_ns"] == 250 * US
    assert step["communication_ns"] == 100 * US
    assert step["checkpoint_ns"] == 200 * US
    assert step["compute_ns"] == 350 * US
    assert step["unattributed_ns"] == 0
    assert (step["io_ns"], step["unhidden_io_ns"]) == (50 * US, 50 * US)


def test_steps_without_numbers_begin_with_a_fetch(tmp_path: Path) -> None:
    program = Program()
    for epoch in range(2):
        at = epoch * 1000
        program.span("pipeline", "epoch.block", 900, at=at)
        for i in range(3):
            program.span("dataloader", "fetch.iter", 100, at=at + 300 * i)
            program.span("dataloader", "fetch.block", 180, at=at + 300 * i + 100)
            program.span("compute", "forward", 150, at=at + 300 * i + 110)
    program.write(tmp_path)
    report = reports.load(tmp_path)
    assert [(s["epoch"], s["step"]) for s in report.steps] == [
        (0, 0), (0, 1), (0, 2), (1, 3), (1, 4), (1, 5),
    ]  # fmt: skip
    assert [s["dur_ns"] // US for s in report.steps] == [300, 300, 260, 300, 300, 260]
    assert {s["fetch_ns"] // US for s in report.steps} == {100}
    assert {s["compute_ns"] // US for s in report.steps} == {150}


def test_the_timeline_loses_nothing(tmp_path: Path) -> None:
    program = Program()
    program.read("/d/a", 10_000_019, 999_983, at=17)  # over many pieces
    for i in range(100):
        program.read("/d/a", 7, 3, at=1_000_000 + 1000 * i)
    program.span("POSIX", "write", 500_000, at=300_000, file="/d/b", ret=77, tid=9)
    program.write(tmp_path)
    report = reports.load(tmp_path)
    pieces = report.timeline.dicts()
    assert len({piece["start_ns"] for piece in pieces}) <= 240
    (length,) = {piece["dur_ns"] for piece in pieces}
    assert length & (length - 1) == 0
    assert all(piece["start_ns"] % length == 0 for piece in pieces)
    assert sum(piece["ops"] for piece in pieces) == 102
    assert sum(piece["read_bytes"] for piece in pieces) == 10_000_019 + 700
    assert sum(piece["write_bytes"] for piece in pieces) == 77
    assert sum(piece["busy_ns"] for piece in pieces) == (999_983 + 300 + 500_000) * US
    heat = report.heat.dicts()
    assert sum(piece["io_ns"] for piece in heat) == row(report, "processes")["io_ns"]
    assert sum(piece["bytes"] for piece in heat) == 10_000_019 + 700 + 77


def test_access_patterns_and_rereads(tmp_path: Path) -> None:
    program = Program()
    for _ in range(2):
        program.span("POSIX", "open", 1, file="/d/seq", ret=3)
        for _ in range(10):
            program.read("/d/seq", 100, 1)
        program.read("/d/seq", 0, 1)
        program.span("POSIX", "close", 1, file="/d/seq")
    for i in range(10):
        program.read("/d/stride", 100, 1, name="pread", offset=1000 * i)
    for i in (5, 1, 9, 2, 8, 0):
        program.read("/d/random", 100, 1, name="pread", offset=100 * i)
    program.span("POSIX", "open", 1, file="/d/seek", ret=3)
    for to in (0, 5000, 100):
        program.span("POSIX", "lseek", 1, file="/d/seek", offset=to, whence=0, ret=to)
        program.read("/d/seek", 100, 1)
    program.write(tmp_path)
    files = {file["fname"]: file for file in reports.load(tmp_path).files}
    seq = files["/d/seq"]
    assert (seq["opens"], seq["reads"], seq["metadata"]) == (2, 22, 2)
    assert (seq["sequential"], seq["random"], seq["pattern"]) == (18, 0, "sequential")
    assert (seq["extent_bytes"], seq["reread_bytes"], seq["processes"]) == (1000, 1000, 1)
    stride = files["/d/stride"]
    assert (stride["strided"], stride["random"], stride["pattern"]) == (8, 1, "strided")
    assert stride["reread_bytes"] == 0
    assert files["/d/random"]["random"] == 5
    assert files["/d/random"]["pattern"] == "random"
    seek = files["/d/seek"]
    assert (seek["sequential"], seek["random"], seek["extent_bytes"]) == (0, 2, 5100)


NO_FILES = ("pipe:[4711]", "socket:[1]", "anon_inode:[eventfd]", "/dev/pts/0", "/dev/tty")


def test_waiting_for_a_pipe_is_no_io(tmp_path: Path) -> None:
    """Pipes and the like are listed, and in no sum of I/O."""
    program = Program()
    program.span("compute", "forward", 100, at=0)
    program.read("/d/a", 1000, 10, at=0)
    for number, name in enumerate(NO_FILES):
        for tid in (1, 2):  # one pipe, two readers: no offsets, and nothing is read again
            program.read(name, 50, 300, at=1000 * number + 300 * tid, tid=tid)
        program.span("STDIO", "fwrite", 5, at=1000 * number, file=name, size=1, count=7, ret=7)
    program.span("custom", "region", 5, at=0, file="pipe:[4711]")
    program.span("POSIX", "waitpid", 400, at=2000)
    program.write(tmp_path)
    report = reports.load(tmp_path)
    process = row(report, "processes")
    assert (process["io_ns"], process["unhidden_io_ns"], process["ops"]) == (10 * US, 0, 1)
    assert (process["read_bytes"], process["write_bytes"]) == (1000, 0)
    overview = row(report, "overview")
    assert (overview["read_bytes"], overview["write_bytes"], overview["io_ns"]) == (
        1000,
        0,
        10 * US,
    )
    pipe = row(report, "layers", cat="POSIX pipe")
    assert (pipe["class"], pipe["events"], pipe["union_ns"]) == (None, 10, 3000 * US)
    assert (pipe["read_bytes"], pipe["files"], pipe["processes"]) == (500, 5, 1)
    assert row(report, "layers", cat="POSIX")["read_bytes"] == 1000
    assert row(report, "layers", cat="STDIO pipe")["write_bytes"] == 35
    assert row(report, "layers", cat="custom")["events"] == 1
    assert row(report, "calls", cat="POSIX pipe", name="read")["count"] == 10
    assert row(report, "calls", cat="POSIX", name="read")["count"] == 1
    assert sum(piece["bytes"] for piece in report.heat) == 1000
    files = report.files.dicts()
    assert files[0]["fname"] == "/d/a"
    for file in files[1:]:
        assert file["fname"] in NO_FILES
        assert (file["read_bytes"], file["write_bytes"]) == (100, 7)
        assert (file["pattern"], file["extent_bytes"], file["reread_bytes"]) == ("none", None, 0)


def test_processes_hosts_and_stragglers(tmp_path: Path) -> None:
    for rank in range(4):
        host = f"node{rank // 2}"
        compute = 1500 if rank == 2 else 1000
        program = training(pid=200 + rank, rank=rank, steps=5, compute=compute, host=host)
        program.write(tmp_path)
        for worker in range(2):
            other = Program(pid=300 + 10 * rank + worker, ppid=200 + rank, host=host)
            for _ in range(10):
                other.span("data", "item", 500 if (rank, worker) == (3, 1) else 100)
            other.write(tmp_path)
    report = reports.load(tmp_path)
    assert len(report.processes) == 12
    assert [p["process"] for p in report.processes] == list(range(12))
    roles = [p["role"] for p in report.processes]
    assert (roles.count("main"), roles.count("worker")) == (4, 8)
    assert [(h["host"], h["processes"]) for h in report.hosts] == [("node0", 6), ("node1", 6)]
    overview = row(report, "overview")
    assert (overview["ranks"], overview["hosts"], overview["traces"]) == (4, 2, 12)
    # Half of it is the backward pass, in which ranks wait for each other.
    slow = row(report, "stragglers", kind="rank", measure="compute time", rank=2)
    assert (slow["value"], slow["median"], slow["ratio"]) == (750 * US, 500 * US, 1.5)
    slow = row(report, "stragglers", kind="rank", measure="own time", rank=2)
    assert (slow["value"], slow["median"]) == ((750 + 120 + 40) * US, (500 + 120 + 40) * US)
    children = [(p["parent"], p["ready_ns"]) for p in report.processes if p["role"] == "worker"]
    mains = {p["pid"]: p["process"] for p in report.processes if p["role"] == "main"}
    assert {parent for parent, _ in children} == set(mains.values())
    assert {ready for _, ready in children} == {START}
    worker = max((s for s in report.stragglers if s["kind"] == "worker"), key=lambda s: s["value"])
    assert (worker["value"], worker["rank"], worker["count"]) == (500 * US, 3, 10)


def test_operations_of_torch(tmp_path: Path) -> None:
    program = Program()
    for _ in range(3):
        program.span("dynamo", "function.addmm", 40, phase="forward")
    program.span("dynamo", "function.addmm", 90, phase="backward")
    program.span("PP", "aten::relu", 10)
    program.span("PP", "ProfilerStep#4", 300, at=0)
    program.write(tmp_path)
    report = reports.load(tmp_path)
    found = [(o["name"], o["phase"], o["count"], o["total_ns"]) for o in report.torch_ops]
    assert found == [
        ("function.addmm", "forward", 3, 120 * US),
        ("function.addmm", "backward", 1, 90 * US),
        ("aten::relu", None, 1, 10 * US),
    ]
    step = row(report, "steps")
    assert (step["step"], step["dur_ns"], step["compute_ns"]) == (4, 300 * US, 220 * US)

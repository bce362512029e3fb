"""What the settings of the file do to it: compression, blocks, time, thread ids, metadata."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest
from support import traces
from support.api_driver import Command, play
from support.traces import Trace

INIT: Command = ("init", "t.pfw", None, None)
FINI: Command = ("fini",)


def record(directory: Path, *commands: Command, **options: Any) -> Trace:
    play(INIT, *commands, FINI, cwd=directory, **options)
    return traces.read_one(directory)


def essence(trace: Trace) -> list[tuple[Any, ...]]:
    return [
        (e["id"], e["name"], e["cat"], e["ph"], e["args"].get("i"), e["args"].get("p_idx"))
        for e in trace.records
    ]


WORK: list[Command] = [
    ("begin", 0, "outer", "app"),
    ("spans", 3000, "span"),
    ("instant", "now", "app"),
    ("counter", "c", "app", 1),
    ("end", 0),
]


def test_plain_and_compressed_hold_the_same(tmp_path: Path) -> None:
    found = []
    for value, name in (("1", "t.pfw.gz"), ("0", "t.pfw")):
        directory = tmp_path / value
        directory.mkdir()
        trace = record(directory, *WORK, env={"DFTRACER_TRACE_COMPRESSION": value})
        assert trace.path.name == name
        found.append(essence(trace))
    assert found[0] == found[1]
    plain = (tmp_path / "0" / "t.pfw").stat().st_size
    compressed = (tmp_path / "1" / "t.pfw.gz").stat().st_size
    assert compressed * 5 < plain


def test_every_level_of_compression(tmp_path: Path) -> None:
    sizes = []
    for level in range(4):
        directory = tmp_path / str(level)
        directory.mkdir()
        trace = record(directory, *WORK, env={"DFTRACER_COMPRESSION_LEVEL": str(level)})
        assert len(trace.named("span")) == 3000
        sizes.append(trace.path.stat().st_size)
    assert sizes[3] < sizes[0]


@pytest.mark.parametrize("level", ["0", "1", "2", "3"])
def test_text_that_does_not_compress(tmp_path: Path, level: str) -> None:
    noise = random.Random(7)
    values = [noise.randbytes(30_000).hex() for _ in range(4)]
    values += ["".join(noise.choices([chr(c) for c in range(0x20, 0x2000)], k=20_000))]
    commands: list[Command] = [("metadata", f"k{i}", value) for i, value in enumerate(values)]
    trace = record(tmp_path, *commands, env={"DFTRACER_COMPRESSION_LEVEL": level})
    assert [trace.meta("CM", f"k{i}") for i in range(len(values))] == [[v] for v in values]


@pytest.mark.parametrize("size", ["0", "1", "4096", "67108864"])
def test_blocks_of_any_size(tmp_path: Path, size: str) -> None:
    """The reader has checked that each member is whole and counts its lines."""
    trace = record(
        tmp_path,
        ("spans", 10_000, "a"),
        ("flush",),
        ("spans", 10_000, "b"),
        env={"DFTRACER_WRITE_BUFFER_SIZE": size},
    )
    assert [event["args"]["i"] for event in trace.named("a")] == list(range(10_000))
    assert [event["args"]["i"] for event in trace.named("b")] == list(range(10_000))
    assert len(trace.members) >= 2


@pytest.mark.parametrize(("metric", "second"), [("NS", 10**9), ("US", 10**6), ("MS", 1000)])
def test_time_metric(tmp_path: Path, metric: str, second: int) -> None:
    output = play(
        INIT,
        ("begin", 0, "r", "app"),
        ("time",),
        ("end", 0),
        ("complete", "c", "app", 1234, 5678),
        FINI,
        cwd=tmp_path,
        env={"DFTRACER_TIME_METRIC": metric.lower()},
    ).stdout.split()
    trace = traces.read_one(tmp_path)
    start = trace.one("start")
    seconds = start["ts"] // second
    # A time of this century, in seconds.
    assert 1_600_000_000 < seconds < 10_000_000_000
    assert int(output[1]) // second - seconds in (0, 1, 2)
    assert trace.one("r")["ts"] >= start["ts"]
    assert (trace.one("c")["ts"], trace.one("c")["dur"]) == (1234, 5678)
    # Readers must be told when it is not the usual unit.
    assert trace.meta("CM", "time_metric") == ([] if metric == "US" else [metric])


def test_time_in_seconds(tmp_path: Path) -> None:
    trace = record(tmp_path, ("spans", 3, "s"), env={"DFTRACER_TIME_METRIC": "SEC"})
    assert 1_600_000_000 < trace.one("start")["ts"] < 10_000_000_000
    assert all(event["dur"] in (0, 1) for event in trace.named("s"))
    assert trace.meta("CM", "time_metric") == ["SEC"]


def test_without_metadata_the_program_keeps_its_arguments(tmp_path: Path) -> None:
    trace = record(
        tmp_path,
        ("begin", 0, "r", "app"),
        ("int", 0, "k", 1),
        ("end", 0),
        ("metadata", "key", "value"),
        env={"DFTRACER_INC_METADATA": "0"},
    )
    assert list(trace.one("r")["args"]) == ["hhash", "p_idx", "level", "k"]
    assert trace.meta("CM", "key") == ["value"]
    assert [m["name"] for m in trace.records[:3]] == ["HH", "thread_name", "start"]
    assert trace.named("FH") == trace.named("SH") == []
    # Which run and process it is must be known all the same.
    assert list(trace.one("start")["args"]) == ["hhash", "p_idx", "level", "run", "proc"]
    assert list(trace.one("end")["args"]) == ["hhash", "p_idx", "level"]
    assert trace.one("r")["id"] == 7


def test_without_thread_ids(tmp_path: Path) -> None:
    trace = record(
        tmp_path,
        ("spans", 2, "main"),
        ("on", 1, "spans", 2, "thread"),
        env={"DFTRACER_DISABLE_TIDS": "1"},
    )
    assert len(trace.recorded) == 4
    # Never 0: viewers take that for the idle thread.
    assert {event["tid"] for event in trace.records} == {trace.one("start")["pid"]}
    assert len(trace.named("thread_name")) == 1


def test_thread_ids_are_there_by_default(tmp_path: Path) -> None:
    trace = record(tmp_path, ("spans", 2, "main"), ("on", 1, "spans", 2, "thread"))
    assert trace.named("main")[0]["tid"] != trace.named("thread")[0]["tid"]
    (tmp_path / "zero").mkdir()
    again = record(
        tmp_path / "zero",
        ("spans", 2, "main"),
        ("on", 1, "spans", 2, "thread"),
        env={"DFTRACER_DISABLE_TIDS": "0"},
    )
    assert again.named("main")[0]["tid"] != again.named("thread")[0]["tid"]


def test_a_spool_elsewhere_leaves_nothing_behind(tmp_path: Path) -> None:
    spools = tmp_path / "spools"
    work = tmp_path / "work"
    work.mkdir()
    trace = record(work, *WORK, env={"DFTRACER_SPOOL_DIR": str(spools)})
    assert len(trace.named("span")) == 3000
    assert list(spools.iterdir()) == []


@pytest.mark.parametrize(
    ("asked", "mode"), [(None, 0o600), ("0644", 0o644), ("660", 0o640), ("777", 0o755)]
)
def test_the_trace_is_for_its_owner_alone_unless_asked_otherwise(
    tmp_path: Path, asked: str | None, mode: int
) -> None:
    """Traces hold command lines and file names. The umask (022) applies to what is asked for."""
    before = os.umask(0o022)
    try:
        record(tmp_path, env={} if asked is None else {"DFTRACER_FILE_MODE": asked})
    finally:
        os.umask(before)
    assert (tmp_path / "t.pfw.gz").stat().st_mode & 0o777 == mode

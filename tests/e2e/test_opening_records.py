"""The records that open and end a file, and the shape of those between."""

from __future__ import annotations

import calendar
import os
import re
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from support import traces
from support.api_driver import Command, play, program
from support.traces import Trace, hash16

INIT: Command = ("init", "t.pfw", None, None)
FINI: Command = ("fini",)
START_KEYS = [
    *("hhash", "p_idx", "level", "ppid", "cmd_hash", "exec_hash", "version", "date", "cwd"),
    *("run", "proc"),
]


def record(directory: Path, *commands: Command, **options: Any) -> Trace:
    play(INIT, *commands, FINI, cwd=directory, **options)
    return traces.read_one(directory)


def test_the_opening_in_order(tmp_path: Path) -> None:
    driver = tmp_path / "bin" / "driver"
    program(driver)
    work = tmp_path / "work"
    work.mkdir()
    play(INIT, ("begin", 0, "first", "app"), ("end", 0), FINI, cwd=work, executable=driver)
    trace = traces.read_one(work)
    opening = trace.records[:6]
    names = ["HH", "thread_name", "FH", "SH", "SH", "start"]
    assert [record["name"] for record in opening] == names
    assert [record["id"] for record in opening] == [1, 2, 3, 4, 5, 6]
    assert {record["cat"] for record in opening} == {"dftracer"}
    pid = opening[0]["pid"]
    assert {(record["pid"], record["tid"]) for record in opening} == {(pid, pid)}
    host = hash16(socket.gethostname())
    assert {record["args"]["hhash"] for record in trace.records} == {host}

    def said(record: dict[str, Any]) -> tuple[str, str]:
        return record["args"]["name"], record["args"]["value"]

    assert said(opening[0]) == (socket.gethostname(), host)
    assert said(opening[1]) == (str(pid), "thread_name")
    assert said(opening[2]) == (str(work), hash16(str(work)))
    assert said(opening[3]) == (str(driver), hash16(str(driver)))
    assert said(opening[4]) == ("DEFAULT", "5bc85321cd6d4bd2")
    start = opening[5]
    assert list(start["args"]) == START_KEYS
    assert start["dur"] == 0
    assert start["args"]["p_idx"] == -1
    assert start["args"]["level"] == 1
    assert start["args"]["ppid"] == os.getpid()
    assert start["args"]["cmd_hash"] == hash16(str(driver))
    assert start["args"]["exec_hash"] == "5bc85321cd6d4bd2"
    assert start["args"]["cwd"] == hash16(str(work))
    assert re.fullmatch(r"v\d+\.\d+\.\d+\S*", start["args"]["version"])
    # The first event is number 7, as in existing traces.
    assert trace.one("first")["id"] == 7
    assert trace.meta("process_name") == ["process_name"]
    assert trace.one("process_name")["args"]["name"] == "driver"


def test_known_hashes(tmp_path: Path) -> None:
    """Those that the guides show: the function is fixed for ever."""
    assert hash16("tuolumne1004") == "f9ff883caaf21863"
    assert hash16("DEFAULT-spawn") == "8a4eff4d79020d73"
    interpreter = program(tmp_path / "bin" / "python3")
    work = tmp_path / "work"
    work.mkdir()
    trace = record(work, args=["-c", "from multiprocessing.spawn"], executable=interpreter)
    assert ("DEFAULT-spawn", "8a4eff4d79020d73") in [
        (m["args"]["name"], m["args"]["value"]) for m in trace.named("SH")
    ]


@pytest.mark.parametrize(
    ("args", "executable"),
    [
        ([], "DEFAULT"),
        (["a"], "driver"),
        (["-x", "a", "b"], "driver"),
    ],
)
def test_command_line_and_program(tmp_path: Path, args: list[str], executable: str) -> None:
    driver = program(tmp_path / "driver")
    work = tmp_path / "work"
    work.mkdir()
    play(INIT, FINI, cwd=work, args=args, executable=driver)
    command, name = traces.read_one(work).named("SH")
    assert command["args"]["name"] == ";".join([str(driver), *args])
    assert name["args"]["name"] == executable


@pytest.mark.parametrize("zone", ["UTC", "IST-5:30", "EST5EDT,M3.2.0,M11.1.0"])
def test_date_is_local_time_as_ctime_writes_it(tmp_path: Path, zone: str) -> None:
    start = record(tmp_path, env={"TZ": zone}).one("start")
    seconds = start["ts"] // 1_000_000
    before = os.environ.get("TZ")
    os.environ["TZ"] = zone
    time.tzset()
    try:
        assert start["args"]["date"] == time.ctime(seconds)
    finally:
        if before is None:
            del os.environ["TZ"]
        else:
            os.environ["TZ"] = before
        time.tzset()
    assert abs(calendar.timegm(time.gmtime()) - seconds) < 600


def test_the_end_counts_the_records(tmp_path: Path) -> None:
    trace = record(tmp_path, ("spans", 20, "s"), ("metadata", "k", "v"), ("counter", "c", "app", 1))
    end = trace.records[-1]
    # Not every kernel counts waiting for a processor.
    known = [key for key in end["args"] if key != "cpu_wait_us"]
    assert known == ["hhash", "p_idx", "level", "num_events", "cpu_us"]
    assert end["dur"] == 0
    assert end["args"]["num_events"] == len(trace.records) - 1
    assert end["ts"] >= max(event["ts"] + event.get("dur", 0) for event in trace.events[:-1])
    assert end["id"] == max(event["id"] for event in trace.events)


def test_a_trace_without_events_is_whole(tmp_path: Path) -> None:
    trace = record(tmp_path)
    assert [event["name"] for event in trace.events] == ["start", "end"]


def test_the_text_of_a_line(tmp_path: Path) -> None:
    """Byte for byte: readers with fast paths look for this order and for no blanks."""
    trace = record(
        tmp_path,
        ("begin", 0, "work", "app"),
        ("int", 0, "n", 3),
        ("string", 0, "s", "x"),
        ("float", 0, "f", "2.5"),
        ("end", 0),
        ("instant", "now", "app", "k", "int", 1),
        ("counter", "c", "app", 4),
        ("metadata", "key", "value"),
    )
    host = trace.records[0]["args"]["hhash"]
    where = r'"pid":(\d+),"tid":\1'
    own = rf'"args":\{{"hhash":"{host}","p_idx":-1,"level":1'
    for pattern in (
        rf'\{{"id":7,"name":"work","cat":"app",{where},"ts":\d+,"dur":\d+,"ph":"X",{own},'
        r'"n":3,"s":"x","f":2\.5\}\}',
        rf'\{{"id":8,"name":"now","cat":"app",{where},"ts":\d+,"ph":"i",{own},"k":1\}}\}}',
        rf'\{{"id":9,"name":"c","cat":"app",{where},"ts":\d+,"ph":"C","args":\{{"value":4\.0\}}\}}',
        rf'\{{"id":10,"name":"CM","cat":"dftracer",{where},"ph":"M",'
        rf'"args":\{{"hhash":"{host}","name":"key","value":"value"\}}\}}',
    ):
        assert [line for line in trace.lines if re.fullmatch(pattern, line.decode())], pattern


RANKS = (
    *("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID", "FLUX_TASK_RANK"),
)


@pytest.mark.parametrize("variable", RANKS)
def test_rank_from_the_launcher(tmp_path: Path, variable: str) -> None:
    trace = record(tmp_path, env={variable: "12"})
    assert trace.meta("PR", "rank") == ["12"]
    assert trace.one("process_name")["args"]["name"] == "rank 12"
    assert trace.one("start")["pid"] > 12


def test_rank_of_the_argument_wins(tmp_path: Path) -> None:
    play(("init", "t.pfw", None, 0), FINI, cwd=tmp_path, env=dict.fromkeys(RANKS, "12"))
    trace = traces.read_one(tmp_path)
    assert trace.meta("PR", "rank") == ["0"]
    assert trace.one("process_name")["args"]["name"] == "rank 0"


@pytest.mark.parametrize("value", ["", "-1", "x", "1x", "99999999999999999999"])
def test_what_is_no_rank_is_passed_over(tmp_path: Path, value: str) -> None:
    trace = record(tmp_path, env={"RANK": value, "PMI_RANK": "4"})
    assert trace.meta("PR", "rank") == ["4"]
    (tmp_path / "alone").mkdir()
    assert record(tmp_path / "alone", env={"RANK": value}).meta("PR") == []


def test_core_affinity(tmp_path: Path) -> None:
    trace = record(tmp_path, env={"DFTRACER_SET_CORE_AFFINITY": "1"})
    cores = ",".join(map(str, sorted(os.sched_getaffinity(0))))
    assert trace.meta("PR", "core_affinity") == [f"[{cores}]"]
    (tmp_path / "without").mkdir()
    assert record(tmp_path / "without").meta("PR") == []


def test_a_forked_child_resolves_its_own_hashes(tmp_path: Path) -> None:
    """The strict reader has resolved them; the run joins the two files."""
    play(INIT, ("spans", 1, "parent"), ("fork", "child"), FINI, cwd=tmp_path)
    child, parent = traces.read_directory(tmp_path)
    assert parent.path.name == "t.pfw.gz"
    assert re.fullmatch(r"t-[0-9a-z-]+\.pfw\.gz", child.path.name)
    assert [event["name"] for event in child.recorded] == ["child"]
    assert child.one("start")["args"]["ppid"] == parent.one("start")["pid"]
    assert child.one("start")["args"]["run"] == parent.one("start")["args"]["run"]
    assert child.one("start")["args"]["proc"] != parent.one("start")["args"]["proc"]
    assert [m["name"] for m in child.records[:6]] == [m["name"] for m in parent.records[:6]]
    assert child.one("child")["id"] == 7

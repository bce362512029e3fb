"""How long a job took, what of it processes were busy, and what findings are shares of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import synthetic
from support.synthetic import EPOCH, collective, process
from support.synthetic_program import BEGIN, Program

from dftracer import reports
from dftracer.reports.render.summary import summarise

US = 1000
MS = 1_000_000
S = 1_000_000  # microseconds


def overview(report: reports.Report) -> dict[str, Any]:
    (row,) = report.overview.dicts()
    return row


def found(report: reports.Report) -> dict[str, dict[str, Any]]:
    return {row["rule"]: row for row in report.findings}


def head(report: reports.Report) -> str:
    return "\n".join(summarise(report)).split("\n\n")[0]


def reader(pid: int = 100, *, at: int = 0, reading: int = 3 * S, after: int = S, **facts: Any):
    """Computes a while, reads, computes again; `now` is then its end."""
    program = Program(pid=pid, command="reader", **facts)
    program.now = at
    for _ in range(10):
        program.read("/d/a", 1 << 24, reading // 10)
    program.now += after
    return program


def shell(pid: int, ppid: int, life: int) -> Program:
    """Begins a child and waits for it."""
    program = Program(pid=pid, ppid=ppid, command="sh;-c;...")
    program.span("POSIX", "stat", 10, file="/bin/sh")
    program.span("POSIX", "wait4", life - 20)
    program.now += 10
    return program


def test_a_job_that_computes_before_and_after_it_reads_lasts_from_start_to_end(
    tmp_path: Path,
) -> None:
    reader(at=2 * S, reading=26_000, after=3 * S).write(tmp_path)
    report = reports.load(tmp_path)
    row = overview(report)
    assert row["job_ns"] == (5 * S + 26_000) * US
    assert row["last_ns"] - row["first_ns"] == 26_000 * US
    assert row["timed_by"] == "its start and end records"
    (process,) = report.processes
    assert (process["start_ns"], process["life_ns"]) == (BEGIN * US, row["job_ns"])
    assert not len(report.findings)
    assert "job       5.03 s," in head(report)
    assert "time      outside traced calls 99 %, of the 5.03 s that the job took" in head(report)


def test_a_process_without_an_end_record_ends_with_its_last_event_and_that_is_said(
    tmp_path: Path,
) -> None:
    reader(at=2 * S, reading=26_000, after=3 * S).write(tmp_path, ended=False)
    report = reports.load(tmp_path)
    assert overview(report)["job_ns"] == (2 * S + 26_000) * US
    assert overview(report)["timed_by"] == "its start record and its last event"
    assert "2.03 s until its last event (its end is unknown)" in head(report)


def test_the_end_that_recovery_wrote_is_known_to_be_the_last_event(tmp_path: Path) -> None:
    program = reader(at=S, reading=S, after=0)
    program.write(tmp_path, recovered=True)
    assert overview(reports.load(tmp_path))["timed_by"] == "its start record and its last event"


def test_a_trace_of_events_alone_says_so(tmp_path: Path) -> None:
    program = reader(at=S, reading=S)
    program.lines = [line for line in program.lines if '"start"' not in line]
    program.write(tmp_path, ended=False)
    report = reports.load(tmp_path)
    assert overview(report)["job_ns"] == S * US
    assert "1 s from its first to its last event" in head(report)


def skewed(place: Path, skew: int) -> None:
    for rank in range(4):
        barriers = [
            collective("barrier", EPOCH + 100_000 * i + 1000 * rank, EPOCH + 100_000 * i + 5000)
            for i in range(10)
        ]
        far = rank >= 2
        records = process(
            rank=rank, pid=100 + rank, host=f"node{int(far)}", extra=barriers,
            skew=skew if far else 0,
        )  # fmt: skip
        synthetic.write(place / f"r{rank}.pfw", records)


def without_place(report: reports.Report) -> dict[str, list[dict[str, Any]]]:
    """What a merge leaves alone: not the names of files and processes."""
    kept = ("first_ns", "last_ns", "start_ns", "end_ns", "life_ns", "io_ns", "rank", "host")
    return {
        "overview": [{key: overview(report)[key] for key in (*kept[:4], "job_ns", "busy_ns")}],
        "processes": [{key: row[key] for key in kept} for row in report.processes],
        "timeline": report.timeline.dicts(),
    }


def test_skewed_hosts_take_no_more_time_than_their_merged_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    traces = tmp_path / "traces"
    traces.mkdir()
    skewed(traces, 3600 * S)
    report = reports.load(traces)
    # One clock would have shown 0.9 s of barriers; the offset is known to some milliseconds.
    assert 0.89e9 < overview(report)["job_ns"] < 0.92e9
    assert "the clock of node1 is 1 h 00 min ahead of that of node0" in overview(report)["clock"]
    assert ": corrected" in head(report)
    merged = synthetic.merge(tmp_path / "all.pfw", *sorted(traces.iterdir()))
    capsys.readouterr()
    assert without_place(reports.load(merged)) == without_place(report)
    assert reports.load(traces, cluster="local:2").tables == report.tables


def test_hosts_that_were_never_there_together_are_told(tmp_path: Path) -> None:
    for number in range(2):
        program = Program(pid=100 + number, host=f"node{number}", run="r", begin=number * 3600 * S)
        program.now = number * 3600 * S
        program.read("/d/a", 100, S)
        program.write(tmp_path)
    report = reports.load(tmp_path)
    assert "clock     by their clocks, node0 and node1 never ran at the same time" in head(report)


def test_hosts_whose_clocks_agree_are_left_alone(tmp_path: Path) -> None:
    skewed(tmp_path, 0)
    report = reports.load(tmp_path)
    assert overview(report)["clock"] is None
    assert overview(report)["start_ns"] == EPOCH * US


def test_nested_scripts_do_not_dilute_the_program_that_they_run(tmp_path: Path) -> None:
    alone, nested = tmp_path / "alone", tmp_path / "nested"
    for place in (alone, nested):
        place.mkdir()
        reader(pid=200, ppid=104, reading=4 * S, after=S // 10).write(place)
    for number in range(4):
        shell(101 + number, 100 + number, 4 * S + S // 10).write(nested)
    one, many = (found(reports.load(place))["io-bound"] for place in (alone, nested))
    assert one["severity"] == many["severity"] == "medium"
    assert many["concerns_ns"] == one["concerns_ns"] + 4 * 10 * US
    assert many["share"] == pytest.approx(one["share"], abs=0.001)
    assert "97 %, " not in head(reports.load(nested))
    assert "I/O calls 98 %" in head(reports.load(nested))
    assert many["title"] == "I/O calls take 98 % of the 4.1 s that the job took"


def test_sleeping_processes_do_not_dilute_the_program_beside_them(tmp_path: Path) -> None:
    reader(pid=200, reading=4 * S, after=S // 10).write(tmp_path, cpu_us=3 * S)
    for number in range(4):
        sleeper = Program(pid=300 + number, command="sleep;8")
        sleeper.span("POSIX", "open", 100, file="/l/locale")
        sleeper.now = 8 * S
        sleeper.write(tmp_path, cpu_us=2000)
    report = reports.load(tmp_path)
    case = found(report)["io-bound"]
    assert case["severity"] == "medium"
    assert case["share"] > 0.96
    assert case["base"] == "of the 4.11 s that 5 processes were busy"
    row = overview(report)
    assert row["busy_ns"] == (4 * S + S // 10) * US + 4 * (2000 + 100) * US
    assert row["idle_ns"] == 4 * (8 * S - 2100) * US
    assert "asleep or in untraced waits 49 %" in row["bound_by"]
    assert "of the 8 s that the job took" in row["bound_by"]


def test_a_process_that_computes_is_not_taken_for_asleep(tmp_path: Path) -> None:
    reader(at=2 * S, reading=S, after=S).write(tmp_path, cpu_us=3_100_000)
    row = overview(reports.load(tmp_path))
    assert row["idle_ns"] == 0
    assert row["bound_by"].startswith("outside traced calls 75 %, I/O calls 25 %,")


def test_a_program_that_computes_is_bound_by_the_cpu(tmp_path: Path) -> None:
    reader(at=3 * S, reading=S // 10, after=S).write(tmp_path, cpu_us=4 * S)
    row = overview(reports.load(tmp_path))
    assert row["bound_by"] == (
        "CPU 98 %, I/O calls 2.4 %, of the 4.1 s that the job took (4 s of CPU time)"
    )
    assert row["not_traced"] is None


def test_a_thread_that_waits_does_not_make_a_process_wait_that_computes(tmp_path: Path) -> None:
    program = Program()
    program.span("POSIX", "waitpid", 3 * S, tid=7)
    program.write(tmp_path, cpu_us=2 * S)
    (row,) = reports.load(tmp_path).processes
    assert row["busy_ns"] == 2 * S * US


def test_a_job_that_waits_on_a_socket_is_bound_by_that(tmp_path: Path) -> None:
    program = Program()
    program.read("socket:[17]", 100, 3 * S)
    program.read("/d/a", 100, S)
    program.write(tmp_path)
    row = overview(reports.load(tmp_path))
    assert row["pipe_wait_ns"] == 3 * S * US
    assert row["bound_by"].startswith(
        "waiting on pipes, sockets and terminals 75 %, I/O calls 25 %, of the 4 s"
    )


def test_time_in_which_nothing_ran_is_called_that(tmp_path: Path) -> None:
    for number in range(2):
        program = Program(pid=100 + number, begin=number * S)
        program.now = number * S
        program.read("/d/a", 100, S // 4)
        program.write(tmp_path)
    row = overview(reports.load(tmp_path))
    assert (
        row["bound_by"]
        == "no process running 60 %, I/O calls 40 %, of the 1.25 s that the job took"
    )


def test_compute_regions_are_a_part_of_the_line(tmp_path: Path) -> None:
    program = Program()
    start = program.span("compute", "forward", 3 * S)
    program.read("/d/a", 100, S, at=start)
    program.now += S
    program.write(tmp_path)
    assert overview(reports.load(tmp_path))["bound_by"] == (
        "compute regions 50 %, I/O calls 25 %, outside traced calls and regions 25 %, "
        "of the 4 s that the job took"
    )


def test_a_short_program_has_no_grave_finding_however_large_the_share(tmp_path: Path) -> None:
    for number, (syncing, severity) in enumerate(
        ((14_000, None), (30_000, "low"), (150_000, "medium"), (600_000, "high"))
    ):
        place = tmp_path / str(number)
        place.mkdir()
        program = Program()
        program.span("POSIX", "fsync", syncing, file="/d/a", ret=0)
        program.write(place)
        case = found(reports.load(place)).get("syncs")
        assert (case and case["severity"]) == severity


def test_every_finding_says_what_its_share_is_of(tmp_path: Path) -> None:
    program = Program()
    for i in range(4000):
        program.span("POSIX", "open", 50, file=f"/d/{i % 9}", ret=-1, errno=2)
        program.read(f"/d/{i % 9}", 100, 100, name="pread", offset=(i * 7919) % 100_003)
        program.span("POSIX", "fsync", 50, file="/d/a", ret=0)
        program.span("POSIX", "flock", 50, file="/d/lock", operation=2, ret=0)
    program.write(tmp_path)
    rows = reports.load(tmp_path).findings.dicts()
    assert {"io-bound", "small-reads", "syncs", "lock-waits", "failed-calls"} <= {
        row["rule"] for row in rows
    }
    for row in rows:
        assert row["base"] == "of the 1 s that the job took"
        assert row["base"] in row["title"] + row["evidence"]
        assert "/d/" in row["evidence"], "a finding that points at nothing"


def test_waiting_for_locks_is_no_metadata_storm(tmp_path: Path) -> None:
    program = Program()
    for i in range(2000):
        program.span("POSIX", "flock", 1000, file="/d/lock", operation=2, ret=0)
        program.span("POSIX", "fcntl", 500, file="/d/other", cmd=7 if i % 2 else 38, ret=0)
        program.span("POSIX", "fcntl", 1, file="/d/other", cmd=1, ret=0)
        program.now += 200
    program.write(tmp_path)
    report = reports.load(tmp_path)
    assert set(found(report)) == {"lock-waits"}
    case = found(report)["lock-waits"]
    assert case["concerns_ns"] == 2000 * 1500 * US
    assert "most on /d/lock: 2,000 calls, 2 s" in case["evidence"]
    row = overview(report)
    assert row["io_ns"] == 2000 * US
    assert row["bound_by"].startswith("waiting for locks 88 %")
    kinds = {(call["cat"], call["name"]): call["count"] for call in report.calls}
    assert kinds == {
        ("POSIX lock", "flock"): 2000,
        ("POSIX lock", "fcntl"): 2000,
        ("POSIX", "fcntl"): 2000,
    }


@pytest.mark.parametrize(("dur", "told"), [(0, False), (40, True)])
def test_calls_that_libc_buffers_are_no_small_writes(tmp_path: Path, dur: int, told: bool) -> None:
    """Of a hundred calls that fill a buffer one writes it; without a buffer, each does."""
    program = Program()
    for i in range(2000):
        size, took = 80, dur or (50 if i % 51 == 50 else 0)
        program.span("STDIO", "fwrite", took, file="/d/log", size=1, count=size, ret=size)
        program.now += 20
    program.write(tmp_path)
    report = reports.load(tmp_path)
    assert ("small-writes" in found(report)) == told
    if told:
        evidence = found(report)["small-writes"]["evidence"]
        assert "most of them are fwrite; most on /d/log: 2,000 calls" in evidence


def test_threads_that_read_at_once_take_no_more_than_the_time_there_was(tmp_path: Path) -> None:
    program = Program()
    for _ in range(1000):
        for thread in range(4):
            program.read("/d/a", 100, 500, at=program.now, tid=10 + thread)
        program.now += 500
        program.now += 500
    program.write(tmp_path)
    case = found(reports.load(tmp_path))["small-reads"]
    assert case["concerns_ns"] == 1000 * 500 * US
    assert case["share"] == pytest.approx(0.5)


def test_nothing_stands_out_in_words_of_its_own(tmp_path: Path) -> None:
    reader(reading=1000).write(tmp_path)
    text = "\n".join(summarise(reports.load(tmp_path)))
    assert "No findings" in text
    assert "docs/" not in text
    assert "\nuntraced" not in text

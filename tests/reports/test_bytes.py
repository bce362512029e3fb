"""Bytes, where they belong: the right file and direction, known or not, and the rates of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.command import dftracer
from support.synthetic_program import Program, digest, training

from dftracer import reports, trace
from dftracer.reports.render.plots.io import sizes, timeline
from dftracer.reports.render.summary import summarise

US = 1000
MB = 1 << 20
NO_FILES = ("pipe:[1]", "socket:[2]", "anon_inode:[eventfd]", "/dev/pts/3", "/dev/tty", "/dev/ptmx")


def row(report: reports.Report, table: str, **wanted: Any) -> dict[str, Any]:
    (found,) = [
        one
        for one in report.table(table)
        if all(one[column] == value for column, value in wanted.items())
    ]
    return found


def copy(program: Program, source: str, target: str, size: int, name: str, dur: int = 10) -> None:
    """As the recorder writes it: sendfile names the target first."""
    first, second = (target, source) if name.startswith("sendfile") else (source, target)
    for file in (source, target):
        if file not in program.known:
            program.known.add(file)
            program._meta("FH", file, digest(file))
    key = "in_fd_hash" if name.startswith("sendfile") else "fd_out_hash"
    program.span("POSIX", name, dur, file=first, ret=size, **{key: digest(second)})


@pytest.mark.parametrize("name", ["copy_file_range", "sendfile", "sendfile64", "splice"])
def test_a_copy_is_read_at_one_file_and_written_at_the_other(tmp_path: Path, name: str) -> None:
    program = Program()
    copy(program, "/d/src", "/d/dst", 5_000_000, name)
    program.write(tmp_path)
    report = reports.load(tmp_path)
    for file, read, written in (("/d/src", 5_000_000, 0), ("/d/dst", 0, 5_000_000)):
        found = row(report, "files", fname=file)
        assert (found["read_bytes"], found["write_bytes"]) == (read, written)
        assert (found["reads"], found["writes"]) == (int(read > 0), int(written > 0))
    call = row(report, "calls", name=name)
    assert (call["count"], call["read_bytes"], call["write_bytes"]) == (1, 5_000_000, 5_000_000)
    assert (call["mean_size"], call["bandwidth"]) == (5_000_000, 5_000_000 * 1e9 / (10 * US))
    assert [one["direction"] for one in report.sizes] == ["copy"]
    used = {file.path: file for file in trace.summarise_all(list(tmp_path.iterdir())).used}
    assert (used["/d/src"].read_bytes, used["/d/src"].write_bytes) == (5_000_000, 0)
    assert (used["/d/dst"].read_bytes, used["/d/dst"].write_bytes) == (0, 5_000_000)


def test_small_copies_are_not_two_findings(tmp_path: Path) -> None:
    program = Program()
    for _ in range(2000):
        copy(program, "/d/src", "/d/dst", 100, "copy_file_range")
    program.write(tmp_path)
    rules = reports.load(tmp_path).findings.column("rule")
    assert not {"small-reads", "small-writes"} & set(rules)


def test_a_copy_of_an_older_trace_is_read_and_its_target_not_known(tmp_path: Path) -> None:
    program = Program()
    program.span("POSIX", "copy_file_range", 10, file="/d/src", fd_out=4, len=100, ret=100)
    program.write(tmp_path)
    found = row(reports.load(tmp_path), "files", fname="/d/src")
    assert (found["read_bytes"], found["write_bytes"]) == (100, 0)


def test_of_a_splice_only_the_side_of_the_file_is_io(tmp_path: Path) -> None:
    program = Program()
    copy(program, "/d/src", "pipe:[7]", 1000, "splice")
    copy(program, "pipe:[7]", "/d/dst", 1000, "splice")
    copy(program, "pipe:[7]", "socket:[8]", 77, "splice")
    program.write(tmp_path)
    report = reports.load(tmp_path)
    overview = row(report, "overview")
    assert (overview["read_bytes"], overview["write_bytes"]) == (1000, 1000)
    assert row(report, "calls", cat="POSIX")["count"] == 2
    assert row(report, "calls", cat="POSIX")["mean_size"] == 1000
    pipe = row(report, "files", fname="pipe:[7]")
    assert (pipe["read_bytes"], pipe["write_bytes"]) == (1077, 1000)
    (process,) = trace.summarise_all(list(tmp_path.iterdir())).processes
    assert (process.read_bytes, process.write_bytes) == (1000, 1000)


TOLD = [
    ("fputs", "write", {"ret": 1, "ret_len": 20}, 20),
    ("puts", "write", {"ret": 6, "ret_len": 6}, 6),
    ("getw", "read", {"ret": -1, "ret_len": 4}, 4),
    ("putw", "write", {"ret": 0}, 4),
    ("getchar", "read", {"ret": 65}, 1),
    ("getchar", "read", {"ret": -1}, 0),
    ("putchar", "write", {"ret": 65}, 1),
    ("fgetwc", "read", {"ret": 228, "ret_len": 2}, 2),
    ("__uflow", "read", {"ret": 65, "ret_len": 4096}, 4096),
    ("aio_return", "read", {"ret": 9, "read_len": 9, "write_len": 0}, 9),
    ("aio_return", "write", {"ret": 9, "read_len": 0, "write_len": 9}, 9),
    ("io_getevents", "read", {"ret": 2, "read_len": 8192, "write_len": 0}, 8192),
    ("io_getevents", "read", {"ret": 0}, 0),
    ("fscanf", "read", {"ret": 2}, None),
    ("fputs", "write", {"ret": 1}, None),  # of an older trace
    ("aio_return", "read", {"ret": 9}, None),
    ("__overflow", "write", {"ret": 65}, None),
    ("fscanf", "read", {"ret": -1, "errno": 9}, 0),
]


@pytest.mark.parametrize(("name", "way", "args", "size"), TOLD)
def test_bytes_of_calls_that_tell_them_and_of_those_that_do_not(
    tmp_path: Path, name: str, way: str, args: dict[str, int], size: int | None
) -> None:
    """A sum of which nothing is known is unknown, never 0."""
    program = Program()
    program.span("STDIO", name, 10, file="/d/a", **args)
    program.write(tmp_path)
    report = reports.load(tmp_path)
    for table in ("files", "calls", "overview", "processes", "layers", "hosts", "directories"):
        (found,) = report.table(table).dicts()
        assert found[f"{way}_bytes"] == size, table
    (line,) = [line for line in summarise(report) if line.startswith("I/O ")]
    assert ("unknown" in line) == (size is None)
    summary = trace.summarise_all(list(tmp_path.iterdir()))
    for one in (summary.rows[0], summary.processes[0], summary.used[0]):
        assert getattr(one, f"{way}_bytes") == size
    (event,) = json.loads(
        dftracer("query", f"select {way}_bytes from events", tmp_path, "--format", "json",
                 cwd=tmp_path).stdout
    )  # fmt: skip
    assert event[f"{way}_bytes"] == size


def test_a_sum_with_unknown_parts_says_so(tmp_path: Path) -> None:
    program = Program()
    program.read("/d/a", 4096, 10)
    program.span("STDIO", "fscanf", 10, file="/d/a", ret=1)
    program.write(tmp_path)
    report = reports.load(tmp_path)
    overview = row(report, "overview")
    assert (overview["read_bytes"], overview["read_unknown"]) == (4096, 1)
    assert "the bytes of 1 call with unknown sizes (fscanf)" in overview["not_traced"]
    assert "read ≥ 4.1 KB" in "\n".join(summarise(report))
    shown = dftracer("stats", tmp_path, cwd=tmp_path).stdout
    assert "≥ 4.1 KB" in shown
    assert "unknown" in shown


def test_submissions_waits_locks_and_processes_are_no_metadata(tmp_path: Path) -> None:
    program = Program()
    calls = ("io_submit", "aio_read", "aio_suspend", "lio_listio", "flock", "lockf", "waitpid")
    for name in calls * 300:
        program.span("POSIX", name, 100, file="/d/a", ret=0)
    for _ in range(1000):
        program.span("STDIO", "fputs", 100, file="/d/a", ret=1)
    program.write(tmp_path)
    report = reports.load(tmp_path)
    assert row(report, "files", fname="/d/a")["metadata"] == 0
    assert "metadata-storm" not in report.findings.column("rule")


def test_threads_that_share_an_open_file_read_nothing_twice(tmp_path: Path) -> None:
    """Four threads in turn, each with its lines together, as buffers of threads are written."""
    program = Program()
    program.span("POSIX", "open", 1, at=0, file="/d/a", ret=3)
    program.span("POSIX", "close", 1, at=100_000, file="/d/a", ret=0)
    for tid in range(4):
        for turn in range(50):
            program.read("/d/a", MB, 5, at=10 + 20 * (4 * turn + tid), tid=1000 + tid)
    program.write(tmp_path)
    report = reports.load(tmp_path)
    found = row(report, "files", fname="/d/a")
    assert (found["read_bytes"], found["reread_bytes"]) == (200 * MB, 0)
    assert (found["extent_bytes"], found["pattern"], found["random"]) == (
        200 * MB,
        "sequential",
        0,
    )
    assert "rereads" not in report.findings.column("rule")


def test_threads_with_open_files_of_their_own_read_twice(tmp_path: Path) -> None:
    program = Program()
    for tid in (1001, 1002):
        program.span("POSIX", "open", 1, at=tid, file="/d/a", ret=3, tid=tid)
    for tid in (1001, 1002):
        for turn in range(10):
            program.read("/d/a", MB, 5, at=2000 + 20 * turn + tid % 2, tid=tid)
    program.write(tmp_path)
    found = row(reports.load(tmp_path), "files", fname="/d/a")
    assert (found["reread_bytes"], found["extent_bytes"]) == (10 * MB, 10 * MB)


def test_a_child_that_reads_on_reads_nothing_twice(tmp_path: Path) -> None:
    """It goes on where its parent was, and the parent goes on behind it."""
    parent, child = Program(pid=10), Program(pid=11, ppid=10)
    parent.span("POSIX", "open", 1, file="/d/a", ret=3)
    for _ in range(50):
        parent.read("/d/a", MB, 5)
    parent.span("POSIX", "fork", 5, ret=11)
    for turn in range(100):
        child.read("/d/a", MB, 5, at=parent.now + 10 * turn)
    parent.now += 2000
    for _ in range(50):
        parent.read("/d/a", MB, 5)
    parent.write(tmp_path)
    child.write(tmp_path)
    report = reports.load(tmp_path)
    found = row(report, "files", fname="/d/a")
    assert (found["read_bytes"], found["reread_bytes"]) == (200 * MB, 0)
    assert found["pattern"] == "unknown"
    assert "rereads" not in report.findings.column("rule")
    places = trace.read(tmp_path / "t-node1-11.pfw", columns=["position"])
    import pyarrow as pa

    assert set(pa.table(places)["position"].to_pylist()) == {None}


def test_the_rate_of_a_job_is_over_the_time_in_which_any_process_was_in_a_call(
    tmp_path: Path,
) -> None:
    """Eight processes read at once, and then one alone."""
    for pid in range(8):
        program = Program(pid=100 + pid)
        program.read("/d/a", 10 * MB, 1000, at=0)
        if pid == 3:
            program.read("/d/a", 10 * MB, 500, at=5000)
            program.span("STDIO", "fread", 100, at=4950, file="/d/b", size=1, count=1, ret=1)
        program.write(tmp_path)
    report = reports.load(tmp_path)
    overview = row(report, "overview")
    assert overview["io_ns"] == 8550 * US
    assert overview["any_ns"] == 1550 * US
    assert overview["bandwidth"] == pytest.approx((90 * MB + 1) * 1e9 / (1550 * US))
    posix = row(report, "layers", cat="POSIX")
    assert posix["any_ns"] == 1500 * US
    assert posix["bandwidth"] == pytest.approx(90 * MB * 1e9 / (1500 * US))
    assert row(report, "layers", cat="STDIO")["any_ns"] == 100 * US


def test_waiting_for_a_child_is_in_no_rate_and_is_no_operation(tmp_path: Path) -> None:
    program = Program()
    program.span("POSIX", "fork", 100, ret=5)
    program.read("/d/a", MB, 100)
    program.span("POSIX", "waitpid", 100_000, ret=5)
    program.span("POSIX", "execve", 0)
    program.write(tmp_path)
    report = reports.load(tmp_path)
    posix = row(report, "layers", cat="POSIX")
    assert (posix["any_ns"], posix["union_ns"]) == (100 * US, 100_200 * US)
    assert posix["bandwidth"] == pytest.approx(MB * 1e9 / (100 * US))
    assert row(report, "processes")["ops"] == 1
    assert sum(piece["ops"] for piece in report.heat) == 1


def test_pipes_are_in_no_sum_of_bytes_anywhere(tmp_path: Path) -> None:
    program = Program()
    program.read("/d/a", 1000, 10)
    for name in (*NO_FILES, "/dev/ptmx2", "/data/pipe:[1]"):  # the last two are files
        program.read(name, 50, 10)
    program.write(tmp_path)
    report = reports.load(tmp_path)
    summary = trace.summarise_all(list(tmp_path.iterdir()))
    (process,) = summary.processes
    (call,) = summary.rows
    for found in (
        row(report, "overview")["read_bytes"],
        row(report, "processes")["read_bytes"],
        row(report, "calls", cat="POSIX", name="read")["read_bytes"],
        sum(piece["bytes"] for piece in report.heat),
        process.read_bytes,
        call.read_bytes,
    ):
        assert found == 1100
    assert summary.pipes["read_bytes"] == 50 * len(NO_FILES)
    told = dftracer("stats", tmp_path, cwd=tmp_path).stdout
    assert "through pipes, sockets and terminals" in told
    (file,) = json.loads(dftracer("info", "--json", tmp_path, cwd=tmp_path).stdout)["files"]
    assert file["processes"][0]["read_bytes"] == 1100
    figure = timeline(report)
    assert figure is not None
    moved = [line[figure.table.columns.index("read_bytes")] for line in figure.table.rows]
    assert sum(moved) == 1100
    bars = sizes(report)
    assert bars is not None
    assert sum(sum(one["y"]) for one in bars.views[0].data) == 3


def test_what_was_touched_of_a_mapped_file_and_how_long_it_took(tmp_path: Path) -> None:
    """Two mappings of one file, three runs of page faults; a second file whose use is not known."""
    program = Program()
    for file, length in (("/d/a", 40 * MB), ("/d/a", 24 * MB), ("/d/b", MB)):
        program.span("POSIX", "mmap", 3, file=file, length=length, offset=0, site=None)
    on: dict[str, Any] = {"file": "/d/a", "offset": 0}
    slow = {"faults": 60, "major": 50, "major_us": 900_000}
    program.span("MMAP", "page_faults", 10, **on, last_offset=MB, faults=7)
    program.span("MMAP", "page_faults", 1_000_000, **on, last_offset=MB, **slow)
    program.span("MMAP", "page_faults", 10, **on, faults=1, unseen=5)
    program.span("MMAP", "touched", 0, **on, length=40 * MB, touched=8192, ranges=2)
    program.span("MMAP", "touched", 0, **on, length=24 * MB, touched=MB, ranges=9)
    program.write(tmp_path)
    report = reports.load(tmp_path)
    assert row(report, "mappings", fname="/d/a") == {
        "fname": "/d/a",
        "mapped_bytes": 64 * MB,
        "touched_bytes": MB + 8192,
        "ranges": 11,
        "faults": 68,
        "major_faults": 50,
        "unseen": 5,
        "faulting_ns": 1_000_020 * US,
        "major_ns": 900_000 * US,
    }
    other = row(report, "mappings", fname="/d/b")
    assert (other["mapped_bytes"], other["touched_bytes"], other["faults"]) == (MB, None, 0)
    file = row(report, "files", fname="/d/a")
    assert (file["touched_bytes"], file["pattern"]) == (MB + 8192, "mapped")
    assert file["total_ns"] == 6 * US, "page faults are not calls on the file"
    (overview,) = report.overview
    assert overview["fault_wait_ns"] == 900_000 * US
    assert "what was touched of 1.05 MB that 1 file had mapped" in overview["not_traced"]
    assert overview["bound"] == "reading"
    (finding,) = [one for one in report.findings if one["rule"] == "cold-page-faults"]
    assert "900 ms in 50 major page faults, 18 ms each" in finding["evidence"]
    assert finding["files"].startswith("/d/a")


def test_a_mapped_file_has_its_length_and_no_random_pattern(tmp_path: Path) -> None:
    program = Program()
    program.span("POSIX", "mmap", 5, file="/d/a", length=62 * MB, prot=1, flags=1, offset=0)
    program.span("POSIX", "mmap", 5, file="/d/b", length=100, errno=12)
    for i in range(1100):
        program.read("/d/a", 100, 500, name="pread", offset=7919 * (i * 31 % 1100))
    program.write(tmp_path)
    report = reports.load(tmp_path)
    found = row(report, "files", fname="/d/a")
    assert (found["mapped_bytes"], found["pattern"]) == (62 * MB, "mapped")
    assert row(report, "files", fname="/d/b")["mapped_bytes"] == 0
    assert row(report, "calls", name="mmap")["mapped_bytes"] == 62 * MB
    overview = row(report, "overview")
    assert overview["mapped_bytes"] == 62 * MB
    assert "what was touched of 65 MB that 1 file had mapped into memory" in overview["not_traced"]
    assert "random-access" not in report.findings.column("rule")
    checks = json.loads(dftracer("doctor", "--json", tmp_path, cwd=tmp_path).stdout)["checks"]
    (check,) = [one for one in checks if one["name"] == "mapped"]
    assert (check["status"], "/d/a" in check["text"]) == ("warn", True)


@pytest.mark.parametrize("how", ["setup", "mapping"])
def test_a_ring_is_named(tmp_path: Path, how: str) -> None:
    program = Program()
    program.read("/d/a", 10, 1)
    if how == "setup":
        program.span("POSIX", "io_uring_setup", 5, count=8, ret=4)
    else:
        program.span("POSIX", "mmap", 5, file="anon_inode:[io_uring]", length=4096)
    counts = {"read_seen": 10, "read_total": 12, "write_seen": 1, "write_total": 1}
    program._line("end", "dftracer", 0, 0, counts)
    program.write(tmp_path, ended=False)
    report = reports.load(tmp_path)
    assert "through io_uring" in row(report, "overview")["not_traced"]
    checks = json.loads(dftracer("doctor", "--json", tmp_path, cwd=tmp_path).stdout)["checks"]
    found = {one["name"]: one for one in checks}
    assert found["io_uring"]["status"] == "warn"
    assert found["gap"]["status"] == "warn"


def test_shared_memory_of_loaders_is_one_row(tmp_path: Path) -> None:
    """Each tensor of a worker is a file of its own, twice named: they filled the table."""
    program = Program()
    for number in range(30):
        name = f"/dev/shm/torch_12_{number}_0"
        program.span("POSIX", "open", 100, file=name, ret=3)
        program.span("POSIX", "close", 50, file=f"{name} (deleted)", ret=0)
    program.read("/dev/shm/torch_of_mine", 100, 10)
    program.write(tmp_path)
    files = {row["fname"]: row for row in reports.load(tmp_path).files}
    assert set(files) == {"/dev/shm/torch_*", "/dev/shm/torch_of_mine"}
    assert files["/dev/shm/torch_*"]["opens"] == 30
    assert files["/dev/shm/torch_*"]["total_ns"] == 30 * 150 * US


@pytest.mark.parametrize(("made", "pipes"), [(0, ["/d/pipe"]), (-1, [])])
def test_what_passes_through_a_named_pipe_was_not_read_before(
    tmp_path: Path, made: int, pipes: list[str]
) -> None:
    """A call that failed has made no pipe."""
    program = Program()
    program.span("POSIX", "mkfifo", 10, file="/d/pipe", ret=made)
    for _ in range(4):
        program.span("POSIX", "open64", 10, file="/d/pipe", ret=3)
        for _ in range(64):
            program.read("/d/pipe", MB, 10_000, fd=3)
        program.span("POSIX", "close", 10, file="/d/pipe", ret=0, fd=3)
    program.write(tmp_path)
    report = reports.load(tmp_path)
    assert [row["pipe"] for row in report.table("pipes")] == pipes
    assert ("rereads" in report.findings.column("rule")) is (not pipes)


def test_every_table_of_a_report_can_be_queried(tmp_path: Path) -> None:
    training(steps=3, epochs=1).write(tmp_path)
    report = reports.load(tmp_path)
    names = [name for name in report.tables if name not in ("files", "processes", "hosts")]
    sql = " union all ".join(
        f"select '{name}' as name, count(*) as rows from {name}" for name in names
    )
    done = dftracer("query", sql, tmp_path, "--format", "json", cwd=tmp_path)
    found = {row["name"]: row["rows"] for row in json.loads(done.stdout)}
    assert found == {name: len(report.table(name)) for name in names}
    assert found["steps"] == 3

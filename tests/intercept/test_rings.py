"""Requests of io_uring: each one an event, joined with its completion, however the ring is used."""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path

import pytest
from support import intercept
from support.build import command
from support.command import dftracer

from dftracer import reports

BLOCK = 4096
NUMBER = 1000
LANE = 22  # bits of a thread's number, below that of a lane beside it


@pytest.fixture
def place(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    (work / "in").write_bytes(b"0123456789abcde\n" * (BLOCK // 16 * 256))
    return work


def liburing(mode: str) -> Path:
    if not Path("/usr/include/liburing.h").exists():
        pytest.skip("liburing is not installed (tools/bootstrap.sh test)")
    return intercept.program("ring_lib", mode, "-Wl,--no-as-needed", "-luring", "-lpthread")


def traced(program: Path, way: str, mode: str, place: Path, **more: object) -> intercept.Run:
    run = intercept.traced(program, way, place / "in", NUMBER, mode=mode, cwd=place, expect=None,
                           **more)  # type: ignore[arg-type]  # fmt: skip
    if run.result.rc == 77:
        pytest.skip("io_uring is not permitted here")
    return run


def reads(run: intercept.Run) -> list[intercept.Event]:
    return [one for one in run.one.requests if one.name == "read"]


def check_reads(events: list[intercept.Event], number: int, file: Path) -> None:
    assert len(events) == number
    assert {one.path for one in events} == {str(file)}
    assert {(one.args["count"], one.args["ret"]) for one in events} == {(BLOCK, BLOCK)}
    offsets = Counter(one.args["offset"] for one in events)
    assert offsets == Counter(n % 256 * BLOCK for n in range(number))


def check_lanes(events: list[intercept.Event]) -> None:
    """Viewers drop spans that cross: those on one lane must not."""
    ends: dict[int, int] = {}
    for one in sorted(events, key=lambda one: (one.record["ts"], one.record["dur"])):
        assert one.tid >> LANE > 0
        assert ends.get(one.tid, 0) <= one.record["ts"]
        ends[one.tid] = one.record["ts"] + one.record["dur"]


@intercept.IN_EACH_MODE
@pytest.mark.parametrize("way", ["many", "same", "sqpoll", "wide"])
def test_every_request_of_liburing_is_an_event(place: Path, mode: str, way: str) -> None:
    run = traced(liburing(mode), way, mode, place)
    assert run.result.stdout == f"{NUMBER} {NUMBER * BLOCK}\n"
    check_reads(reads(run), NUMBER, place / "in")
    check_lanes(reads(run))
    submitted = [one for one in run.one.requests if one.name == "io_uring_submit"]
    assert sum(one.args["nr"] for one in submitted) == NUMBER
    assert "ring_requests" not in run.one.end


def test_reports_count_requests_as_the_reads_that_they_are(place: Path) -> None:
    run = traced(liburing(intercept.PRELOAD), "many", intercept.PRELOAD, place)
    report = reports.load(run.directory)
    overview = report.overview.dicts()[0]
    assert (overview["read_bytes"], overview["write_bytes"]) == (NUMBER * BLOCK, 0)
    assert not overview["not_traced"]
    assert overview["io_ns"] <= overview["job_ns"]  # not the sum of what overlaps
    (file,) = [row for row in report.files if row["fname"] == str(place / "in")]
    assert file["read_bytes"] == NUMBER * BLOCK


@intercept.IN_EACH_MODE
def test_requests_of_every_kind_have_their_files_and_results(place: Path, mode: str) -> None:
    run = traced(liburing(mode), "kinds", mode, place)
    assert run.result.rc == 0, run.result.stderr
    found = [
        (
            one.name,
            Path(one.path).name if one.path is not None else None,
            one.args.get("offset"),
            one.args.get("count", one.args.get("iovcnt")),
            one.args.get("errno", one.args.get("ret")),
        )
        for one in sorted(run.one.requests, key=lambda one: int(one.record["id"]))
        if not one.name.startswith(("io_uring", "poll"))
    ]
    descriptor = found[0][4]
    assert found == [
        ("openat", "made", None, None, descriptor),
        ("write", "made", 5, 10, 10),
        ("writev", "made", 15, 2, 10),
        ("readv", "made", 20, 2, 5),
        ("fsync", "made", None, None, 0),
        ("fdatasync", "made", None, None, 0),
        ("read_fixed", "made", 0, 8, 8),
        ("write_fixed", "made", 100, 7, 7),
        ("openat", "made", None, None, 0),
        ("read", "made", 1, 6, 6),
        ("read", None, 0, 1, 9),  # EBADF
        ("read", "made", 0, 9, 14),  # EFAULT, for the buffer, the path and the parts
        ("openat", None, None, None, 14),
        ("readv", "made", 0, 3, 14),
        ("openat", "missing", None, None, 2),
        ("read", "made", 0, 3, 3),
        *[one for one in found if one[0] == "splice"],
        ("close", "made", None, None, 0),
        ("write", "made", 0, 3, None),  # reports failure only
    ]
    (splice,) = [one for one in run.one.requests if one.name == "splice"]
    assert (splice.path or "").startswith("pipe:")
    assert splice.args["fd_out_hash"] == str(place / "made")
    (silent,) = [one for one in run.one.requests if "silent" in one.args]
    assert silent.name == "write"
    polls = [one.args.get("ret", "none") for one in run.one.requests if one.name == "poll_add"]
    assert sorted(map(str, polls)) == ["1", "1", "none"]  # two completions, and still in flight


def test_rings_of_threads_are_told_apart(place: Path) -> None:
    run = traced(liburing(intercept.PRELOAD), "threads", intercept.PRELOAD, place)
    threads = Counter(one.tid & (1 << LANE) - 1 for one in reads(run))
    assert sorted(threads.values()) == [500] * 4
    check_lanes(reads(run))


def test_a_child_does_not_report_the_requests_of_its_parent(place: Path) -> None:
    run = traced(liburing(intercept.PRELOAD), "fork", intercept.PRELOAD, place)
    assert run.result.rc == 0, run.result.stderr
    assert sorted(
        sum(one.name == "read" for one in process.requests) for process in run.processes
    ) == [1, 100]
    assert not [one for process in run.processes for one in process.requests
                if "unfinished" in one.args]  # fmt: skip


@pytest.mark.parametrize("way", ["flight", "leave", "exec"])
def test_a_request_in_flight_is_recorded_as_unfinished(place: Path, way: str) -> None:
    """When its ring is closed, when the process ends, and before it becomes another program."""
    program = liburing(intercept.PRELOAD)
    run = traced(program, way, intercept.PRELOAD, place, open_parents=True)
    done, pending = reads(run)
    assert done.args["ret"] == 1
    assert (pending.args.get("unfinished"), "ret" in pending.args) == (1, False)
    assert (pending.path or "").startswith("pipe:")


def test_a_killed_process_keeps_the_requests_that_had_completed(place: Path) -> None:
    program = liburing(intercept.PRELOAD)
    run = traced(program, "kill", intercept.PRELOAD, place, ended=False)
    assert run.result.rc == -signal.SIGKILL
    dftracer("recover", run.directory, cwd=place)
    (process,) = intercept.read(run.directory, ended=False)
    (done,) = [one for one in process.requests if one.name == "read"]
    assert done.args["ret"] == 1


def test_io_uring_can_be_left_out(place: Path) -> None:
    off = {"DFTRACER_DISABLE_IO_URING": "1"}
    run = traced(liburing(intercept.PRELOAD), "many", intercept.PRELOAD, place, env=off)
    assert not run.one.requests
    assert run.one.counts()["open"] == 1


# ---- Rings of a program's own --------------------------------------------------------------------

RAW = 400


@intercept.IN_EACH_MODE
@pytest.mark.parametrize("way", ["one", "two", "late", "threads"])
def test_every_request_of_a_ring_made_by_system_calls_is_an_event(
    place: Path, mode: str, way: str
) -> None:
    run = traced(intercept.program("ring_raw", mode, "-lpthread"), way, mode, place)
    assert run.result.rc == 0, run.result.stderr
    check_reads(reads(run), RAW, place / "in")
    assert "ring_requests" not in run.one.end


def test_requests_that_only_the_kernel_sees_are_counted_and_named(place: Path) -> None:
    program = intercept.program("ring_raw", intercept.PRELOAD, "-lpthread")
    run = traced(program, "inline", intercept.PRELOAD, place)
    if run.one.requests:
        pytest.skip("the program has no instruction for this machine")
    assert (run.one.end["rings"], run.one.end["ring_requests"]) == (1, RAW)
    overview = reports.load(run.directory).overview.dicts()[0]
    assert overview["ring_requests"] == RAW
    assert "400 requests through io_uring" in overview["not_traced"]
    checks = json.loads(dftracer("doctor", "--json", run.directory, cwd=place).stdout)["checks"]
    (check,) = [one for one in checks if one["name"] == "io_uring" and "went unseen" in one["text"]]
    assert check["status"] == "warn"
    assert "400 requests in 1 ring" in check["text"]


# ---- How the library is loaded -------------------------------------------------------------------

USER = r"""
#include <fcntl.h>
#include <liburing.h>
#include <unistd.h>
int work(const char* path) {
  struct io_uring ring;
  struct io_uring_cqe* cqe;
  char byte = 'x';
  if (io_uring_queue_init(4, &ring, 0) != 0) return 77;
  int fd = open(path, O_WRONLY | O_CREAT, 0600);
  io_uring_prep_write(io_uring_get_sqe(&ring), fd, &byte, 1, 0);
  io_uring_submit(&ring);
  if (io_uring_wait_cqe(&ring, &cqe) != 0 || cqe->res != 1) return 3;
  io_uring_cqe_seen(&ring, cqe);
  io_uring_queue_exit(&ring);
  close(fd);
  return 0;
}
"""
BY_NAME = r"""
#include <dlfcn.h>
#include <fcntl.h>
#include <liburing.h>
#include <unistd.h>
int work(const char* path) {
  void* library = dlopen("liburing.so.2", RTLD_NOW | RTLD_LOCAL);
  if (library == 0) return 77;
  int (*init)(unsigned, struct io_uring*, unsigned) = dlsym(library, "io_uring_queue_init");
  int (*submit)(struct io_uring*, unsigned) = dlsym(library, "io_uring_submit_and_wait");
  void (*leave)(struct io_uring*) = dlsym(library, "io_uring_queue_exit");
  struct io_uring ring;
  char byte = 'x';
  if (init(4, &ring, 0) != 0) return 77;
  int fd = open(path, O_WRONLY | O_CREAT, 0600);
  struct io_uring_sqe* sqe = &ring.sq.sqes[0];
  io_uring_prep_write(sqe, fd, &byte, 1, 0);
  ring.sq.sqe_tail = 1;
  if (submit(&ring, 1) != 1) return 3;
  leave(&ring);
  close(fd);
  return dlclose(library);
}
"""


@intercept.IN_EACH_MODE
@pytest.mark.parametrize("linked", [True, False], ids=["linked", "by name"])
@pytest.mark.parametrize("way", ["early", "local", "lazy", "deep", "again"])
def test_liburing_is_found_however_it_is_loaded(
    place: Path, mode: str, way: str, linked: bool
) -> None:
    liburing(mode)
    folder = place.parent / "lib"
    folder.mkdir()
    (folder / "user.c").write_text(USER if linked else BY_NAME)
    user = folder / "libuser.so"
    flags = ("-luring",) if linked else ("-ldl",)
    command("cc", "-D_GNU_SOURCE", "-shared", "-fPIC", folder / "user.c", *flags, "-o", user)
    program = intercept.program("cov_dl", mode)
    run = intercept.traced(program, way, user, place / "file", mode=mode, cwd=place)
    writes = [one for one in run.one.requests if one.name == "write"]
    assert {(one.path, one.args["ret"]) for one in writes} == {(str(place / "file"), 1)}
    assert len(writes) == run.one.counts()["open"]

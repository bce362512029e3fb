"""Calls of MPI and MPI-IO, with a library that the test makes: it knows what is true, and aborts if
it is asked about a handle that is not one. tests/mpi runs real libraries."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from support import faults, intercept, traces
from support.build import compile_c

COMMON = ("hhash", "p_idx", "level", "site_hash", "fhash")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    return work


def program(mode: str) -> Path:
    source = intercept.PROGRAMS / "toy_mpi.c"
    library = compile_c(source, None, "-shared", "-fPIC", "-Wall", "-Wextra", link=False)
    words = (f"-Wl,--no-as-needed,{library}", f"-Wl,-rpath,{library.parent}")
    return intercept.program("toy_mpi_program", mode, *words)


def traced(place: Path, *parts: str, mode: str = intercept.PRELOAD, **how: Any) -> intercept.Run:
    return intercept.traced(program(mode), *parts, mode=mode, cwd=place, **how)


def calls(trace: traces.Trace, *categories: str) -> list[traces.Record]:
    found = [one for one in trace.recorded if one["cat"] in (categories or ("MPI",))]
    return sorted(found, key=lambda one: (one["ts"], one["id"]))


def told(record: traces.Record) -> dict[str, Any]:
    """Its name, and its arguments without those that every event has."""
    args = {key: value for key, value in record["args"].items() if key not in COMMON}
    return {"name": record["name"], **args}


def of(trace: traces.Trace, *names: str, category: str = "MPI") -> list[dict[str, Any]]:
    return [told(one) for one in calls(trace, category) if one["name"] in names]


@intercept.IN_EACH_MODE
def test_messages_have_their_bytes_peers_and_errors(place: Path, mode: str) -> None:
    trace = traced(place, "messages", mode=mode).one.trace
    send = {"name": "MPI_Send", "comm": 0}
    assert of(trace, "MPI_Send", "MPI_Recv") == [
        {**send, "bytes": 80, "peer": 3, "tag": 7},
        {**send, "bytes": 1 << 33, "peer": 2, "tag": 8},  # MPI_Send_c
        {**send, "bytes": 48, "peer": 0, "tag": 1},
        # What has come, though the program asked for no status.
        {"name": "MPI_Recv", "comm": 0, "bytes": 16, "capacity": 100, "peer": 2, "tag": 5},
        # The library was not asked for the size of what is no type: it would have aborted.
        {"name": "MPI_Send", "error": 6},
    ]
    assert of(trace, "MPI_Init") == [{"name": "MPI_Init", "rank": 1, "size": 4}]
    (world,) = (one for one in calls(trace) if one["name"] == "MPI_Comm")
    assert (world["args"]["comm"], world["args"]["ranks"], world["args"]["nth"]) == (0, "0-3", 0)


def test_the_process_is_named_after_its_rank(place: Path) -> None:
    run = traced(place, "messages")
    metadata = [
        (one["name"], one["args"]["name"], one["args"]["value"]) for one in run.one.trace.metadata
    ]
    assert ("PR", "rank", "1") in metadata
    assert ("process_name", "rank 1", "process_name") in metadata


@intercept.IN_EACH_MODE
def test_requests_are_joined_with_their_completion(place: Path, mode: str) -> None:
    trace = traced(place, "requests", mode=mode).one.trace
    started = of(trace, "MPI_Isend", "MPI_Irecv")
    done = {
        one["request"]: one for one in of(trace, "MPI_Isend", "MPI_Irecv", category="MPI_REQUEST")
    }
    assert [one["request"] for one in started] == [1, 2, 3, 4]
    assert sorted(done) == [1, 2, 3, 4]
    assert (done[1]["name"], done[1]["bytes"], done[1]["peer"]) == ("MPI_Isend", 48, 3)
    # From anybody, with any tag: the status says from whom.
    assert (done[2]["bytes"], done[2]["peer"], done[2]["tag"]) == (16, 2, 5)
    assert [done[n]["capacity"] for n in (2, 3, 4)] == [100, 50, 60]
    assert of(trace, "MPI_Waitall") == [{"name": "MPI_Waitall", "completed": 2}]
    (test,) = of(trace, "MPI_Test")  # three tests before it found nothing
    assert (test["request"], test["polls"]) == (3, 3)
    assert of(trace, "MPI_Wait")[0]["request"] == 4
    # What was started ends with the call that completed it, on a lane beside the thread.
    records = {one["args"].get("request"): one for one in calls(trace, "MPI_REQUEST")}
    (wait,) = (one for one in calls(trace) if one["name"] == "MPI_Waitall")
    for number in (1, 2):
        assert records[number]["ts"] + records[number]["dur"] == wait["ts"] + wait["dur"]
        assert records[number]["tid"] != wait["tid"]
        assert records[number]["tid"] % (1 << 22) == wait["tid"]


@intercept.IN_EACH_MODE
def test_collectives_are_numbered_in_their_communicator(place: Path, mode: str) -> None:
    trace = traced(place, "collectives", mode=mode).one.trace
    found = [
        (one["name"], one["comm"], one["seq"], one.get("bytes"))
        for one in map(told, calls(trace))
        if "seq" in one
    ]
    assert found == [
        ("MPI_Barrier", 0, 0, None),
        ("MPI_Allreduce", 0, 1, 80),
        ("MPI_Allgather", 0, 2, 24),  # in place: what it says of the send buffer is not looked at
        ("MPI_Alltoallv", 0, 3, 80),
        ("MPI_Comm_dup", 0, 4, None),
        ("MPI_Barrier", 1, 0, None),
        ("MPI_Comm_split", 0, 5, None),  # to MPI_COMM_NULL
        ("MPI_Comm_split", 0, 6, None),
        ("MPI_Barrier", 2, 0, None),
        ("MPI_Barrier", 0, 7, None),  # PMPI_Barrier, as bindings of other languages call it
    ]
    made = {one["args"]["comm"]: one["args"] for one in calls(trace) if one["name"] == "MPI_Comm"}
    assert {n: (one["ranks"], one["nth"], one["size"]) for n, one in made.items()} == {
        0: ("0-3", 0, 4),
        1: ("1,3", 0, 2),
        2: ("1,3", 1, 2),
    }
    (send,) = of(trace, "MPI_Send")
    assert (send["comm"], send["peer"], send["world_peer"]) == (1, 1, 3)


@intercept.IN_EACH_MODE
def test_mpi_io_names_the_calls_inside(place: Path, mode: str) -> None:
    trace = traced(place, "files", mode=mode).one.trace
    (write,) = (one for one in calls(trace, "MPIIO") if one["name"] == "MPI_File_write_at_all")
    assert told(write) == {
        "name": "MPI_File_write_at_all",
        "bytes": 24,
        "offset": 100,
        "collective": 1,
        "comm": 0,
    }
    names = intercept.hashes(trace)
    assert names[write["args"]["fhash"]] == os.path.realpath(place / "file")
    inside = [one for one in trace.recorded if one["name"] == "pwrite"]
    assert [one["args"]["p_idx"] for one in inside] == [write["id"]]
    assert inside[0]["args"]["fhash"] == write["args"]["fhash"]
    # The barrier inside is the library's own.
    assert of(trace, "MPI_Barrier") == []
    opened = of(trace, "MPI_File_open", category="MPIIO")
    assert [one.get("error") for one in opened] == [7, None]


def test_files_outside_of_the_traced_directories_are_left_out(place: Path) -> None:
    run = traced(place, "files", "messages", env={"DFTRACER_DATA_DIR": str(place / "elsewhere")})
    assert calls(run.one.trace, "MPIIO") == []
    assert len(of(run.one.trace, "MPI_Send")) == 4


@pytest.mark.parametrize("category", ["MPI", "MPIIO"])
def test_a_switch_leaves_one_category_out(place: Path, category: str) -> None:
    run = traced(place, "files", "requests", env={f"DFTRACER_DISABLE_{category}": "1"})
    seen = {one["cat"] for one in run.one.trace.recorded if one["cat"].startswith("MPI")}
    assert seen == ({"MPIIO"} if category == "MPI" else {"MPI", "MPI_REQUEST"})


@intercept.IN_EACH_MODE
def test_threads_lose_no_call(place: Path, mode: str) -> None:
    trace = traced(place, "threads", mode=mode).one.trace
    sends = of(trace, "MPI_Send")
    assert len(sends) == 4000
    assert all((one["bytes"], one["peer"]) == (1, 2) for one in sends)
    assert sorted({one["tag"] for one in sends}) == [0, 1, 2, 3]


def test_a_fork_inside_a_rank_leaves_both_whole(place: Path) -> None:
    run = traced(place, "forks")
    assert len(run.processes) == 2
    (rank,) = (one for one in run.processes if of(one.trace, "MPI_Init"))
    assert len(of(rank.trace, "MPI_Barrier")) == 1


def test_a_killed_rank_keeps_its_calls(place: Path) -> None:
    run = traced(place, "messages", "kill", expect=-9, ended=False)
    faults.recover(run.directory)
    (rank,) = intercept.read(run.directory, ended=False)
    assert len(of(rank.trace, "MPI_Send")) == 4


def test_mpi_abort_is_recorded_before_the_process_goes(place: Path) -> None:
    run = traced(place, "messages", "abort", expect=3, ended=False)
    assert of(run.one.trace, "MPI_Abort") == [{"name": "MPI_Abort", "errorcode": 3}]
    assert len(of(run.one.trace, "MPI_Send")) == 4


def test_without_arguments_the_calls_remain(place: Path) -> None:
    run = traced(place, "messages", "requests", env={"DFTRACER_INC_METADATA": "0"})
    names = [one["name"] for one in calls(run.one.trace)]
    assert names.count("MPI_Send") == 4
    assert len(calls(run.one.trace, "MPI_REQUEST")) == 4

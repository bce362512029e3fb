"""What a report says of MPI: who came late to collectives, and who sent how much to whom."""

from __future__ import annotations

from pathlib import Path

from support.synthetic_program import Program

import dftracer.reports

RANKS = 4
STEPS = 30
WORK = 5_000  # microseconds
LATE = 30_000  # of rank 3
EXCHANGE = 100


def write_job(place: Path, runs: tuple[str, ...]) -> None:
    """Each rank works, sends 80 bytes to the next one, and meets the others in a barrier."""
    programs = [
        Program(200 + rank, rank=rank, run=runs[rank], command="solver") for rank in range(RANKS)
    ]
    for rank, program in enumerate(programs):
        told = {"comm": 0, "rank": rank, "size": RANKS, "ranks": f"0-{RANKS - 1}", "nth": 0}
        program.span("MPI", "MPI_Init", 1_000, rank=rank, size=RANKS)
        program.span("MPI", "MPI_Comm", 0, **told)
    for step in range(STEPS):
        for rank, program in enumerate(programs):
            program.now += WORK + (LATE if rank == 3 else 0)
            program.span(
                "MPI", "MPI_Isend", 10, comm=0, bytes=80, peer=1, world_peer=(rank + 1) % RANKS
            )
        last = max(program.now for program in programs)
        for program in programs:
            program.span("MPI", "MPI_Barrier", last + EXCHANGE - program.now, comm=0, seq=step)
    for program in programs:
        program.span("MPIIO", "MPI_File_write_at_all", 50, bytes=4_000, file="/d/out")
        program.span("MPIIO_REQUEST", "MPI_File_iwrite_at", 50, bytes=700, file="/d/out")
        program.span("MPIIO_REQUEST", "MPI_File_iread_at", 50, bytes=300, file="/d/out")
        program.write(place)


def test_a_rank_that_is_late_at_every_barrier_is_a_finding(tmp_path: Path) -> None:
    write_job(tmp_path, ("job",) * RANKS)
    report = dftracer.reports.load(tmp_path)
    first = report.arrivals.dicts()[0]
    assert (first["rank"], first["collectives"], first["last"]) == (3, STEPS, STEPS)
    assert first["median_late_ns"] == LATE * 1000
    assert first["given_ns"] == 3 * STEPS * LATE * 1000
    (row,) = report.collectives.dicts()
    assert (row["operation"], row["count"], row["last_rank"]) == ("MPI_Barrier", STEPS, 3)
    assert (row["group"], row["ranks"], row["unmatched"]) == ("MPI 0", "0-3", 0)
    (finding,) = (one for one in report.findings.dicts() if one["rule"] == "unbalanced-rank")
    assert finding["title"].startswith("Rank 3 comes late to collectives")


def test_ranks_whose_launcher_names_no_job_are_one_run(tmp_path: Path) -> None:
    write_job(tmp_path, ("a", "b", "c", "d"))
    report = dftracer.reports.load(tmp_path)
    assert len(report.runs) == 1
    assert report.arrivals.dicts()[0]["rank"] == 3


def test_half_of_the_ranks_are_not_taken_for_a_job(tmp_path: Path) -> None:
    write_job(tmp_path, ("a", "b", "c", "d"))
    next(tmp_path.glob("*203.pfw")).unlink()
    assert len(dftracer.reports.load(tmp_path).runs) == 3


def test_the_matrix_of_messages_and_the_time_by_rank(tmp_path: Path) -> None:
    write_job(tmp_path, ("job",) * RANKS)
    report = dftracer.reports.load(tmp_path)
    matrix = {
        (row["source"], row["target"]): (row["messages"], row["bytes"])
        for row in report.mpi_peers.dicts()
    }
    assert matrix == {(rank, (rank + 1) % RANKS): (STEPS, STEPS * 80) for rank in range(RANKS)}
    ranks = {row["rank"]: row for row in report.mpi_ranks.dicts()}
    waited = STEPS * EXCHANGE * 1000
    assert ranks[3]["collective_ns"] == waited
    assert ranks[0]["collective_ns"] == waited + STEPS * LATE * 1000
    assert ranks[0]["time_ns"] == ranks[0]["collective_ns"] + (STEPS * 10 + 1_000) * 1000
    assert ranks[0]["calls"] == 2 * STEPS + 1
    # Written bytes count when the write was started, read ones when the read was complete.
    assert (ranks[0]["read_bytes"], ranks[0]["write_bytes"]) == (300, 4_000)


def test_bytes_of_mpi_io_are_not_added_to_those_of_the_calls_inside(tmp_path: Path) -> None:
    write_job(tmp_path, ("job",) * RANKS)
    overview = dftracer.reports.load(tmp_path).overview.dicts()[0]
    assert (overview["read_bytes"], overview["write_bytes"]) == (0, 0)
    assert overview["mpi_ns"] == sum(
        (STEPS * (EXCHANGE + 10 + (LATE if rank != 3 else 0))) * 1000 for rank in range(RANKS)
    )

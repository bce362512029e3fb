"""Dask gives the same tables, whatever the number of its workers, and if one of them dies."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.command import dftracer
from support.planned import Program, training

from dftracer import reports
from dftracer.errors import DFTracerError
from dftracer.reports import cluster
from dftracer.reports.store import Store

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ranks and workers, a file that is damaged, one that leans on another one's names."""
    place = tmp_path_factory.mktemp("job")
    for rank in range(3):
        program = training(pid=200 + rank, rank=rank, steps=7, compute=900 + 300 * rank)
        for i in range(50):
            program.read(f"/d/{i % 5}", 1000 + i, 3 + i % 4, at=137 * i + 1_000_000 * rank)
        program.write(place)
        worker = Program(pid=300 + rank, ppid=200 + rank)
        for i in range(40):
            worker.span("data", "item", 50 + 20 * rank)
            worker.read(f"/d/{rank}", 4096, 11, name="pread", offset=4096 * (i * 7 % 40))
        worker.span("odd", "näme", 10**6, at=17)
        worker.read("pipe:[7]", 100 + rank, 60, at=500)  # one pipe of all of them
        worker.span("POSIX", "flock", 40_000, file="/d/lock", operation=2, ret=0)
        worker.span("POSIX", "open", 9, file="/none", ret=-1, errno=2)
        worker.write(place, cpu_us=500)
    with open(place / "t-node1-301.pfw", "a") as file:
        file.write('{"id":5,"name":"half\n')
    leaning = Program(pid=999)
    leaning.known.add("/d/4")  # explained elsewhere
    leaning.read("/d/4", 77, 5, at=3)
    leaning.write(place)
    return place


@pytest.fixture(scope="module")
def alone(job: Path) -> reports.Report:
    return reports.load(job, threads=1)


@pytest.fixture(scope="module")
def scheduler() -> Iterator[Any]:
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as running:
        yield running


def same(one: reports.Report, other: reports.Report) -> None:
    assert list(one.tables) == list(other.tables)
    for name, table in one.tables.items():
        assert table.rows == other.table(name).rows, name
    assert one.damage.troubles == other.damage.troubles


def test_threads_are_no_matter(job: Path, alone: reports.Report) -> None:
    assert len(alone.processes) == 7
    assert alone.damage.troubles == {"bad_line": 1}
    assert "/d/4" in alone.files.column("fname")
    assert not any(name.startswith("#") for name in alone.files.column("fname"))
    same(alone, reports.load(job, threads=4))


def test_blocks_of_any_cut_add_up(job: Path, alone: reports.Report) -> None:
    """The same partials, without a cluster: one block a file, and in groups."""
    files = sorted(job.glob("*.pfw"))
    for size in (1, 3):
        with Store(1) as store:
            for first in range(0, len(files), size):
                with Store(1) as part:
                    part.add_block(files[first : first + size], first, files)
                    store.load(part.export())
            rows = store.tables()
        for name, found in rows.items():
            if name != "overview":  # says what is not traced only in the end
                assert found == alone.table(name).rows, (name, size)


@pytest.mark.parametrize("workers", [1, 4])
def test_the_number_of_workers_is_no_matter(job: Path, alone: reports.Report, workers: int) -> None:
    same(alone, reports.load(job, cluster=f"local:{workers}"))


def test_a_cluster_by_its_address(job: Path, alone: reports.Report, scheduler: Any) -> None:
    same(alone, reports.load(job, cluster=scheduler.scheduler_address))


def _dies_once(marker: str, *arguments: Any) -> Any:
    """The first worker that comes here is killed in the middle of its block."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return cluster.make_block(*arguments)
    cluster.make_block(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_is_killed(
    job: Path,
    alone: reports.Report,
    scheduler: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    marker = str(tmp_path / "died")
    submit = distributed.Client.submit

    def dying(self: Any, function: Any, *arguments: Any, **options: Any) -> Any:
        return submit(self, _dies_once, marker, *arguments, **options)

    monkeypatch.setattr(distributed.Client, "submit", dying)
    same(alone, reports.load(job, cluster=scheduler.scheduler_address))
    assert os.path.exists(marker)


def test_addresses_that_lead_nowhere(job: Path, tmp_path: Path) -> None:
    with pytest.raises(DFTracerError, match="number of processes"):
        reports.load(job, cluster="local:many")
    done = dftracer("report", job, "--cluster", "local:0", cwd=tmp_path, expect=2)
    assert len(done.stderr.splitlines()) == 1

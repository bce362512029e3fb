"""Processes and Dask give the same tables, however many workers there are, and if one dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.command import dftracer
from support.synthetic_program import Program, training

from dftracer import _cleanup, reports
from dftracer.errors import DFTracerError
from dftracer.reports import cluster, local_workers
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


@pytest.mark.long
def test_threads_are_no_matter(job: Path, alone: reports.Report) -> None:
    assert len(alone.processes) == 7
    assert alone.damage.troubles == {"bad_line": 1}
    assert "/d/4" in alone.files.column("fname")
    assert not any(name.startswith("#") for name in alone.files.column("fname"))
    same(alone, reports.load(job, threads=4))


@pytest.mark.long
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


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("workers", [1, 4])
def test_the_number_of_workers_is_no_matter(job: Path, alone: reports.Report, workers: int) -> None:
    same(alone, reports.load(job, cluster=f"local:{workers}"))
    assert not _cleanup._children
    assert not _cleanup._paths


def test_local_workers_listen_on_no_socket(job: Path, tmp_path: Path) -> None:
    """A scheduler on the loopback interface runs code for every user of the machine."""
    log = tmp_path / "calls"
    calls = "trace=execve,bind,listen,accept,accept4"
    done = dftracer(
        "report",
        job,
        "--no-page",
        "--cluster",
        "local:2",
        cwd=tmp_path,
        through=("strace", "-f", "-qq", "-e", calls, "-e", "signal=none", "-o", str(log)),
        expect=3,
    )
    assert done.stdout.startswith("job")
    assert "bind(" not in log.read_text()
    assert "listen(" not in log.read_text()
    # strace has followed the workers: there are more processes than one.
    assert len({line.split()[0] for line in log.read_text().splitlines()}) > 1


def test_what_local_workers_write_is_for_their_user_alone(
    job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    load = local_workers._load

    def look(store: Store, place: str, damages: Any) -> None:
        seen.append(os.stat(store.place).st_mode & 0o777)
        seen.append(os.stat(place).st_mode & 0o777)
        load(store, place, damages)

    monkeypatch.setattr(local_workers, "_load", look)
    before = os.umask(0)
    try:
        reports.load(job, cluster="local:1")
    finally:
        os.umask(before)
    assert set(seen) == {0o700}


DYING = """
import os, signal
from dftracer.reports import local_workers
marker = {marker!r}
work, add_block = local_workers.work, local_workers.Store.add_block
def dies(self, *arguments):
    add_block(self, *arguments)
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        {again}
    else:
        os.kill(os.getpid(), signal.SIGKILL)
local_workers.Store.add_block = dies
"""


START = local_workers._START


def _start_with(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    start = START.replace("; from dftracer", f"; exec({code!r}); from dftracer")
    assert start != START
    monkeypatch.setattr(local_workers, "_START", start)


def test_a_local_worker_that_is_killed_in_its_block(
    job: Path, alone: reports.Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = tmp_path / "died"
    _start_with(monkeypatch, DYING.format(marker=str(marker), again="pass"))
    same(alone, reports.load(job, cluster="local:2"))
    assert marker.exists()


@pytest.mark.long
def test_a_local_worker_that_is_killed_at_its_start(
    job: Path, alone: reports.Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = tmp_path / "died"
    start = f"import os; os.path.exists({str(marker)!r}) or "
    start += f"(open({str(marker)!r}, 'w').close(), os.kill(os.getpid(), 9))"
    _start_with(monkeypatch, start)
    same(alone, reports.load(job, cluster="local:1"))
    assert marker.exists()


@pytest.mark.long
def test_local_workers_that_always_die_are_one_line(
    job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _start_with(monkeypatch, "import os; os.kill(os.getpid(), 9)")
    with pytest.raises(DFTracerError, match="died 4 times: killed by SIGKILL"):
        reports.load(job, cluster="local:2")
    _start_with(monkeypatch, "raise RuntimeError('no luck')")
    with pytest.raises(DFTracerError, match="died 4 times: RuntimeError: no luck"):
        reports.load(job, cluster="local:1")
    assert not _cleanup._children
    assert not _cleanup._paths


@pytest.mark.long
def test_modules_of_the_current_directory_are_not_what_workers_import(
    job: Path, alone: reports.Report, tmp_path: Path
) -> None:
    for name in ("json", "dftracer", "duckdb"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported from here')\n")
    dftracer("report", job, "--no-page", "--cluster", "local:1", cwd=tmp_path, expect=3)


def test_a_cluster_by_its_address(
    job: Path, alone: reports.Report, scheduler: Any, tmp_path: Path
) -> None:
    address = scheduler.scheduler_address
    same(alone, reports.load(job, cluster=address))
    done = dftracer("report", job, "--no-page", "--cluster", address, cwd=tmp_path, expect=3)
    assert done.stderr.startswith(f"dftracer: {address}: without TLS, everyone who can reach")


OPENSSL = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=dftracer"
ROLES = ("client", "scheduler", "worker")


@pytest.mark.long
def test_a_cluster_by_tls(job: Path, alone: reports.Report, tmp_path: Path) -> None:
    cert, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    subprocess.run(
        [*OPENSSL.split(), "-keyout", key, "-out", cert],
        check=True,
        capture_output=True,
    )
    files = {"ca-file": cert, "cert": cert, "key": key}
    roles = {f"tls_{role}_{what}": files[what] for role in ROLES for what in ("cert", "key")}
    security = distributed.Security(tls_ca_file=cert, require_encryption=True, **roles)
    with distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        dashboard_address=None,
        silence_logs=50,
        security=security,
        protocol="tls://",
    ) as running:
        address = running.scheduler_address
        assert address.startswith("tls://")
        words = [word for option, file in files.items() for word in (f"--tls-{option}", file)]
        command = ("report", job, "--json", "--cluster", address)
        done = dftracer(*command, *words, cwd=tmp_path, expect=3)
        assert "without TLS" not in done.stderr
        assert len(json.loads(done.stdout)["processes"]) == len(alone.processes)
        done = dftracer(*command, cwd=tmp_path, expect=1)
        assert len(done.stderr.splitlines()) == 1
        assert "--tls-ca-file, --tls-cert and --tls-key missing?" in done.stderr


def _dies_once(marker: str, *arguments: Any) -> Any:
    """The first worker that comes here is killed in the middle of its block."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return cluster.make_block(*arguments)
    cluster.make_block(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.long
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


@pytest.mark.long
def test_addresses_that_lead_nowhere(job: Path, tmp_path: Path) -> None:
    with pytest.raises(DFTracerError, match="number of processes"):
        reports.load(job, cluster="local:many")
    for words in (
        ("--cluster", "local:0"),
        ("--cluster", "local:"),
        ("--cluster", "local:9999"),
        ("--tls-cert", "x"),
        ("--cluster", "tls://h:1", "--tls-cert", "x"),
        ("--cluster", "tcp://h:1", "--tls-ca-file", "x", "--tls-cert", "x", "--tls-key", "x"),
        ("--cluster", "local:2", "--tls-ca-file", "x", "--tls-cert", "x", "--tls-key", "x"),
    ):
        done = dftracer("report", job, *words, cwd=tmp_path, expect=2)
        assert len(done.stderr.splitlines()) == 1
    done = dftracer("report", job, "--cluster", "tls://127.0.0.1:1", cwd=tmp_path, expect=1)
    assert len(done.stderr.splitlines()) == 1

"""PostgreSQL: initdb, a server on a socket of its own, pgbench; as a user whom it accepts."""

from __future__ import annotations

import glob
import os
import pwd
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.build import prefix
from support.foreign import Seen, end_session, execute, read_traces, tracing
from support.limits import HANG
from support.run import environment

SUMS = (
    "SELECT (SELECT sum(abalance) FROM pgbench_accounts), (SELECT sum(tbalance) FROM "
    "pgbench_tellers), (SELECT sum(bbalance) FROM pgbench_branches), (SELECT sum(delta) FROM "
    "pgbench_history), (SELECT count(*) FROM pgbench_history)"
)


def programs() -> Path:
    """The newest PostgreSQL that is installed: Debian keeps its programs out of PATH."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"), key=_version)
    place = found[-1] if found else shutil.which("initdb")
    if place is None:
        pytest.skip("PostgreSQL is not installed (tools/bootstrap.sh foreign)")
    return Path(os.path.realpath(place)).parent


def _version(path: str) -> int:
    match = re.search(r"/(\d+)/bin/", path)
    return int(match[1]) if match else 0


def other_user() -> str | None:
    """PostgreSQL does not run as root."""
    if os.getuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    pytest.skip("no other user than root to run PostgreSQL as")


@dataclass
class Said:
    """All that a run says which does not depend on its timing."""

    initdb: bytes
    alone: str
    together: list[str]
    status: int
    bad_checksums: list[str]
    files: list[str]


class Cluster:
    """A data directory and what is done with it."""

    def __init__(self, place: Path, env: Mapping[str, str]) -> None:
        self.place = place
        self.data = place / "data"
        self.user = other_user()
        self.env = {**env, "PGHOST": str(place), "PGUSER": "owner", "PGDATABASE": "postgres"}
        self.bin = programs()

    def run(self, program: str, *words: str | Path) -> bytes:
        rc, stdout, stderr = execute(
            self.bin / program,
            *words,
            cwd=self.place,
            env=self.env,
            output=self.place / program,
            timeout=HANG,
            user=self.user,
        )
        assert rc == 0, f"{program}: {rc}\n{stdout.decode()[-2000:]}{stderr.decode()[-2000:]}"
        return stdout

    def start(self) -> subprocess.Popen[bytes]:
        log = (self.place / "log").open("ab")
        with log:
            server = subprocess.Popen(
                [
                    str(self.bin / "postgres"), "-D", str(self.data), "-k", str(self.place),
                    "-c", "listen_addresses=", "-c", "fsync=on", "-c", "wal_sync_method=fdatasync",
                    "-c", "max_wal_size=32MB", "-c", "checkpoint_timeout=30s",
                    "-c", "log_checkpoints=off",
                ],
                cwd=self.place, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, user=self.user,
            )  # fmt: skip
        return server

    def wait_for(self, server: subprocess.Popen[bytes]) -> None:
        until = time.monotonic() + HANG
        # Asked by the bare program: the number of tries depends on the time.
        words = [str(self.bin / "pg_isready"), "-q", "-h", str(self.place)]
        while subprocess.run(words, check=False).returncode != 0:
            said = (self.place / "log").read_text(errors="replace")
            assert server.poll() is None, said
            assert time.monotonic() < until, said
            time.sleep(0.05)


def live(place: Path, env: Mapping[str, str]) -> Said:
    cluster = Cluster(place, env)
    made = cluster.run("initdb", "-k", "-A", "trust", "-U", "owner", "-D", cluster.data)
    server = cluster.start()
    try:
        cluster.wait_for(server)
        cluster.run("pgbench", "-i", "-q", "-s", "1")
        cluster.run("pgbench", "-n", "-c", "1", "-t", "200", "--random-seed=1")
        alone = cluster.run("psql", "-AtXc", SUMS).decode()
        cluster.run("pgbench", "-n", "-c", "4", "-j", "2", "-t", "100", "-M", "prepared")
        cluster.run("psql", "-qXc", "CHECKPOINT", "-c", "VACUUM FULL ANALYZE pgbench_accounts")
        cluster.run("psql", "-qXc", f"COPY pgbench_accounts TO '{place}/copied'")
        together = cluster.run("psql", "-AtXc", SUMS).decode().split("|")
        server.send_signal(signal.SIGINT)  # "fast" shutdown
        status = server.wait(HANG)
    finally:
        end_session(server.pid, 10)
        server.wait()
    checked = cluster.run("pg_checksums", "--check", "-D", cluster.data)
    bad = re.findall(r"Bad checksums: *(\d+)", checked.decode())
    return Said(made, alone, together, status, bad, sorted(os.listdir(cluster.data)))


def new_place(place: Path, user: str | None) -> Path:
    made = place / "work"
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir()
    made.chmod(0o700)
    if user is not None:
        shutil.chown(made, user)
    return made


def test_initdb_and_pgbench(place: Path) -> None:
    programs()
    user = other_user()
    # Where that user may read it.
    shutil.copytree(prefix() / "lib", place / "lib")
    out = place / "traces"
    out.mkdir()
    if user is not None:
        shutil.chown(out, user)
    own = {"HOME": str(place / "work")}
    preload = {"LD_PRELOAD": str(place / "lib" / "libdftracer_preload.so")}

    work = new_place(place, user)
    bare = live(work, environment(own, enable=False))
    work = new_place(place, user)
    traced = live(work, tracing(out, {**own, **preload}))

    assert bare.status == 0
    assert bare.bad_checksums == ["0"]
    for said in (bare, traced):
        assert len(set(said.together[:4])) == 1, "the bank's books do not balance"
        assert said.together[4].strip() == "600"
    # Four clients at once do not do the same twice.
    assert {**vars(traced), "together": 0} == {**vars(bare), "together": 0}

    seen = Seen(read_traces(out, work), work)
    wal = str(work / "data" / "pg_wal") + "/"
    by_server = [image for image in seen.images if image.calls("fdatasync")]
    assert any(e.path.startswith(wal) for i in by_server for e in i.calls("fdatasync") if e.path)
    written = sum(
        max(0, int(event.args["ret"]))
        for event in seen.events("pwrite", "write", "pwritev")
        if (event.path or "").startswith(wal)
    )
    assert written > 16 << 20  # initdb's own log, and what the benchmark added
    assert seen.written(work / "copied") == (work / "copied").stat().st_size
    # initdb's servers by posix calls of a shell, the backends by fork alone.
    assert seen.of("initdb")
    assert len(seen.of("pgbench")) == 3
    (postmaster,) = {
        image.ppid for image in seen.images if image.written(work / "copied")
    }  # fmt: skip
    backends = {image.pid for image in seen.images if image.ppid == postmaster}
    assert len(backends) >= 5 + 2 + 4

"""redis with its log of every change (AOF), on a socket in a directory of its own."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.foreign import Seen, end_session, read_traces, tracing, tree
from support.limits import HANG
from support.run import environment


def server() -> str:
    """Debian's package of redis tools holds the server too; it goes by the name it is called by."""
    found = shutil.which("redis-server") or shutil.which("redis-check-rdb")
    if found is None:
        pytest.skip("redis is not installed (tools/bootstrap.sh foreign)")
    return found


class Redis:
    """A server in `work`, and a connection to it."""

    def __init__(self, work: Path, env: Mapping[str, str]) -> None:
        path = work.parent / "socket"
        path.unlink(missing_ok=True)
        self.log = work.parent / "log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    "redis-server", "--port", "0", "--unixsocket", str(path), "--dir", str(work),
                    "--appendonly", "yes", "--appendfsync", "always", "--save", "",
                    "--daemonize", "no", "--enable-debug-command", "yes",
                ],
                executable=server(),
                cwd=work,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )  # fmt: skip
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(HANG)
        try:
            self._connect(path)
        except BaseException:
            self.close()
            raise
        self.answers = self.socket.makefile("rb")
        self.wait_for("\nloading:0")

    def _connect(self, path: Path) -> None:
        until = time.monotonic() + HANG
        while True:
            try:
                self.socket.connect(str(path))
                return
            except OSError:
                said = self.log.read_text(errors="replace")
                assert self.process.poll() is None, said
                assert time.monotonic() < until, said
                time.sleep(0.02)

    def send(self, *words: str) -> None:
        parts = [b"*%d\r\n" % len(words)]
        for word in words:
            data = word.encode()
            parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
        self.socket.sendall(b"".join(parts))

    def answer(self) -> str:
        line = self.answers.readline()
        assert line, self.log.read_text(errors="replace")
        if line[:1] == b"$" and line[1:2] != b"-":
            size = int(line[1:])
            return self.answers.read(size + 2)[:-2].decode()
        return line[:-2].decode()

    def ask(self, *words: str) -> str:
        self.send(*words)
        return self.answer()

    def wait_for(self, what: str) -> None:
        until = time.monotonic() + HANG
        while what not in self.ask("INFO", "persistence"):
            assert time.monotonic() < until, what
            time.sleep(0.02)

    def end(self) -> int:
        self.send("SHUTDOWN", "NOSAVE")
        return self.process.wait(HANG)

    def close(self) -> None:
        self.socket.close()
        end_session(self.process.pid, 0)
        self.process.wait()


@dataclass
class Life:
    """What a server's life leaves."""

    digest: str
    again: str
    answers: list[str]
    status: list[int]
    files: list[str]
    log: bytes


def fill(redis: Redis) -> list[str]:
    for i in range(3000):
        redis.send("SET", f"key{i}", "v" * (i % 200))
    for i in range(500):
        redis.send("RPUSH", "list", f"item {i}")
        redis.send("HSET", f"hash{i % 10}", f"field{i}", str(i))
    redis.send("DEL", "key5")
    return [redis.answer() for _ in range(3000 + 1000 + 1)]


def live(work: Path, env: Mapping[str, str]) -> Life:
    work.mkdir()
    redis = Redis(work, env)
    try:
        answers = fill(redis)
        answers.append(redis.ask("BGREWRITEAOF"))
        redis.wait_for("aof_rewrite_in_progress:0")
        redis.wait_for("aof_last_bgrewrite_status:ok")
        answers += [redis.ask("SAVE"), redis.ask("INCR", "counter"), redis.ask("DBSIZE")]
        digest = redis.ask("DEBUG", "DIGEST")
        status = [redis.end()]
    finally:
        redis.close()
    redis = Redis(work, env)
    try:
        again = redis.ask("DEBUG", "DIGEST")
        status.append(redis.end())
    finally:
        redis.close()
    (log,) = (work / "appendonlydir").glob("*.incr.aof")
    return Life(digest, again, answers, status, sorted(tree(work)), log.read_bytes())


@pytest.fixture
def out(place: Path) -> Path:
    made = place / "traces"
    made.mkdir()
    return made


def test_redis_with_a_log(place: Path, out: Path) -> None:
    server()
    work = place / "work"
    bare = live(work, environment(enable=False))
    shutil.rmtree(work)
    traced = live(work, tracing(out))
    assert bare.status == [0, 0]
    assert bare.digest == bare.again
    assert traced == bare

    found = read_traces(out, work)
    seen = Seen(found, work)
    servers = [image for image in found if image.events]
    logs = {
        str(event.path) for event in seen.events("write") if str(event.path).endswith(".incr.aof")
    }
    last = f"appendonlydir/{next((work / 'appendonlydir').glob('*.incr.aof')).name}"
    assert str(work / last) in logs
    assert seen.written(last) == len(traced.log)
    first = next(path for path in sorted(logs) if path != str(work / last))
    assert len(seen.events("write", path=first)) > 10
    assert seen.events("fdatasync", "fsync", path=first)
    # The child that writes the log anew, and the parent that puts it in its place.
    writers = {image.pid: image for image in servers if image.calls("fwrite", "write")}
    children = [image for image in writers.values() if image.ppid in writers]
    assert len(children) == 1
    assert any("temp-rewriteaof" in str(event.path) for event in children[0].events)
    renamed = {re.sub(r".*/", "", str(event.path)) for event in seen.events("rename")}
    assert any(name.startswith("temp-rewriteaof") for name in renamed)


def test_redis_killed_keeps_its_log_and_its_trace(place: Path, out: Path) -> None:
    server()
    work = place / "work"
    work.mkdir()
    env = tracing(out)
    redis = Redis(work, env)
    try:
        fill(redis)
        digest = redis.ask("DEBUG", "DIGEST")
        redis.process.send_signal(signal.SIGKILL)
        redis.process.wait()
    finally:
        redis.close()
    size = next((work / "appendonlydir").glob("*.incr.aof")).stat().st_size
    seen = Seen(read_traces(out, work, killed=True), work)
    (log,) = {str(e.path) for e in seen.events("write") if str(e.path).endswith(".incr.aof")}
    assert seen.written(log) == size
    redis = Redis(work, environment(enable=False))
    try:
        assert redis.ask("DEBUG", "DIGEST") == digest
        redis.end()
    finally:
        redis.close()

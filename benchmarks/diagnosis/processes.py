"""Programs of several processes, each slow in one way or in none: python processes.py CASE."""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

PIECE = 1 << 16


def _fork(work: object, *words: object) -> int:
    pid = os.fork()
    if pid == 0:
        work(*words)  # type: ignore[operator]
        os._exit(0)
    return pid


def slow_consumer() -> None:
    """A pipe whose reader is slower than its writer."""
    with subprocess.Popen([sys.executable, __file__, "_consume"], stdin=subprocess.PIPE) as reader:
        for _ in range(60):
            os.write(reader.stdin.fileno(), bytes(PIECE))  # type: ignore[union-attr]


def _consume() -> None:
    while os.read(0, PIECE):
        time.sleep(0.030)


def slow_producer() -> None:
    """A pipe whose writer is slower than its reader."""
    with subprocess.Popen([sys.executable, __file__, "_produce"], stdout=subprocess.PIPE) as made:
        while made.stdout.read(PIECE):  # type: ignore[union-attr]
            pass


def _produce() -> None:
    for _ in range(60):
        time.sleep(0.030)
        os.write(1, bytes(PIECE))


def locked_file() -> None:
    Path("counter").write_text("0")

    def count() -> None:
        file = os.open("counter", os.O_RDWR)
        for _ in range(20):
            fcntl.flock(file, fcntl.LOCK_EX)
            time.sleep(0.020)
            fcntl.flock(file, fcntl.LOCK_UN)

    for pid in [_fork(count) for _ in range(4)]:
        os.waitpid(pid, 0)


def waits_for_child() -> None:
    for _ in range(5):
        subprocess.run([sys.executable, __file__, "_convert"], check=True)


def _convert() -> None:
    time.sleep(0.4)


def serves() -> None:
    """A server that mostly sleeps."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        address = server.getsockname()

        def ask() -> None:
            for _ in range(5):
                time.sleep(0.4)
                with socket.create_connection(address) as client:
                    client.sendall(b"GET /\n")
                    client.recv(100)

        asking = _fork(ask)
        for _ in range(5):
            client, _ = server.accept()
            with client:
                client.recv(100)
                client.sendall(b"fine\n")
        os.waitpid(asking, 0)


def main() -> int:
    globals()[sys.argv[1].replace("-", "_")]()
    return 0


if __name__ == "__main__":
    sys.exit(main())

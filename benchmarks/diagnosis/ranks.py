"""Starts a training with several ranks: python ranks.py COUNT COMMAND..."""

from __future__ import annotations

import os
import socket
import subprocess
import sys


def main() -> int:
    count, command = int(sys.argv[1]), sys.argv[2:]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    told = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(count)}
    started = [
        subprocess.Popen(command, env={**os.environ, **told, "RANK": str(rank)})
        for rank in range(count)
    ]
    return max(process.wait() for process in started)


if __name__ == "__main__":
    sys.exit(main())

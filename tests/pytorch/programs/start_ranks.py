"""Starts ranks as torchrun does, without importing torch: start_ranks.py COUNT SCRIPT [WORDS...]"""

import os
import socket
import subprocess
import sys

count, script, *words = sys.argv[1:]
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
shared = {
    "WORLD_SIZE": count,
    "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": str(port),
    "TORCHELASTIC_RUN_ID": f"test-{os.getpid()}",
    "GLOO_SOCKET_IFNAME": "lo",
}
ranks = [
    subprocess.Popen(
        [sys.executable, script, *words],
        env={**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank)},
    )
    for rank in range(int(count))
]
codes = [rank.wait() for rank in ranks]
if any(codes):
    print(f"exit codes of the ranks: {codes}", file=sys.stderr)
sys.exit(max(codes))

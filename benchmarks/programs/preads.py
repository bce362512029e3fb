"""preads.py CALLS FILE: a loop of cached os.pread calls; prints wall and CPU time of one."""

import json
import os
import sys
import time

BLOCK = 4096


def main() -> None:
    calls = int(sys.argv[1])
    fd = os.open(sys.argv[2], os.O_RDONLY)
    offsets = range(0, len(os.read(fd, 1 << 30)), BLOCK)
    rounds = max(1, calls // len(offsets))
    pread = os.pread
    cpu = time.thread_time_ns()
    wall = time.perf_counter_ns()
    for _ in range(rounds):
        for offset in offsets:
            pread(fd, BLOCK, offset)
    wall = time.perf_counter_ns() - wall
    cpu = time.thread_time_ns() - cpu
    events = rounds * len(offsets)
    print(json.dumps({"events": events, "wall_ns": wall / events, "cpu_ns": cpu / events}))


main()

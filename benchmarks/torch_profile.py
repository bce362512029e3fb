#!/usr/bin/env python3
"""What it takes to bring a large profile of torch.profiler into the trace: memory and time.

    DFTRACER_ENABLE=1 python benchmarks/torch_profile.py [EVENTS]

Resident memory when the profiler has stopped, the most while its events are recorded, and the time
an event takes; for comparison, what the profiler's own list of events (prof.events()) takes.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from dftracer.python import dftracer
from dftracer.python.torch import trace_handler


def resident(field: str) -> float:
    """MiB, of VmRSS or VmHWM."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    return 0.0


def reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def main() -> int:
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    torch.set_num_threads(1)
    x = torch.randn(4)
    with tempfile.TemporaryDirectory() as place:
        log = dftracer.initialize_log(os.path.join(place, "t.pfw"))
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
            for _ in range(wanted // 5):  # an addition of a number is five events
                x.add(1)
        before = resident("VmRSS")
        reset_peak()
        began, cpu = time.perf_counter(), time.process_time()
        trace_handler(prof)
        took, used = time.perf_counter() - began, time.process_time() - cpu
        peak = resident("VmHWM")
        log.finalize()
        size = sum(path.stat().st_size for path in Path(place).iterdir())
    count = len(prof.profiler.kineto_results.events())
    print(f"events {count:,}; resident before {before:.0f} MiB, at most {peak:.0f} MiB while they")
    print(f"are recorded: x {peak / before:.2f}; {took / count * 1e6:.2f} us per event, ", end="")
    print(f"CPU {used / count * 1e6:.2f} us; {size / count:.1f} bytes per event on disk")
    if "--list" in sys.argv:
        reset_peak()
        began = time.perf_counter()
        prof.events()
        took = time.perf_counter() - began
        print(f"prof.events(): x {resident('VmHWM') / before:.2f}; {took / count * 1e6:.1f} us")
    return 0 if peak < 2 * before else 1


if __name__ == "__main__":
    sys.exit(main())

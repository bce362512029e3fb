"""Events that another profiler gathered, without torch: where they are shown when they cross."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.pytorch.conftest import accepted
from tests.support import run, traces
from tests.support.perfetto_importer import Importer

LANE = 1 << 22
FOREIGN = 960

PROGRAM = """
import random, threading, time
from dftracer import _core
from dftracer.python import dftracer

log = dftracer.initialize_log("t.pfw")
batch = _core.Batch("PP", "other", True)
tid = threading.get_native_id()
group = batch.thread(tid)
now = time.time_ns()
us = 1000
# Nested, and then one that crosses the end of the outer one; a third that crosses both.
batch.add(group, "outer", now, now + 100 * us, {"k": [[1, 2], []]})
batch.add(group, "inner", now + 10 * us, now + 20 * us)
batch.memory(group, now + 15 * us, 64, False)
batch.memory(group, now + 16 * us, -16, True)
batch.add(group, "across", now + 50 * us, now + 150 * us)
batch.add(group, "also across", now + 60 * us, now + 160 * us)
batch.memory(group, now + 200 * us, 32, False)
batch.add(group, "backwards", now + 300 * us, now + 299 * us)
# Random spans that nest in nanoseconds must nest in microseconds.
random.seed(1)
base = now + 1000 * us
def nest(low, high, depth):
    batch.add(group, "n%d" % depth, low, high)
    at = low
    while depth < 6:
        at += random.randrange(0, 900)
        end = at + random.randrange(0, 2500)
        if end > high:
            return
        nest(at, end, depth + 1)
        at = end
for i in range(40):
    nest(base + i * 20000, base + i * 20000 + 20000, 0)
stream = batch.device("cuda:0 stream 7")
batch.add(stream, "kernel", now, now + 5 * us, {"device": 0})
batch.add(stream, "kernel", now + 4 * us, now + 9 * us, {"device": 0})
print(tid, batch.finish())
for bad in (0, 1 << 22, -1):
    try:
        batch.thread(bad)
    except (ValueError, OverflowError):
        print("refused")
try:
    batch.add(99, "x", 1, 2)
except IndexError:
    print("refused")
print(_core.trace_path(), abs(_core.ahead()) < 50_000_000)
log.finalize()
print(repr(_core.trace_path()))
"""


def test_crossing_events_get_lanes_needs_no_torch(tmp_path: Path, perfetto: Importer) -> None:
    lines = run.run(sys.executable, "-c", PROGRAM, cwd=tmp_path).stdout.splitlines()
    tid, recorded = map(int, lines[0].split())
    trace = traces.read_one(tmp_path)
    assert lines[1:] == ["refused"] * 4 + [f"{trace.path} True", "''"]
    assert len(trace.recorded) == recorded > 500

    def lane(name: str) -> int:
        return trace.one(name)["tid"] - tid

    assert lane("outer") == lane("inner") == lane("backwards") == FOREIGN * LANE
    assert lane("across") == (FOREIGN + 1) * LANE
    assert lane("also across") == (FOREIGN + 2) * LANE
    assert trace.one("backwards")["dur"] == 0
    assert trace.one("inner")["args"]["p_idx"] == trace.one("outer")["id"]
    assert trace.one("outer")["args"]["k"] == [[1, 2], []]
    assert trace.one("inner")["args"]["cpu_memory"] == 64
    assert trace.one("outer")["args"]["device_memory_usage"] == -16
    assert trace.one("[memory]")["args"]["cpu_memory"] == 32
    kernels = trace.named("kernel")
    assert [event["tid"] // LANE for event in kernels] == [1, 2]
    assert {event["tid"] % LANE for event in kernels} == {0}
    names = [r["args"]["name"] for r in trace.metadata if r["name"] == "thread_name"]
    assert names[1:] == [
        f"{tid} other",
        f"{tid} other 2",
        f"{tid} other 3",
        "cuda:0 stream 7",
        "cuda:0 stream 7 2",
    ]
    accepted(perfetto, [trace])

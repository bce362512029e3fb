"""Calls of a recorded operation, for callgrind: op_calls.py COUNT recorded|bare. Without torch,
which takes minutes under valgrind."""

from __future__ import annotations

import sys

from dftracer import _core
from dftracer.python import Dynamo, dftracer

log = dftracer.initialize_log("t.pfw")
graph = _core.Graph(_core.Compiled(Dynamo("bench", epoch=1, step=2)), bool, True)
# What an event of a module's operation carries.
details = {
    "op": "call_function",
    "target": "aten.add.Tensor",
    "module": "layers.0",
    "phase": "forward",
    "model": "bench",
}
recorded = _core.Op(graph, abs, False, "function.add.Tensor", details, "add", -1)
call = recorded if sys.argv[2] == "recorded" else abs
for _ in range(int(sys.argv[1])):
    call(1)
# Leaves at once: the end of a trace is not what is counted.

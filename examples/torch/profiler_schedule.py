"""Profiles of some steps of a long run, in cycles, with a flat profile beside the trace.

DFTRACER_ENABLE=1 python profiler_schedule.py [TRACE]
"""

import sys

import torch

import dftracer.python.torch
from dftracer.python import dftracer as tracer

log = tracer.initialize_log(sys.argv[1] if len(sys.argv) > 1 else "schedule.pfw")
model = torch.nn.Linear(16, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

with dftracer.python.torch.profile(
    table=True, schedule=torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=2)
) as prof:
    for _ in range(10):
        loss = model(torch.randn(8, 16)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        prof.step()
log.finalize()

"""Times collectives and steps of a group of one rank, where no other rank adds to them.

collective_calls.py bare|traced

Prints nanoseconds per call of each round, as JSON. `nothing` is a collective that does nothing:
what is left is what recording it costs.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import distributed_c10d as inner
from torch.nn.parallel import DistributedDataParallel

ROUNDS = 40
CALLS = 500
TURNS = 20
STEPS = 20


def nothing(output: Any, input: Any, group: Any = None, async_op: bool = False) -> None:
    """In place of all_to_all_single."""


def timed(call: Callable[[], Any], times: int, rounds: int = ROUNDS) -> list[float]:
    """Nanoseconds per call, of each round."""
    found = []
    for _ in range(rounds):
        start = time.perf_counter_ns()
        for _ in range(times):
            call()
        found.append((time.perf_counter_ns() - start) / times)
    return found


def main(mode: str) -> None:
    torch.set_num_threads(1)
    inner.all_to_all_single = dist.all_to_all_single = nothing
    if mode == "traced":
        from dftracer.python import dftracer
        from dftracer.python.torch import auto

        dftracer.initialize_log("trace.pfw")
        auto.install()
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    tensor = torch.ones(16)
    model = DistributedDataParallel(nn.Sequential(*(nn.Linear(512, 512) for _ in range(4))))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = torch.rand(64, 512)

    def step() -> None:
        loss = model(data).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def later() -> None:
        dist.all_reduce(tensor, async_op=True).wait()

    step()
    times = {
        "nothing": timed(lambda: dist.all_to_all_single(tensor, tensor), CALLS),
        "call": timed(lambda: dist.all_reduce(tensor), CALLS),
        "async": timed(later, CALLS),
    }
    if mode == "traced":  # and bare, in turns: two processes differ by more than this costs
        times |= {"step": [], "bare step": []}
        for _ in range(TURNS):
            for what, switch in (("step", auto.install), ("bare step", auto.remove)):
                switch()
                timed(step, 1, 3)  # what the switch has pushed out of the caches
                times[what] += timed(step, 1, STEPS)
    dist.destroy_process_group()
    print(json.dumps(times))


if __name__ == "__main__":
    main(sys.argv[1])

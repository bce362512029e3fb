"""What tracing adds to a compiled graph: dynamo_graphs.py ops|memory|inductor. Prints JSON.

Times are CPU times of the calling thread, taken in turns: what else runs on the machine moves all
of them alike.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from dftracer.python import create_backend, dftracer

OPERATIONS = 200


def elementwise(x: torch.Tensor) -> torch.Tensor:
    for _ in range(OPERATIONS // 2):
        x = x + 1.0
        x = x * 0.5
    return x


def rounds(
    runs: dict[str, Callable[[], object]], count: int, repeats: int
) -> dict[str, list[float]]:
    """ns of one run of each, `count` times in turn."""
    for run in runs.values():
        for _ in range(5):
            run()
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(count):
        for name, run in runs.items():
            began = time.thread_time_ns()
            for _ in range(repeats):
                run()
            found[name].append((time.thread_time_ns() - began) / repeats)
        # The writer catches up here, and not while somebody is measured.
        time.sleep(0.01)
    return found


def ops() -> dict[str, list[float]]:
    x = torch.randn(8)
    backends: dict[str, Any] = {
        "plain": "aot_eager",
        "traced": create_backend(name="bench", epoch=1, step=2),
        "off": create_backend(name="off", enable=False),
    }
    compiled = {name: torch.compile(elementwise, backend=b) for name, b in backends.items()}
    runs = {name: (lambda run=run: run(x)) for name, run in compiled.items()}
    with torch.no_grad():
        found = rounds(runs, 150, 2)
    return {name: [ns / OPERATIONS for ns in all_ns] for name, all_ns in found.items()}


def memory() -> dict[str, list[float]]:
    """Resident size, in KiB, after each fifth of a million events."""
    x = torch.randn(8)
    compiled = torch.compile(elementwise, backend=create_backend(name="bench", epoch=1, step=2))
    sizes = []
    with torch.no_grad():
        for _ in range(5):
            for _ in range(1000):
                compiled(x)
            status = Path("/proc/self/status").read_text()
            line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
            sizes.append(float(line.split()[1]))
    return {"resident": sizes}


def inductor() -> dict[str, list[float]]:
    def net() -> nn.Module:
        torch.manual_seed(1)
        return nn.Sequential(
            nn.Conv2d(3, 16, 3),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(16 * 15 * 15, 64),
            nn.GELU(),
            nn.Linear(64, 10),
        )

    x = torch.randn(32, 3, 32, 32)
    backends = {
        "plain": "inductor",
        "traced": create_backend(name="bench", inner="inductor"),
        "off": create_backend(name="off", inner="inductor", enable=False),
    }

    def step(model: nn.Module, compiled: Callable[..., torch.Tensor]) -> None:
        model.zero_grad()
        compiled(x).sum().backward()

    runs = {}
    for name, backend in backends.items():
        model = net()
        compiled = torch.compile(model, backend=backend)
        runs[name] = lambda m=model, c=compiled: step(m, c)
    return rounds(runs, 150, 1)


if __name__ == "__main__":
    torch.set_num_threads(1)
    log = dftracer.initialize_log("t.pfw")
    print(json.dumps({"ops": ops, "memory": memory, "inductor": inductor}[sys.argv[1]]()))
    log.finalize()

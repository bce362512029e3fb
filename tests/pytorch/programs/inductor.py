"""The same model with Inductor, plain and traced, and then the example: inductor.py TRACE EXAMPLE.
Prints whether outputs and gradients are the same, as JSON."""

from __future__ import annotations

import json
import runpy
import sys
from typing import Any

import torch
from torch import nn

from dftracer.python import create_backend, dftracer

dftracer.initialize_log(sys.argv[1])


def run(backend: Any) -> list[list[float]]:
    torch._dynamo.reset()
    torch.manual_seed(3)
    # As in the example, whose kernels are these.
    model = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 8))
    output = torch.compile(model, backend=backend)(torch.randn(16, 64))
    output.sum().backward()
    values = [output, *(p.grad for p in model.parameters())]
    return [value.flatten().tolist() for value in values]


plain = run("inductor")
same = plain == run(create_backend(name="same", inner="inductor"))
off = plain == run(create_backend(name="off", inner="inductor", enable=False))
runpy.run_path(sys.argv[2])
print(json.dumps({"same": same, "off": off}))

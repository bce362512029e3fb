"""Epoch, step and switch are state: prints how often each part was compiled."""

from __future__ import annotations

import copy
import json
import sys

import torch

from dftracer.python import Dynamo, ai, create_backend, dftracer, dynamo

log = dftracer.initialize_log(sys.argv[1])
compiles: dict[str, int] = {}


def graphs(part: str) -> None:
    """Notes the compilations since the last call."""
    compiles[part] = torch._dynamo.utils.counters["stats"]["unique_graphs"] - sum(compiles.values())


def net() -> torch.nn.Module:
    return torch.nn.Linear(3, 2)


x = torch.randn(4, 3)

# A backend for every epoch, as in the guide.
model = net()
for epoch in range(100):
    backend = create_backend(name="loop", epoch=epoch, step=0)
    compiled = torch.compile(model, backend=backend)
    for step in range(2):
        backend.update(step=step)
        compiled(x).sum().backward()
graphs("loop")

# The same without a name, and without a step.
model = net()
for epoch in range(20):
    torch.compile(model, backend=create_backend(epoch=epoch, autograd=False))(x)
graphs("unnamed")

# Two backends of one name, used in turn: each says its own.
model = net()
first = torch.compile(model, backend=create_backend(name="turns", epoch=1))
second = torch.compile(model, backend=create_backend(name="turns", epoch=2, step=9))
for _ in range(3):
    first(x).sum().backward()
    second(x).sum().backward()
graphs("turns")

# Switched at run time, from the start and in between; a second model is not concerned.
model, other = net(), net()
backend = create_backend(name="switched", enable=False, step=0)
compiled = torch.compile(model, backend=backend)
beside = torch.compile(other, backend=create_backend(name="switched", step=100))
compiled(x)
beside(x)
for step in range(1, 5):
    backend.update(step=step)
    (backend.enable if step % 2 else backend.disable)()
    compiled(x)
    beside(x)
graphs("switched")

# The tree's epoch and step reach a tracer that has none of its own.
tracer = Dynamo("tree", image_size=(2, 3))


@tracer.compile(autograd=False)
def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


for step in range(3):
    ai.update(epoch=7, step=step)
    double(x)
tracer.update(step=50)
double(x)
tracer.disable()
double(x)
graphs("tree")


# The decorator in all its forms, and the registered name.
@dynamo.compile
def bare(x: torch.Tensor) -> torch.Tensor:
    return x + 1


@dynamo.compile()
def empty(x: torch.Tensor) -> torch.Tensor:
    return x + 2


@dynamo.compile(autograd=False, fullgraph=True)
def given(x: torch.Tensor) -> torch.Tensor:
    return x.add(3)


for function in (bare, empty, given, torch.compile(torch.neg, backend="dftracer")):
    function(x)
graphs("forms")

# A copy of a compiled module, as for an average of the weights.
original = torch.compile(net(), backend=create_backend(name="copied"))
copy.deepcopy(original)(x)
original(x)
graphs("copied")
log.finalize()
print(json.dumps(compiles))

"""What the events say of operations: gradients, phases, modules, methods; and what happens when one
of them fails. Prints the errors, as JSON."""

from __future__ import annotations

import json
import sys

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from dftracer.python import create_backend, dftracer, dynamo

log = dftracer.initialize_log(sys.argv[1])


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Sequential(nn.ReLU(), nn.Linear(4, 4))])

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = Block()
        self.head = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        y = self.block(x)
        with torch.no_grad():
            y.mean()
        return self.head(y).view(-1).softmax(0)


x = torch.randn(3, 4)
for autograd in (True, False):
    name = "aot" if autograd else "direct"
    compiled = torch.compile(Model(), backend=create_backend(name=name, autograd=autograd))
    compiled(x).sum().backward()
    with torch.no_grad():
        compiled(x)

# A graph that calls modules, which torch.compile no longer makes.
direct = create_backend(name="modules", autograd=False)
direct(torch.fx.symbolic_trace(nn.Sequential(Block(), nn.Tanh())), [x])(x)

# A graph in the graph.
part = nn.Sequential(nn.Linear(4, 4), nn.Tanh())


@dynamo.compile(autograd=False)
def recomputed(x: Tensor) -> Tensor:
    return checkpoint(part, x, use_reentrant=False) + 1


recomputed(x).sum().backward()

# Inputs of another size: the same operations, and some on sizes.
dynamic = create_backend(name="dynamic", autograd=True)
sized = torch.compile(lambda x: (x * 2).view(x.shape[0] * 2, -1), backend=dynamic, dynamic=True)
for n in (2, 4):
    sized(torch.randn(n, 4))


# An operation that fails.
errors = []
words = nn.Embedding(3, 2)
lookup = torch.compile(lambda ids: words(ids) + 1, backend=create_backend(name="failing"))
lookup(torch.tensor([1]))
for _ in range(2):
    try:
        lookup(torch.tensor([7]))
    except IndexError as error:
        errors.append(f"{type(error).__name__}: {error}")
lookup(torch.tensor([2]))
log.finalize()
print(json.dumps(errors))

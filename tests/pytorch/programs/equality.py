"""Every model with the plain backend and with the traced one: prints, as JSON, in what they differ.

equality.py TRACE HOW PART PARTS, HOW: aot_eager or eager; every PARTSth model, from PART on.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import torch
from models import MODELS, parameters
from torch.utils._pytree import tree_flatten

from dftracer.python import create_backend, dftracer

WATCHED = ("frames", "stats", "graph_break", "recompiles", "aot_autograd")


def bits(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return repr(value)
    value = value.detach().contiguous()
    return (str(value.dtype), tuple(value.shape), value.view(-1).view(torch.uint8).tolist())


def run(name: str, backend: Any, grad: bool) -> dict[str, Any]:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    torch.manual_seed(7)
    target, inputs = MODELS[name]()
    compiled = torch.compile(target, backend=backend)
    seen: dict[str, Any] = {}
    with torch.set_grad_enabled(grad):
        for at, values in enumerate(inputs):
            torch.manual_seed(at)
            leaves, shape = tree_flatten(compiled(*values))
            seen[f"output {at}"] = [str(shape), *map(bits, leaves)]
            wanted = [x for x in leaves if isinstance(x, torch.Tensor) and x.requires_grad and grad]
            if wanted:
                torch.autograd.backward(wanted, [torch.ones_like(x) for x in wanted])
            tensors = [x for x in values if isinstance(x, torch.Tensor)]
            seen[f"inputs {at}"] = [bits(x) for x in tensors]
            seen[f"gradients {at}"] = [bits(x.grad) for x in tensors if x.is_leaf]
            seen[f"aliases {at}"] = [
                [i for i, y in enumerate(leaves) if isinstance(y, torch.Tensor) and y._base is x]
                for x in (*tensors, *leaves)
            ]
    for key, value in parameters(target):
        seen[f"value of {key}"] = bits(value)
        seen[f"gradient of {key}"] = bits(value.grad)
    counters = torch._dynamo.utils.counters
    seen["counters"] = {key: dict(counters[key]) for key in WATCHED}
    return seen


# Compiling once more without gradients, and switched off, tells something new of these only.
AGAIN = ("convolution", "dropout", "in_place", "views", "no_grad_inside")


def main() -> None:
    trace, how, part, parts = sys.argv[1:]
    log = dftracer.initialize_log(trace)
    differences = []
    names = list(MODELS)[int(part) :: int(parts)]
    for name in names:
        for grad in (True, False) if name in AGAIN else (True,):
            plain = run(name, how, grad)
            backend = create_backend(name=name, autograd=how == "aot_eager")
            others = {"traced": run(name, backend, grad)}
            if name in AGAIN:
                others["off"] = run(name, backend.disable(), grad)
            for who, other in others.items():
                for key in sorted({*plain, *other}):
                    if plain.get(key) != other.get(key):
                        differences.append(
                            f"{name}, {who}, gradients {grad}: {key}: "
                            f"{plain.get(key)!s:.300} is not {other.get(key)!s:.300}"
                        )
    log.finalize()
    print(json.dumps({"names": names, "differences": differences}))


main()

"""Every model with the plain backend and with the traced one: prints, as JSON, in what they differ.

equality.py TRACE HOW [MODEL...], HOW: aot_eager, eager or inductor.
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


def main() -> None:
    trace, how, *names = sys.argv[1:]
    log = dftracer.initialize_log(trace)
    differences = []
    runs = 0
    for name in names or MODELS:
        for grad in (True, False):
            plain = run(name, how, grad)
            inner = how if how == "inductor" else None
            backend = create_backend(name=name, autograd=how != "eager", inner=inner)
            traced = run(name, backend, grad)
            off = run(name, backend.disable(), grad) if how != "inductor" else traced
            runs += 1
            for key in sorted({*plain, *traced, *off}):
                if not plain.get(key) == traced.get(key) == off.get(key):
                    differences.append(
                        f"{name}, grad {grad}: {key}: {plain.get(key)!s:.300} "
                        f"{traced.get(key)!s:.300} {off.get(key)!s:.300}"
                    )
    log.finalize()
    print(json.dumps({"runs": runs, "differences": differences}))


main()

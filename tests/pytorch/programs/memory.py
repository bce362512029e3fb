"""Peak memory of graphs whose intermediates are large: bytes above what was there before, as
JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch

from dftracer.python import create_backend, dftracer

log = dftracer.initialize_log(sys.argv[1])
# Larger than what malloc ever keeps back: each tensor is a mapping of its own.
SIZE = 10 * 1024 * 1024


def peak() -> int:
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


def chain(x: torch.Tensor) -> torch.Tensor:
    for _ in range(8):
        x = x + 1
        x = x * 2
    return x


def trained(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    for _ in range(4):
        x = (x * w + 1).relu()
    return x.mean()


def grown(compiled: Any, backward: bool) -> int:
    x = torch.ones(SIZE)
    w = torch.ones(SIZE, requires_grad=True) if backward else None
    for measured in (False, True):
        if measured:
            # "5" sets the peak to what is used now.
            Path("/proc/self/clear_refs").write_text("5")
            before = peak()
        if w is not None:
            compiled(x, w).backward()
            w.grad = None
        else:
            compiled(x)
    return (peak() - before) * 1024


found = {}
for name, plain, autograd in (("aot", "aot_eager", True), ("direct", "eager", False)):
    for function, backward in ((chain, False), (trained, True)):
        for who in (plain, create_backend(name=name, autograd=autograd)):
            torch._dynamo.reset()
            what = f"{name} {function.__name__}"
            compiled = torch.compile(function, backend=who)
            found.setdefault(what, []).append(grown(compiled, backward))
log.finalize()
print(json.dumps(found))

"""Tracing is off: prints what is left of us, as JSON."""

from __future__ import annotations

import json
import sys

import dftracer.python
from dftracer.python import Dynamo, create_backend, dftracer, dynamo

found = {"torch at import": "torch" in sys.modules}
log = dftracer.initialize_log("off.pfw")


def forward(x):
    return x * 2 + 1


found["bare"] = dynamo.compile(forward) is forward
found["parentheses"] = dynamo.compile(autograd=False)(forward) is forward
found["tracer"] = Dynamo(name="m", epoch=1, image_size=(2, 2)).compile(forward) is forward
found["torch after decorating"] = "torch" in sys.modules
with dynamo:
    dynamo.update(epoch=1).disable().enable()

import torch  # noqa: E402

x = torch.ones(2, requires_grad=True)
for name, options in {
    "aot_eager": {},
    "eager": {"autograd": False},
    "inner": {"inner": "eager"},
}.items():
    compiled = torch.compile(forward, backend=create_backend(name="m", **options))
    found[name] = compiled(x).tolist()
found["compiler"] = dynamo.compile(forward, inner="eager")(x).tolist()
found["registered"] = torch.compile(forward, backend="dftracer")(x).tolist()
found["extension"] = "dftracer._core" in sys.modules
log.finalize()
print(json.dumps(found))

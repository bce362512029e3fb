"""How values of all types appear as arguments of events."""

from pathlib import Path

from dftracer.python import ai, dftracer

dftracer.initialize_log("arguments.pfw")


class Model:
    def __repr__(self):
        raise RuntimeError("never called")


values = {
    "whole": 3,
    "real": 0.25,
    "flag": True,
    "text": "déjà vu",
    "raw": b"bytes",
    "nothing": None,
    "not_a_number": float("nan"),
    "large": 2**80,
    "shape": (3, 224, 224),
    "optimizer": {"name": "sgd", "lr": 0.1},
    "path": Path("/data/train"),
    "model": Model(),
}
with ai.compute.forward(args=values):
    pass

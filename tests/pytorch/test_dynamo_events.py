"""What events of operations are called and what they carry, as the guides show it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support import traces
from support.torch_program import EXAMPLES, NEEDS_TORCH, torch_program

if TYPE_CHECKING:
    from support.perfetto_importer import Importer


pytestmark = NEEDS_TORCH

TRAINED = {
    "function.convolution.default": 2,
    "function.relu.default": 3,
    "function.max_pool2d_with_indices.default": 1,
    "function.addmm.default": 2,
    "function.mm.default": 4,
    "function.sum.dim_IntList": 2,
    "function.threshold_backward.default": 3,
    "function.max_pool2d_with_indices_backward.default": 1,
    "function.convolution_backward.default": 2,
}


def recorded(directory: Path) -> list[dict[str, Any]]:
    return traces.read_one(directory).recorded


def names(events: list[dict[str, Any]]) -> Counter[str]:
    return Counter(event["name"] for event in events)


def test_the_first_example(tmp_path: Path) -> None:
    torch_program(tmp_path, EXAMPLES / "dynamo_decorator.py", stderr="")
    events = recorded(tmp_path)
    # In torch 2.13; detach and t come and go with releases.
    assert [event["name"] for event in events] == [
        "function.convolution.default",
        "function.relu.default",
        "function.max_pool2d_with_indices.default",
        "function.getitem",
        "function.getitem",
        "function.view.default",
        "function.t.default",
        "function.addmm.default",
    ]
    first = events[0]
    assert first["cat"] == "dynamo"
    assert first["args"] | {"hhash": ""} == {
        "hhash": "",
        "p_idx": -1,
        "level": 1,
        "grad_enabled": 0,
        "op": "call_function",
        "target": "aten.convolution.default",
        "module": "conv",
        "phase": "forward",
    }
    ends = [event["ts"] + event["dur"] for event in events]
    assert all(end <= event["ts"] for end, event in zip(ends, events[1:]))


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("example", ["dynamo_training_backend", "dynamo_training_decorator"])
def test_training(perfetto: Importer, tmp_path: Path, example: str) -> None:
    torch_program(tmp_path, EXAMPLES / f"{example}.py", stderr="")
    trace = traces.read_one(tmp_path)
    events = trace.recorded
    for epoch in range(5):
        for step in range(2):
            one = [e for e in events if (e["args"]["epoch"], e["args"]["step"]) == (epoch, step)]
            found = names(one)
            assert {name: found[name] for name in TRAINED} == TRAINED
    assert {e["args"]["phase"] for e in events if "backward" in e["name"]} == {"backward"}
    assert {e["args"]["phase"] for e in events if "addmm" in e["name"]} == {"forward"}
    models = {e["args"].get("model") for e in events}
    assert models == {"convnet" if "backend" in example else None}
    loaded = perfetto.load(trace.path)
    assert (loaded.errors, loaded.problems) == ([], {})


@pytest.mark.long
def test_the_other_examples(tmp_path: Path) -> None:
    found = {}
    for example in ("dynamo_backend", "dynamo_create_backend", "dynamo_custom"):
        torch_program(tmp_path, EXAMPLES / f"{example}.py", stderr="")
        (path,) = traces.files(tmp_path)
        found[example] = traces.read(path).recorded
        path.unlink()
    assert names(found["dynamo_backend"])["function.addmm.default"] == 2
    created = found["dynamo_create_backend"]
    assert names(created)["function.threshold_backward.default"] == 1
    assert {
        (e["args"]["model"], e["args"].get("epoch"), e["args"].get("step"))
        for e in created
        if e["name"].endswith(".default")
    } == {("resnet50", 1, 100)}
    by_layer = [(e["name"], e["args"]["module"]) for e in created if e["args"]["grad_enabled"]]
    assert by_layer == [
        ("function.linear", "layers.0"),
        ("function.relu", "layers.1"),
        ("function.linear", "layers.2"),
    ]
    custom = found["dynamo_custom"]
    assert names(custom) == {
        "function.mul.Tensor": 2,
        "function.add.Tensor": 2,
        "function.relu.default": 2,
        "resnet50": 1,
    }
    given = [(e["args"]["step"], e["args"]["image_idx"], e["args"]["image_size"]) for e in custom]
    assert given == [(100, 42, [224, 224])] * 4 + [(101, 42, [224, 224])] * 3


@pytest.mark.long
def test_inside(tmp_path: Path) -> None:
    errors = json.loads(torch_program(tmp_path, "inside", "t.pfw").stdout)
    events = recorded(tmp_path)

    def of(model: str | None, *keys: str) -> list[tuple[Any, ...]]:
        found = [e for e in events if e["args"].get("model") == model]
        return [(e["name"], *(e["args"].get(key) for key in keys)) for e in found]

    direct = of("direct", "op", "grad_enabled", "module")
    call = "call_function"
    assert direct == [
        ("function.linear", call, 1, "block.layers.0"),
        ("function.relu", call, 1, "block.layers.1.0"),
        ("function.linear", call, 1, "block.layers.1.1"),
        ("function._set_grad_enabled", call, 1, None),
        ("method.mean", "call_method", 0, None),
        ("function._set_grad_enabled", call, 0, None),
        ("function.linear", call, 1, "head"),
        ("method.view", "call_method", 1, None),
        ("method.softmax", "call_method", 1, None),
        # The same under no_grad: a graph of its own, and no gradients anywhere.
        ("function.linear", call, 0, "block.layers.0"),
        ("function.relu", call, 0, "block.layers.1.0"),
        ("function.linear", call, 0, "block.layers.1.1"),
        ("method.mean", "call_method", 0, None),
        ("function.linear", call, 0, "head"),
        ("method.view", "call_method", 0, None),
        ("method.softmax", "call_method", 0, None),
    ]
    # Backward operations are those of the layer whose forward they undo.
    aot = of("aot", "phase", "module")
    assert ("function.threshold_backward.default", "backward", "block.layers.1.0") in aot
    assert aot.count(("function.mm.default", "backward", "head")) == 2
    assert aot.count(("function.addmm.default", "forward", "head")) == 2
    assert {grad for *_, grad in of("aot", "grad_enabled")} == {0}

    assert of("modules", "op", "target") == [
        ("0.layers.0.Linear_0_layers_0", "call_module", "0.layers.0"),
        ("0.layers.1.0.ReLU_0_layers_1_0", "call_module", "0.layers.1.0"),
        ("0.layers.1.1.Linear_0_layers_1_1", "call_module", "0.layers.1.1"),
        ("1.Tanh_1", "call_module", "1"),
    ]
    nested = of(None, "level")
    assert nested[:3] == [
        ("function.linear", 2),
        ("function.tanh", 2),
        ("function.tag_activation_checkpoint", 1),
    ]
    assert (
        of("dynamic")
        == [
            ("function.mul.Tensor",),
            ("function.mul",),
            ("function.view.default",),
        ]
        * 2
    )
    # One that fails is recorded, and what comes after it stands where it should.
    assert errors == ["IndexError: index out of range in self"] * 2
    lookup, add = ("function.embedding.default", 1), ("function.add.Tensor", 1)
    assert of("failing", "level") == [lookup, add, lookup, lookup, lookup, add]


@pytest.mark.long
def test_inductor(tmp_path: Path) -> None:
    done = torch_program(tmp_path, "inductor", "t.pfw", EXAMPLES / "dynamo_inductor.py")
    assert json.loads(done.stdout) == {"same": True, "off": True}
    events = recorded(tmp_path)
    assert Counter(e["args"]["model"] for e in events if e["name"].startswith("graph.")) == {
        "same": 2,
        "mlp": 6,
    }
    graphs = {e["id"]: e["args"] for e in events if e["args"]["op"] == "graph"}
    kernels = [e for e in events if e["args"]["op"] == "kernel"]
    for kernel in kernels:
        outer = graphs[kernel["args"]["p_idx"]]
        assert (outer["phase"], outer["model"]) == (
            kernel["args"]["phase"],
            kernel["args"]["model"],
        )
    fused = [e for e in kernels if e["name"].startswith("kernel.cpp_fused_")]
    assert {e["args"]["phase"] for e in fused} == {"forward", "backward"}
    assert names(kernels)["kernel.addmm"] == 2 * 4


OLDER = """
import torch
from torch._dynamo.backends import debugging
from torch._dynamo.backends.common import aot_autograd
from dftracer.python import create_backend, dftracer

# As it is in PyTorch 2.5: made with its compilers, and deaf to others.
debugging.aot_eager = aot_autograd(
    fw_compiler=debugging.boxed_nop,
    partition_fn=debugging.min_cut_rematerialization_partition,
    keep_inference_input_mutations=True,
)
log = dftracer.initialize_log("t.pfw")
model = torch.nn.Linear(2, 2)
compiled = torch.compile(model, backend=create_backend())
compiled(torch.ones(1, 2)).sum().backward()
with torch.no_grad():
    compiled(torch.ones(1, 2))
"""


@pytest.mark.long
def test_an_aot_eager_that_ignores_compilers_records_its_operations(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(OLDER)
    torch_program(tmp_path, tmp_path / "program.py")
    found = [e for e in traces.read_one(tmp_path).recorded if e["cat"] == "dynamo"]
    seen = Counter((e["name"], e["args"]["phase"]) for e in found)
    assert seen["function.addmm.default", "forward"] == 2
    assert seen["function.mm.default", "backward"] == 1


PATHS = """
import json
from types import SimpleNamespace
from dftracer.python.torch import _graphs

def path(text):
    return _graphs._module_path(SimpleNamespace(meta={"nn_module_stack": {"key": (text, None)}}))

# As PyTorch 2.13 writes them, and as 2.5 does.
texts = ["L['self'].layers.0", "L['self']._modules['layers']._modules['0']", "L['self']"]
print(json.dumps([path(text) for text in texts]))
"""


def test_the_place_in_the_model_is_the_same_in_older_releases(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PATHS)
    done = torch_program(tmp_path, tmp_path / "program.py")
    assert json.loads(done.stdout) == ["layers.0", "layers.0", ""]

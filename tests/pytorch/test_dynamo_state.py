"""Epoch, step and the switch are state, not identity: nothing is compiled again for them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from support import traces
from support.torch_program import NEEDS_TORCH, torch_program

pytestmark = NEEDS_TORCH


@pytest.mark.long
def test_state(tmp_path: Path) -> None:
    compiles = json.loads(torch_program(tmp_path, "state", "t.pfw").stdout)
    assert compiles == {
        "loop": 1,
        "unnamed": 1,
        "turns": 1,
        "switched": 1,
        "tree": 1,
        "forms": 4,
        "copied": 1,
    }
    events = traces.read_one(tmp_path).recorded
    assert {event["cat"] for event in events} == {"dynamo"}

    def seen(model: str | None, *keys: str) -> Counter[tuple[object, ...]]:
        args = [event["args"] for event in events if event["args"].get("model") == model]
        return Counter(tuple(one.get(key) for key in keys) for one in args)

    # Forward and backward of every step carry its epoch and step.
    assert seen("loop", "phase", "epoch", "step") == {
        (phase, epoch, step): count
        for phase, count in (("forward", 2), ("backward", 6))
        for epoch in range(100)
        for step in range(2)
    }
    unnamed = seen(None, "target", "epoch")
    assert [unnamed["torch._C._nn.linear", epoch] for epoch in range(20)] == [1] * 20
    # Each of two backends of one name says its own, and only its own.
    assert seen("turns", "phase", "epoch", "step") == {
        ("forward", 1, None): 6,
        ("forward", 2, 9): 6,
        ("backward", 1, None): 18,
        ("backward", 2, 9): 18,
    }
    assert seen("switched", "step") == {(1,): 2, (3,): 2, (100,): 10}
    assert seen("tree", "epoch", "step") == {(7, 0): 1, (7, 1): 1, (7, 2): 1, (7, 50): 1}
    sizes = [e["args"]["image_size"] for e in events if e["args"].get("model") == "tree"]
    assert sizes == [[2, 3]] * 4
    assert seen("copied", "phase") == {("forward",): 4}
    forms = [e["name"] for e in events if e["args"].get("model") is None][20:]
    assert forms == [
        "function.add.Tensor",
        "function.add.Tensor",
        "method.add",
        "function.neg.default",
    ]

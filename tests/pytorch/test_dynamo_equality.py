"""A traced model is the user's model: outputs, gradients, mutations and aliases bit for bit, and as
many graphs, breaks and compilations as with the plain backend."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import traces
from support.torch_program import NEEDS_TORCH, torch_program

pytestmark = NEEDS_TORCH


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("part", range(2))
@pytest.mark.parametrize("how", ["aot_eager", "eager"])
def test_bit_for_bit(tmp_path: Path, how: str, part: int) -> None:
    found = json.loads(
        torch_program(tmp_path, "equality", "t.pfw", how, part, 2).stdout.splitlines()[-1]
    )
    assert found["differences"] == []
    assert len(found["names"]) >= 12
    # The traced half was traced.
    seen = {event["args"]["model"] for event in traces.read_one(tmp_path).recorded}
    assert seen == {*found["names"]} - {"nothing_to_do"}


@pytest.mark.long
def test_intermediates_are_freed_at_their_last_use(tmp_path: Path) -> None:
    found = json.loads(torch_program(tmp_path, "memory", "t.pfw").stdout)
    assert len(found) == 4
    for what, (plain, traced) in found.items():
        # The chain holds two tensors of 40 MiB at a time; kept to the end, they would be sixteen.
        assert plain > 40e6, what
        assert traced <= plain * 1.05, what

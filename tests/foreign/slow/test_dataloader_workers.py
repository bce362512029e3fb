"""torch's DataLoader with every number, kind and lifetime of workers, three epochs each."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.dataloader import ALL, Case, check, load

pytest.importorskip("torch")


@pytest.mark.parametrize("case", [(0, "fork", False), *ALL])
def test_every_item_of_every_worker(tmp_path: Path, case: Case) -> None:
    check(load(tmp_path, case, 3), case, 3)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_iterable_style(tmp_path: Path, method: str) -> None:
    found = load(tmp_path, (2, method, False), 2, "iterable")
    assert sum(len(trace.named("item")) for trace in found) == 16
    assert sum(len(trace.named("fetch")) for trace in found) == 4

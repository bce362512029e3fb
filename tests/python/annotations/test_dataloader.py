"""torch's DataLoader: every item that every worker loads is in the trace, with its I/O, and with no
user code in the worker. The other ways to start workers are in tests/foreign/slow. Skipped without
torch."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import traces
from support.dataloader import ITEMS, READS, Case, check, load, names_of
from support.python_face import own, run_python

pytest.importorskip("torch")

# A worker that is started afresh imports torch, which takes seconds.
CASES: list[tuple[Case, int]] = [
    ((0, "fork", False), 3),
    ((1, "fork", False), 3),
    ((4, "fork", True), 3),
    ((1, "spawn", False), 2),
    ((1, "forkserver", True), 2),
]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(("case", "epochs"), CASES)
def test_map_style(tmp_path: Path, case: Case, epochs: int) -> None:
    check(load(tmp_path, case, epochs), case, epochs)


def test_iterable_style(tmp_path: Path) -> None:
    found = load(tmp_path, (2, "fork", False), 2, "iterable")
    names = names_of(found)
    assert (names["item"], names["pread"]) == (2 * ITEMS, 2 * ITEMS * READS)
    fetches = [event for trace in found for event in trace.named("fetch")]
    assert sum(own(event)["count"] for event in fetches) == 2 * ITEMS
    assert len(fetches) == 2 * 2


@pytest.mark.long
def test_torch_multiprocessing(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(
        "from dftracer.python import ai\n"
        "@ai.pipeline.train\n"
        "def train(rank, n):\n"
        "    with ai.compute.forward(args={'rank': rank}):\n"
        "        pass\n"
    )
    run_python(
        "import torch.multiprocessing as mp\n"
        "from dftracer.python import dftracer\n"
        "from work import train\n"
        "if __name__ == '__main__':\n"
        "    dftracer.initialize_log('traces/t.pfw')\n"
        "    mp.spawn(train, args=(5,), nprocs=2)\n",
        cwd=tmp_path,
    )
    assert traces.spools(tmp_path / "traces") == []
    found = traces.read_directory(tmp_path / "traces")
    events = [event for trace in found for event in trace.recorded]
    assert sorted(own(e)["rank"] for e in events if e["name"] == "forward") == [0, 1]
    assert sum(event["name"] == "train" for event in events) == 2

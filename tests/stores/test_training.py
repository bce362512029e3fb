"""Batches that a DataLoader makes from objects: each request belongs to one, and is its reading."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.stores.conftest import Run

from dftracer import reports


@pytest.mark.parametrize("workers", [0, 2])
def test_requests_of_batches(run: Run, s3: str, tmp_path: Path, workers: int) -> None:
    pytest.importorskip("torch")
    found = run("training.py", s3, str(workers), options=("--torch", "--no-io"))
    gets = [event for event in found.requests if event["name"] == "GetObject"]
    # Three samples of four bytes per batch, in order.
    assert sorted((e["args"]["batch"], e["args"]["offset"], e["args"]["bytes"]) for e in gets) == [
        (index // 3, index * 4, 4) for index in range(12)
    ]
    batches = {
        (event["pid"], event["args"]["batch"]): event
        for trace in found.traces
        for event in trace.named("batch")
    }
    for event in gets:
        around = batches[event["pid"], event["args"]["batch"]]
        assert around["ts"] <= event["ts"]
        assert event["ts"] + event["dur"] <= around["ts"] + around["dur"]
    report = reports.load(tmp_path / "traces")
    for row in report.batches:
        mine = [event["dur"] for event in gets if event["args"]["batch"] == row["batch"]]
        assert row["reading_ns"] == sum(mine) * 1000

"""The samples of datasets of other packages: webdataset, Hugging Face datasets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.pytorch.conftest import Program
from tests.support import traces

PROGRAMS = Path(__file__).resolve().parent / "programs"
ON = {"DFTRACER_TORCH": "1"}


def run(program: Program, tmp_path: Path, package: str) -> dict[str, list[list[Any]]]:
    """What the program saw, by the kind of its loader."""
    pytest.importorskip(package)
    data = tmp_path / "data"
    data.mkdir()
    env = {**ON, "DFTRACER_LOG_FILE": str(tmp_path / "traces" / "t"), "HF_HOME": str(data)}
    done = program(PROGRAMS / "with_datasets.py", package, data, env=env)
    seen: dict[str, list[list[Any]]] = {}
    for line in map(json.loads, done.stdout.splitlines()):
        seen.setdefault(line["kind"], []).append(line["keys"])
    return seen


def batches(tmp_path: Path, loader: int) -> list[tuple[traces.Record, list[traces.Record]]]:
    """The batches of a loader in order, each with its items."""
    found = [
        (batch, [item for item in trace.named("item") if item["args"]["p_idx"] == batch["id"]])
        for trace in traces.read_directory(tmp_path / "traces", open_parents=True)
        for batch in trace.named("batch")
        if batch["args"]["loader"] == loader
    ]
    return sorted(found, key=lambda pair: pair[0]["args"]["batch"])


def test_webdataset(program: Program, tmp_path: Path) -> None:
    seen = run(program, tmp_path, "webdataset")
    samples = [items for _, items in batches(tmp_path, 0)]
    assert [[item["args"]["key"] for item in items] for items in samples] == seen["samples"]
    for item in (item for items in samples for item in items):
        shard = item["args"]["key"].split("-")[0]
        assert Path(item["args"]["url"]).name == f"shard-{shard}.tar"
    assert [item["args"]["key"] for _, (item,) in batches(tmp_path, 1)] == seen["batches"]


def test_hugging_face_datasets(program: Program, tmp_path: Path) -> None:
    seen = run(program, tmp_path, "datasets")
    table = batches(tmp_path, 0)
    assert [batch["args"]["index"] for batch, _ in table] == seen["table"]
    assert [item["args"]["index"] for _, (item,) in table] == seen["table"]
    stream = batches(tmp_path, 1)
    assert [batch["args"]["count"] for batch, _ in stream] == [len(n) for n in seen["stream"]]

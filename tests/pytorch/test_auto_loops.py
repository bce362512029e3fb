"""Training loops that nobody annotated: what is recorded, and which step and epoch it is in."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.pytorch.conftest import PROGRAMS, accepted, counts, run_in
from tests.support import traces
from tests.support.perfetto_importer import Importer

KINDS = ["accumulation", "adversarial", "no_loader", "evaluation_first", "failing", "stream"]


@pytest.fixture(scope="module")
def loops(tmp_path_factory: pytest.TempPathFactory) -> dict[str, traces.Trace]:
    directory = tmp_path_factory.mktemp("loops")
    run_in(directory, PROGRAMS / "loops.py", *KINDS, env={"DFTRACER_TORCH": "1"})
    return {name: traces.read(directory / f"{name}.pfw.gz") for name in KINDS}


def values(trace: traces.Trace, category: str, name: str, key: str) -> list[int]:
    found = sorted(trace.recorded, key=lambda event: event["ts"])
    return [
        event["args"][key]
        for event in found
        if (event["cat"], event["name"]) == (category, name) and key in event["args"]
    ]


def test_all_are_readable(loops: dict[str, traces.Trace], perfetto: Importer) -> None:
    accepted(perfetto, list(loops.values()))


def test_gradient_accumulation_with_evaluation(loops: dict[str, traces.Trace]) -> None:
    trace = loops["accumulation"]
    assert counts(trace.recorded) == {
        "dataloader.fetch": 2 * (4 + 2),
        "dataloader.batch": 2 * (4 + 2),
        "data.item": 2 * (32 + 8),
        "data.preprocess.collate": 2 * (4 + 2),
        "compute.forward": 2 * (4 + 2),
        "compute.backward": 2 * 4,
        "compute.step": 2 * 2,
        "checkpoint.capture": 2,
    }
    assert values(trace, "compute", "backward", "step") == [0, 0, 1, 1, 2, 2, 3, 3]
    assert values(trace, "compute", "step", "step") == [0, 1, 2, 3]
    assert values(trace, "compute", "step", "epoch") == [0, 0, 1, 1]
    assert values(trace, "compute", "forward", "training") == [1, 1, 1, 1, 0, 0] * 2
    assert values(trace, "dataloader", "fetch", "epoch") == [0] * 6 + [1] * 6
    assert values(trace, "checkpoint", "capture", "step") == [2, 4]
    assert [e["args"]["file"] for e in trace.named("capture")] == ["model.pt"] * 2


def test_several_optimizers_are_one_step(loops: dict[str, traces.Trace]) -> None:
    trace = loops["adversarial"]
    assert values(trace, "compute", "step", "step") == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert values(trace, "compute", "step", "epoch") == [0] * 6 + [1] * 6
    # Each update runs both models.
    assert len(trace.named("forward")) == 2 * 2 * 6


def test_without_a_loader_every_update_is_a_step(loops: dict[str, traces.Trace]) -> None:
    trace = loops["no_loader"]
    for name in ("forward", "backward", "step"):
        assert values(trace, "compute", name, "step") == [0, 1, 2, 3, 4]
    assert "epoch" not in trace.named("step")[-1]["args"]


def test_evaluation_does_not_count(loops: dict[str, traces.Trace]) -> None:
    trace = loops["evaluation_first"]
    assert values(trace, "compute", "step", "step") == [0, 1, 2, 3]
    assert values(trace, "compute", "step", "epoch") == [0, 0, 1, 1]
    assert values(trace, "compute", "backward", "epoch") == [0, 0, 1, 1]
    # Read in one call for a whole batch.
    assert values(trace, "data", "item", "count") == [8, 8, 8, 8]


def test_a_program_that_counts_itself_is_left_alone(loops: dict[str, traces.Trace]) -> None:
    trace = loops["stream"]
    assert counts(trace.recorded) == {
        "dataloader.fetch": 3,
        "dataloader.batch": 3,
        "data.item": 6,
        "data.preprocess.collate": 3,
        "compute.forward": 3,
        "compute.backward": 3,
        "compute.step": 3,
    }
    assert {(e["args"]["epoch"], e["args"]["step"]) for e in trace.recorded} == {(7, 70)}


def test_a_failed_update_leaves_nothing_behind(loops: dict[str, traces.Trace]) -> None:
    trace = loops["failing"]
    (step,) = trace.named("step")
    assert step["args"]["level"] == 1
    assert {e["args"]["p_idx"] for e in trace.named("forward")} == {step["id"]}
    (moved,) = trace.named("transfer")
    assert moved["cat"] == "device"
    assert (moved["args"]["bytes"], moved["args"]["level"]) == (24, 1)
    assert (moved["args"]["source"], moved["args"]["target"]) == ("cpu", "meta")


def test_files_are_where_they_were_asked_for(loops: dict[str, traces.Trace]) -> None:
    directory: Path = loops["stream"].path.parent
    assert [path.name for path in traces.files(directory)] == [
        f"{name}.pfw.gz" for name in sorted(KINDS)
    ]

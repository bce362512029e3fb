"""Lightning and Hugging Face's Trainer: their own epochs and steps, under the ai vocabulary."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.pytorch.conftest import Program, accepted, counts
from tests.support import traces
from tests.support.perfetto_importer import Importer

PROGRAMS = Path(__file__).resolve().parent / "programs"


def fetches(trace: traces.Trace) -> list[traces.Record]:
    return [event for event in trace.named("fetch") if event["cat"] == "dataloader"]


def checked(trace: traces.Trace) -> dict[str, int]:
    """Two epochs of four batches, two of them an update, one batch of evaluation after each."""
    updates = [(e["args"]["epoch"], e["args"]["step"]) for e in trace.named("step")]
    assert updates == [(0, 0), (0, 1), (1, 2), (1, 3)]
    (train,) = [event for event in trace.named("train") if event["cat"] == "pipeline"]
    epochs = [event for event in trace.named("epoch") if event["cat"] == "pipeline"]
    assert [event["args"]["epoch"] for event in epochs] == [0, 1]
    for event in (*epochs, *trace.named("backward"), *trace.named("evaluate")):
        assert train["ts"] <= event["ts"]
        assert event["ts"] + event["dur"] <= train["ts"] + train["dur"]
    assert {event["args"]["module"] for event in trace.named("forward")} == {"Model"}
    found = counts(trace.recorded)
    assert found["compute.backward"] == 2 * 4
    assert found["compute.forward"] == 2 * (4 + 1)
    assert found["pipeline.evaluate"] == 2
    assert found["dataloader.fetch"] >= 2 * (4 + 1)
    assert found["checkpoint.capture"] >= 2
    fetched = [(e["args"]["loader"], e["args"]["pass"], e["args"]["batch"]) for e in fetches(trace)]
    assert len(set(fetched)) == len(fetched)
    return found


@pytest.mark.parametrize(
    ("needs", "script"), [("lightning", "with_lightning.py"), ("transformers", "with_trainer.py")]
)
@pytest.mark.parametrize("beside", [{}, {"DFTRACER_TORCH": "1"}], ids=["callback", "both"])
def test_trainer(
    program: Program,
    tmp_path: Path,
    perfetto: Importer,
    needs: str,
    script: str,
    beside: dict[str, str],
) -> None:
    pytest.importorskip(needs)
    program(PROGRAMS / script, env=beside)
    trace = traces.read_one(tmp_path)
    checked(trace)
    accepted(perfetto, [trace])


@pytest.mark.parametrize("script", ["with_lightning.py", "with_trainer.py"])
def test_switched_off(program: Program, tmp_path: Path, script: str) -> None:
    pytest.importorskip("lightning" if "lightning" in script else "transformers")
    program(PROGRAMS / script, enable=False)
    assert not traces.files(tmp_path)

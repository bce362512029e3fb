"""Which loads and saves are checkpoints, and which are data."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.pytorch.conftest import PROGRAMS, run_in
from tests.support import traces

STANDINS = Path(__file__).parent / "standins"


def checkpoints(program: str, directory: Path) -> list[tuple[str, str | None]]:
    env = {"DFTRACER_TORCH": "1", "PYTHONPATH": str(STANDINS)}
    run_in(directory, PROGRAMS / "checkpoints.py", program, env=env)
    found = [
        event
        for trace in traces.read_directory(directory)
        for event in trace.recorded
        if event["cat"] == "checkpoint"
    ]
    return [(event["name"], event["args"].get("file")) for event in found]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("program", ["files", "workers", "by_hand", "stream"])
def test_loads_while_data_is_read_are_no_checkpoints(program: str, tmp_path: Path) -> None:
    """In items, collation, workers, and where a dataset is made or read without a loader."""
    assert checkpoints(program, tmp_path) == []


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    ("program", "wanted"),
    [
        ("plain", [("capture", "model.pt"), ("restart", "model.pt")]),
        ("distributed", [("capture", None), ("restart", "dcp")]),
        (
            "safetensors",
            [
                ("capture", "model.safetensors"),
                ("restart", "model.safetensors"),
                ("capture", "other.safetensors"),
                ("restart", "other.safetensors"),
            ],
        ),
    ],
)
def test_one_save_is_one_capture(
    program: str, wanted: list[tuple[str, str | None]], tmp_path: Path
) -> None:
    """Whatever it calls to do its work, and on whatever thread."""
    assert checkpoints(program, tmp_path) == wanted

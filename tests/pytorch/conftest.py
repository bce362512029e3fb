"""Programs that use torch run in processes of their own; without torch there is nothing to run."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest
from tests.support import run as runner
from tests.support import traces
from tests.support.perfetto_importer import Importer

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).resolve().parent / "programs"
EXAMPLES = ROOT / "examples" / "torch"

Program = Callable[..., runner.Result]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if importlib.util.find_spec("torch") is not None:
        return
    skip = pytest.mark.skip(reason="torch is not installed")
    for item in items:
        if "pytorch" in item.path.parts and "needs_no_torch" not in item.name:
            item.add_marker(skip)


def run_in(
    directory: Path,
    *words: str | int | Path,
    env: Mapping[str, str] | None = None,
    enable: bool = True,
    expect: int | None = 0,
) -> runner.Result:
    """Runs a program in a directory, traced into t*.pfw.gz there unless it says otherwise."""
    settings = {"DFTRACER_LOG_FILE": str(directory / "t"), "OMP_NUM_THREADS": "1", **(env or {})}
    # The profiler itself says on stderr when it starts.
    return runner.run(
        sys.executable,
        *words,
        env=settings,
        cwd=directory,
        enable=enable,
        expect=expect,
        stderr=None,
    )


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return partial(run_in, tmp_path)


@pytest.fixture(scope="session")
def perfetto() -> Importer:
    with Importer() as importer:
        yield importer  # type: ignore[misc]


def accepted(perfetto: Importer, found: list[traces.Trace]) -> None:
    """Perfetto takes every span of every file."""
    for trace in found:
        loaded = perfetto.load(trace.path)
        spans = sum(event["ph"] in "Xi" for event in trace.events)
        assert (loaded.clean, loaded.slices) == (True, spans), (trace.path, loaded)


def counts(events: list[traces.Record]) -> dict[str, int]:
    """How often each event occurs, without the garbage collector's: no program decides these."""
    found = Counter(f"{event['cat']}.{event['name']}" for event in events)
    del found["python.gc"]
    return dict(found)

"""Generators, coroutines and asynchronous generators: one event each, whatever happens to them. The
checks are in programs/{generators,coroutines,async_generators}.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support import traces
from themes import names_of

if TYPE_CHECKING:
    from conftest import Themes
    from support.perfetto_importer import Importer

PROGRAMS = ("generators", "coroutines", "async_generators")
CHECKS = [(program, name) for program in PROGRAMS for name in names_of(program)]


@pytest.mark.parametrize(("program", "name"), CHECKS)
def test_recorded(themes: Themes, program: str, name: str) -> None:
    themes(program).verify(name)


def event_of(themes: Themes, program: str, check: str) -> traces.Record:
    """The event `forward` that a check made."""
    trace = themes(program).trace
    assert trace is not None
    outer = trace.one(check)["id"]
    (found,) = (event for event in trace.recorded if event["args"]["p_idx"] == outer)
    return found


def test_times(themes: Themes) -> None:
    """An event covers the awaited time; `busy` is the part that was spent inside."""
    assert event_of(themes, "coroutines", "awaited_time.bare")["dur"] >= 30_000
    found = event_of(themes, "generators", "busy_time.bare")
    busy = found["args"]["busy"]
    assert busy >= 15_000
    assert found["dur"] - busy >= 15_000


@pytest.mark.parametrize("program", PROGRAMS)
def test_perfetto_shows_all(themes: Themes, perfetto: Importer, program: str) -> None:
    done = themes(program)
    assert done.trace_problem == ""
    assert done.trace is not None
    assert traces.crossings(done.trace.events) == []
    loaded = perfetto.load(done.trace.path)
    assert (loaded.errors, loaded.problems) == ([], {})
    assert loaded.slices == len(done.trace.events)


@pytest.mark.parametrize("program", PROGRAMS)
def test_switched_off_the_same_holds(themes: Themes, program: str) -> None:
    off = themes(program, enable=False)
    off.verify(*names_of(program))
    assert off.stderr == ""


@pytest.mark.parametrize("program", PROGRAMS)
def test_in_development_mode(themes: Themes, program: str) -> None:
    done = themes(program, "-X", "dev")
    done.verify(*names_of(program))
    # asyncio says there how long something took, on a machine that is busy.
    said = [line for line in done.stderr.splitlines() if not line.startswith("Executing <")]
    assert said == []

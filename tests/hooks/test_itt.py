"""Programs that are annotated with ITT: tasks, events and PyTorch's own ranges become events."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command import dftracer
from support.traces import Trace, crossings, read_directory

PROGRAM = """
import ittapi, threading

@ittapi.task
def decorated():
    with ittapi.task("inner", domain="other"):
        pass

decorated()
with ittapi.event("an event"):
    pass
first = ittapi.task("first", overlapped=True)
second = ittapi.task("second", overlapped=True)
first.begin(); second.begin(); first.end(); second.end(); second.end()
ittapi.thread_set_name("main thread")
for number in range(3):
    with ittapi.task("task %d" % number): pass
"""


def run(place: Path, program: str) -> Trace:
    (place / "program.py").write_text(program)
    dftracer("run", "-q", "--no-io", "-o", "d", "python", "program.py", cwd=place)
    (trace,) = read_directory(place / "d")
    return trace


def test_tasks_events_and_names_of_threads(tmp_path: Path) -> None:
    pytest.importorskip("ittapi", reason="needs the package ittapi")
    trace = run(tmp_path, PROGRAM)
    assert {event["cat"] for event in trace.recorded} == {"ITT"}
    names = ["an event", "decorated", "first", "inner", "second", "task 0", "task 1", "task 2"]
    assert sorted(event["name"] for event in trace.recorded) == names
    assert trace.one("inner")["args"]["domain"] == "other"
    assert trace.one("inner")["args"]["p_idx"] == trace.one("decorated")["id"]
    assert crossings(trace.events) == []
    named = [r for r in trace.metadata if r["name"] == "thread_name"]
    assert "main thread" in [record["args"]["name"] for record in named]


@pytest.mark.long
def test_ranges_and_marks_of_pytorch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    if not torch.profiler.itt.is_available():
        pytest.skip("this PyTorch was built without ITT")
    trace = run(
        tmp_path,
        "import torch\n"
        "with torch.profiler.itt.range('step'): torch.profiler.itt.mark('here')\n"
        "with torch.autograd.profiler.emit_itt(): torch.ones(4) * 2\n",
    )
    assert trace.one("here")["args"]["p_idx"] == trace.one("step")["id"]
    assert trace.one("step")["args"]["domain"] == "PyTorch"
    assert trace.named("aten::mul")

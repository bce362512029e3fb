"""Instrumented, torch is what it was, for the program and for torch.compile; off, nothing is
touched."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.pytorch.conftest import PROGRAMS, Program
from tests.support import run, traces

UNTOUCHED = PROGRAMS / "untouched.py"


@pytest.mark.long
def test_looks_the_same_compiles_the_same_and_is_put_back(program: Program, tmp_path: Path) -> None:
    told = json.loads(program(UNTOUCHED, "on", "compile").stdout)
    assert all(told["replaced"])
    assert all(told["restored"])
    assert told["hooks"] == 0
    assert told["looks"]["signatures"]
    assert told["looks"]["pickled"]
    assert told["looks"]["module"]
    assert told["looks"]["iterator"] == "_SingleProcessDataLoaderIter"
    assert told["looks"]["names"][:3] == ["Module._wrapped_call_impl", "backward", "save"]
    # Values, graph breaks and their reasons, graphs and captured calls.
    assert told["traced"] == told["bare"]
    trace = traces.read_one(tmp_path)
    assert len(trace.named("forward")) == 2  # of the compiled model; the rest is inside graphs


def test_off_touches_nothing(program: Program, tmp_path: Path) -> None:
    told = json.loads(program(UNTOUCHED, env={"DFTRACER_TORCH": "0"}).stdout)
    assert not any(told["replaced"])
    assert not told["imported"]
    assert not list(tmp_path.glob("*.pfw*"))  # with I/O calls off, there is nothing to record


def test_python_starts_as_before_needs_no_torch(tmp_path: Path) -> None:
    """The line that Python runs when it starts imports nothing unless it is asked to."""
    code = "import sys; print([name for name in sys.modules if 'dftracer' in name], end='')"
    for env in ({}, {"DFTRACER_TORCH": ""}):
        assert run.run(sys.executable, "-c", code, env=env).stdout == "[]"
    off = {"DFTRACER_TORCH": "1"}
    out = run.run(sys.executable, "-c", code, env=off, enable=False).stdout
    assert out == "['dftracer', 'dftracer._startup']"


def test_the_line_that_python_starts_with_is_installed_needs_no_torch() -> None:
    import dftracer

    beside = Path(dftracer.__path__[0]).parent / "dftracer.pth"
    assert "DFTRACER_TORCH" in beside.read_text()


def test_a_torch_that_is_none_is_left_alone_needs_no_torch(tmp_path: Path) -> None:
    """Something else that is called torch: one line, and the program goes on."""
    (tmp_path / "torch.py").write_text("value = 1\n")
    env = {
        "DFTRACER_TORCH": "1",
        "PYTHONPATH": str(tmp_path),
        "DFTRACER_LOG_FILE": str(tmp_path / "t"),
    }
    code = "import torch; print(torch.value, type(torch.__loader__).__name__)"
    done = run.run(sys.executable, "-c", code, env=env, stderr=None)
    assert done.stdout == "1 SourceFileLoader\n"
    assert done.stderr.startswith("dftracer: torch is not instrumented: ")
    assert done.stderr.count("\n") == 1

"""Annotations of a program that starts no trace: one line at its end says so."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from support.python_face import run_python, shapes
from support.run import run
from support.traces import read_directory, read_one

ANNOTATED = """
from dftracer.python import ai, dft_fn, dftracer

mine = dft_fn("mine")

@mine.log
def call(step): return step

@ai.dataloader.fetch
def batches(): yield 1

def annotated():
    call(1)
    call(step=2)
    with ai.compute: pass
    for _ in ai.comm.send.iter([1, 2]): pass
    list(batches())
    dftracer.get_instance().log_event("by hand", "mine", 0, 1)
    ai.pipeline.train.start()
    ai.pipeline.train.stop()
    with ai.data.item(enable=False): pass
"""
CALLS = 2 + 1 + 2 + 1 + 1 + 1


def told(stderr: str) -> list[int]:
    """The counts that were reported, one for each line."""
    pattern = r"dftracer: (\d+) annotated calls? (?:was|were) not recorded, because no trace was "
    found = [re.match(pattern, line) for line in stderr.splitlines()]
    return [int(match[1]) if match else -1 for match in found]


def test_calls_without_a_trace_are_reported_once(tmp_path: Path) -> None:
    done = run_python(ANNOTATED + "annotated()", cwd=tmp_path, stderr=None)
    assert told(done.stderr) == [CALLS]
    assert "initialize_log" in done.stderr
    assert "dftracer run" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["program.py"]


@pytest.mark.parametrize(
    "ending",
    ["import sys; sys.exit(3)", "raise ValueError", "import os\nif os.fork() == 0: sys.exit(0)"],
)
def test_however_the_program_ends(ending: str, tmp_path: Path) -> None:
    program = ANNOTATED + "import sys\nannotated()\n" + ending
    done = run_python(program, cwd=tmp_path, expect=None, stderr=None)
    assert told(done.stderr)[-1:] == [CALLS]
    assert told(done.stderr).count(CALLS) == 1


@pytest.mark.parametrize(
    ("program", "env"),
    [
        ("", {}),  # nothing annotated was called
        ("annotated()", {"DFTRACER_ENABLE": "0"}),
        ("annotated()", {"DFTRACER_SUMMARY": "0"}),
    ],
)
def test_nothing_is_said_where_nothing_was_wanted(
    program: str, env: dict[str, str], tmp_path: Path
) -> None:
    done = run_python(ANNOTATED + program, cwd=tmp_path, env=env)
    assert done.stderr == ""


def test_a_program_that_starts_later_hears_nothing(tmp_path: Path) -> None:
    """Programs of other releases call decorated functions before initialize_log, and after
    finalize."""
    program = (
        "annotated()\nlog = dftracer.initialize_log('t.pfw')\ncall(3)\nlog.finalize()\ncall(4)"
    )
    done = run_python(ANNOTATED + program, cwd=tmp_path)
    assert done.stderr == ""
    assert shapes(read_one(tmp_path)) == [("mine", "call", {"step": 3})]


def test_under_dftracer_run_the_calls_are_recorded(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(ANNOTATED + "annotated()")
    done = run(
        *(sys.executable, "-m", "dftracer", "run", "-o", "traces", "--"),
        *(sys.executable, "program.py"),
        cwd=tmp_path,
        stderr=None,
    )
    assert "not recorded" not in done.stderr
    names = [
        event["name"] for trace in read_directory(tmp_path / "traces") for event in trace.recorded
    ]
    assert names.count("call") == 2

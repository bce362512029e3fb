"""Programs that are annotated with NVTX: ranges, marks, domains and payloads become events."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from support.build import compile_c
from support.command import dftracer
from support.traces import Trace, crossings, read_directory

PROGRAMS = Path(__file__).parent / "programs"


def headers() -> str:
    spec = importlib.util.find_spec("nvidia")
    for place in spec.submodule_search_locations or [] if spec is not None else []:
        found = Path(place) / "nvtx" / "include"
        if (found / "nvtx3" / "nvToolsExt.h").exists():
            return str(found)
    pytest.skip("needs the headers of the package nvidia-nvtx-cu12")


def own(event: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in event["args"].items() if k not in ("hhash", "p_idx", "level")}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trace, Trace]:
    """The traces of the program and of its child."""
    place = tmp_path_factory.mktemp("nvtx")
    program = compile_c(PROGRAMS / "nvtx.c", None, f"-I{headers()}", "-w", link=False)
    dftracer("run", "-q", "--no-io", "-o", "d", program, cwd=place)
    child, parent = sorted(read_directory(place / "d"), key=lambda trace: len(trace.records))
    return parent, child


def test_ranges_nest_and_carry_what_the_program_gave(both: tuple[Trace, Trace]) -> None:
    trace = both[0]
    outer, wide = trace.one("outer"), trace.one("h\u00e9\U0001f600")
    registered = trace.one("registered")
    assert {event["cat"] for event in trace.recorded} == {"NVTX"}
    assert [event["args"]["level"] for event in (outer, wide, registered)] == [1, 2, 3]
    assert wide["args"]["p_idx"] == outer["id"]
    assert own(outer) == {}
    assert own(registered) == {"domain": "lib", "category": "reading", "payload": 1.5}
    # A range of one domain that ends inside one of another crosses it: on a lane of its own.
    assert registered["tid"] != outer["tid"]
    assert crossings(trace.events) == []


def test_marks_are_instants_with_payloads_of_every_type(both: tuple[Trace, Trace]) -> None:
    trace = both[0]
    mark = trace.one("mark")
    assert mark["ph"] == "i"
    assert mark["args"]["p_idx"] == trace.one("outer")["id"]
    assert [own(event) for event in trace.named("payload")] == [
        {"domain": "w\u00e9", "category": 8, "payload": -3},
        {"category": "other", "payload": 2**64 - 1},
        {"payload": 0.25},
    ]


def test_a_range_that_ends_on_another_thread_is_recorded_once(both: tuple[Trace, Trace]) -> None:
    trace = both[0]
    assert trace.one("started")["dur"] >= 0
    named = [r["tid"] for r in trace.metadata if r["args"]["name"] == "my worker"]
    assert len(named) == 1
    assert trace.one("open at the end of its thread")["tid"] == named[0]


def test_null_and_made_up_pointers_harm_nothing(both: tuple[Trace, Trace]) -> None:
    trace = both[0]
    unnamed = trace.named("unnamed")
    assert [event["ph"] for event in unnamed] == ["X", "X", "X", "i"]
    assert len([e for e in trace.recorded if e["name"].startswith("bad ")]) == 1


def test_a_fork_leaves_open_ranges_to_the_parent(both: tuple[Trace, Trace]) -> None:
    parent, child = both
    assert len(parent.named("around a fork")) == 1
    assert [event["name"] for event in child.recorded] == ["in the child"]


def test_what_is_open_at_the_end_lasts_until_then(both: tuple[Trace, Trace]) -> None:
    trace = both[0]
    last = trace.one("open at the end")
    assert last["ts"] + last["dur"] <= trace.one("end")["ts"]
    # Deeper ranges than a thread's stack holds are not recorded, and end nothing else.
    assert len(trace.named("deep")) == 4096


def test_the_python_package(tmp_path: Path) -> None:
    pytest.importorskip("nvtx", reason="needs the package nvtx")
    (tmp_path / "program.py").write_text(
        "import nvtx\n"
        "@nvtx.annotate('step', domain='train', category='loop', payload=3)\n"
        "def step(): nvtx.mark('inside')\n"
        "step()\n"
        "started = nvtx.start_range('long')\n"
        "nvtx.end_range(started)\n"
    )
    dftracer("run", "-q", "--no-io", "-o", "d", "python", "program.py", cwd=tmp_path)
    (trace,) = read_directory(tmp_path / "d")
    step = trace.one("step")
    assert own(step) == {"domain": "train", "category": "loop", "payload": 3}
    assert trace.one("inside")["args"]["p_idx"] == step["id"]
    assert trace.one("long")["ph"] == "X"


def test_a_tool_that_the_user_chose_gets_the_annotations(tmp_path: Path) -> None:
    show = ["sh", "-c", "echo $NVTX_INJECTION64_PATH,$INTEL_LIBITTNOTIFY64"]
    env = {"NVTX_INJECTION64_PATH": "/mine.so", "DFTRACER_ITT": "0"}
    done = dftracer("run", "-q", "-o", "d", *show, cwd=tmp_path, env=env)
    assert done.stdout == "/mine.so,\n"
    done = dftracer("run", "-q", "-o", "d", *show, cwd=tmp_path)
    path, _, other = done.stdout.strip().partition(",")
    assert path == other
    assert Path(path).name == "libdftracer_inject.so"
    assert Path(path).exists()

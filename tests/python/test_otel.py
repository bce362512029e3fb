"""OpenTelemetry's spans in the trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.command import dftracer
from support.traces import Trace, crossings, read_directory

pytest.importorskip("opentelemetry.sdk.trace", reason="needs the package opentelemetry-sdk")

HEAD = """
import asyncio, threading, time
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import SpanKind
provider = TracerProvider()
trace.set_tracer_provider(provider)
tracer = trace.get_tracer("test")
"""
PROGRAM = (
    HEAD
    + """
attributes = {"http.method": "GET", "level": 5, "api_key": "hidden", "sizes": [1, 2],
              "long": "x" * 5000, "ok": True, "ratio": 0.5}
with tracer.start_as_current_span("request", attributes=attributes, kind=SpanKind.CLIENT) as span:
    span.add_event("miss", {"key": "k"})
    with tracer.start_as_current_span("inner"):
        pass
    try:
        with tracer.start_as_current_span("bad"):
            raise ValueError("on purpose")
    except ValueError:
        pass

async def task(number):
    with tracer.start_as_current_span("task %d" % number):
        await asyncio.sleep(0.002 * number)
        await asyncio.sleep(0.002 * (3 - number))

async def tasks():
    await asyncio.gather(task(1), task(2))

asyncio.run(tasks())
span = tracer.start_span("crosses")
thread = threading.Thread(target=span.end)
thread.start()
thread.join()
tracer.start_span("given", start_time=time.time_ns() - 5_000_000_000).end()
with tracer.start_as_current_span("many", attributes={"a%d" % n: n for n in range(100)}):
    pass
left = tracer.start_span("never ended")
"""
)


def run(place: Path, program: str, **env: str) -> Trace:
    (place / "program.py").write_text(program)
    dftracer("run", "-q", "--no-io", "-o", "d", "python", "program.py", cwd=place, env=env)
    (trace,) = read_directory(place / "d")
    return trace


def own(event: dict[str, Any]) -> dict[str, Any]:
    ours = ("hhash", "p_idx", "level", "trace_id", "span_id", "parent_id")
    return {key: value for key, value in event["args"].items() if key not in ours}


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return run(tmp_path_factory.mktemp("otel"), PROGRAM)


def test_spans_become_regions_with_their_attributes(trace: Trace) -> None:
    request, inner = trace.one("request"), trace.one("inner")
    assert {event["cat"] for event in trace.recorded} == {"OTEL"}
    assert own(request) == {
        "kind": "CLIENT",
        "http.method": "GET",
        "attribute.level": 5,
        "api_key": "***",
        "sizes": [1, 2],
        "long": "x" * 1024,
        "ok": True,
        "ratio": 0.5,
    }
    assert request["args"]["level"] == 1
    assert inner["args"]["p_idx"] == request["id"]
    assert inner["args"]["parent_id"] == request["args"]["span_id"]
    assert inner["args"]["trace_id"] == request["args"]["trace_id"]
    many = own(trace.one("many"))
    assert many["attributes_left_out"] + len(many) - 1 == 100


def test_events_are_instants_at_their_own_time(trace: Trace) -> None:
    miss, request = trace.one("miss"), trace.one("request")
    assert miss["ph"] == "i"
    assert own(miss) == {"key": "k"}
    # Two clocks: OpenTelemetry's and the trace's.
    assert request["ts"] - 1000 <= miss["ts"] <= request["ts"] + request["dur"] + 1000


def test_a_failed_span_says_so(trace: Trace) -> None:
    assert own(trace.one("bad")) == {"status": "ERROR", "error": "ValueError: on purpose"}


def test_spans_of_tasks_and_threads_cross_nothing(trace: Trace) -> None:
    assert crossings(trace.events) == []
    first, second = trace.one("task 1"), trace.one("task 2")
    assert first["tid"] != second["tid"]
    assert first["dur"] >= 5000
    assert second["dur"] >= 5000
    assert len(trace.named("crosses")) == 1


def test_given_times_are_kept(trace: Trace) -> None:
    assert 5_000_000 <= trace.one("given")["dur"] < 60_000_000


def test_a_span_that_never_ended_lasts_until_the_end(trace: Trace) -> None:
    assert own(trace.one("never ended")) == {"unfinished": True}


def test_a_second_processor_and_the_switch(tmp_path: Path) -> None:
    program = HEAD + (
        "from dftracer.python.otel import DFTracerSpanProcessor\n"
        "provider.add_span_processor(DFTracerSpanProcessor())\n"
        "with tracer.start_as_current_span('once'): pass\n"
    )
    for place, switch in (("on", "1"), ("off", "0")):
        (tmp_path / place).mkdir()
        trace = run(tmp_path / place, program, DFTRACER_OTEL=switch)
        assert len(trace.named("once")) == 1


def test_a_program_without_opentelemetry_does_not_import_it(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import sys\nassert not [name for name in sys.modules if 'opentelemetry' in name]\n"
        "assert 'dftracer.python' not in sys.modules\n"
    )
    dftracer("run", "-q", "-o", "d", "python", "program.py", cwd=tmp_path)

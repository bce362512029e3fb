"""Calls of an empty Python function: bare, and recorded by one tracer in the ways that it offers.

    python_calls.py bursts WHO BURSTS CALLS PAUSE_MS   least CPU time of a call, for each way
    python_calls.py sustained WHO CALLS                one way, without a pause
    python_calls.py instructions WHO LIBRARY           under callgrind; see collect.c

WHO: ours, peer, viztracer, cprofile, torch or opentelemetry. Prints figures as JSON.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

Loop = Callable[[int], None]

# A loop for each way is compiled apart: the interpreter adapts the code of a call to what it calls.
BARE = {"bare": "work()", "bare_loop": "pass"}


def work() -> None:
    pass


def loop(body: str, names: dict[str, Any], items: str = "range(count)") -> Loop:
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    exec(f"def run(count):\n    for i in {items}:\n{lines}\n", names)
    made: Loop = names["run"]
    return made


class Way:
    """A tracer: loops by the way in which it records, and what surrounds each of them."""

    events = ""  # of what name, if its trace is counted

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"work": work}
        self.prepare()
        self.loops = {key: self._loop(body) for key, body in {**BARE, **self.bodies()}.items()}

    def _loop(self, body: str) -> Loop:
        names = dict(self.names)
        return loop("pass", names, body[3:]) if body.startswith("in ") else loop(body, names)

    def prepare(self) -> None: ...

    def bodies(self) -> dict[str, str]:
        return {}

    def recording(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def end(self) -> None: ...


class Dftracer(Way):
    """This project, or the one of the same interface."""

    events = "forward"

    def prepare(self) -> None:
        from dftracer.python import ai, dftracer

        # Not from the environment: the peer's name of the file depends on how it is given.
        self.log = dftracer.initialize_log("trace.pfw", None, -1)
        traced = ai.compute.forward(work)
        with_args = ai.compute.forward(args={"size": 4096, "kind": "image"})(work)
        self.names.update(ai=ai, traced=traced, with_args=with_args)

    def bodies(self) -> dict[str, str]:
        return {
            "decorator": "traced()",
            "region": "with ai.compute.forward:\n    work()",
            "updated": "ai.update(epoch=1, step=i)\ntraced()",
            "arguments": "with_args()",
            "iterator": "in ai.dataloader.fetch.iter(range(count))",
        }

    def end(self) -> None:
        self.log.finalize()


class Viztracer(Way):
    def prepare(self) -> None:
        from viztracer import VizTracer

        self.tracer = VizTracer(log_func_args=False, verbose=0, tracer_entries=200_000)
        self.names["tracer"] = self.tracer

    def bodies(self) -> dict[str, str]:
        return {"decorator": "work()", "region": "with tracer.log_event('forward'):\n    work()"}

    def recording(self) -> AbstractContextManager[Any]:
        tracer = self.tracer

        class Recording:
            def __enter__(self) -> None:
                tracer.start()

            def __exit__(self, *_: object) -> None:
                tracer.stop()
                tracer.clear()

        return Recording()


class CProfile(Way):
    def bodies(self) -> dict[str, str]:
        return {"decorator": "work()"}

    def recording(self) -> AbstractContextManager[Any]:
        import cProfile

        return cProfile.Profile()


class Torch(Way):
    def prepare(self) -> None:
        import torch

        function = torch.profiler.record_function
        self.names.update(
            record_function=function,
            traced=function("forward")(work),
            with_args=function("forward", "size=4096 kind=image")(work),
        )

    def bodies(self) -> dict[str, str]:
        return {
            "decorator": "traced()",
            "region": "with record_function('forward'):\n    work()",
            "arguments": "with_args()",
        }

    def recording(self) -> AbstractContextManager[Any]:
        import torch

        activities = [torch.profiler.ProfilerActivity.CPU]
        made: AbstractContextManager[Any] = torch.profiler.profile(activities=activities)
        return made


class OpenTelemetry(Way):
    """Without an exporter: what a span costs before anybody has written it."""

    def prepare(self) -> None:
        from opentelemetry.sdk.trace import TracerProvider

        span = TracerProvider().get_tracer("bench").start_as_current_span
        attributes = {"size": 4096, "kind": "image"}
        self.names.update(
            span=span,
            traced=span("forward")(work),
            with_args=span("forward", attributes=attributes)(work),
        )

    def bodies(self) -> dict[str, str]:
        return {
            "decorator": "traced()",
            "region": "with span('forward'):\n    work()",
            "arguments": "with_args()",
        }


WAYS: dict[str, type[Way]] = {
    "ours": Dftracer,
    "peer": Dftracer,
    "viztracer": Viztracer,
    "cprofile": CProfile,
    "torch": Torch,
    "opentelemetry": OpenTelemetry,
}


def timed(way: Way, key: str, calls: int, clock: Callable[[], int]) -> float:
    run = way.loops[key]
    with nullcontext() if key in BARE else way.recording():
        began = clock()
        run(calls)
        spent = clock() - began
    return spent / calls


def bursts(way: Way, count: int, calls: int, pause_ms: int) -> dict[str, float]:
    """Bare and recorded take turns; the pause lets a tracer's own threads finish. What is updated
    stays with all later events, so that way comes last."""
    least = {key: float("inf") for key in way.loops}
    last = [key for key in way.loops if key == "updated"]
    for phase in ([key for key in way.loops if key not in last], [*BARE, *last] if last else []):
        for _ in range(count):
            for key in phase:
                least[key] = min(least[key], timed(way, key, calls, time.thread_time_ns))
                time.sleep(pause_ms / 1000)
    return least


def sustained(way: Way, calls: int) -> dict[str, float]:
    figures = {}
    for key in ("bare", "decorator"):
        clocks = (time.thread_time_ns, time.process_time_ns, time.perf_counter_ns)
        began = [clock() for clock in clocks]
        with nullcontext() if key == "bare" else way.recording():
            way.loops[key](calls)
            names = ("cpu_ns", "all_ns", "wall_ns")
            for name, clock, start in zip(names, clocks, began):
                figures[f"{key}_{name}"] = (clock() - start) / calls
    return figures


def instructions(way: Way, library: str) -> None:
    """Each loop with two lengths. What callgrind counts, it writes under their names."""
    collect = ctypes.PyDLL(library).collect
    collect.argtypes = [ctypes.py_object, ctypes.c_ssize_t, ctypes.c_char_p]
    for key, run in sorted(way.loops.items(), key=lambda item: item[0] == "updated"):
        with nullcontext() if key in BARE else way.recording():
            run(100)  # until the interpreter has adapted the loop, and names are known
            for calls in (400, 800):
                collect(run, calls, f"{key} {calls}".encode())


def main(what: str, who: str, *rest: str) -> None:
    way = WAYS[who]()
    figures: dict[str, float] = {}
    if what == "bursts":
        count, calls, pause_ms = map(int, rest)
        figures = bursts(way, count, calls, pause_ms)
        recorded = [key for key in way.loops if key not in BARE and key != "iterator"]
        figures["events"] = len(recorded) * count * calls
    elif what == "sustained":
        figures = sustained(way, int(rest[0]))
        figures["events"] = int(rest[0])
    elif what == "instructions":
        instructions(way, rest[0])
    figures["same"] = way.names.get("traced") is work
    way.end()
    print(json.dumps(figures))


if __name__ == "__main__":
    main(*sys.argv[1:])

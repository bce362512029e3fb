"""Events of a program that is ending: finalizers, exit handlers, threads that are cut off. The
program ends as it would without, and what was recorded is there."""

from __future__ import annotations

import re
import signal
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support import traces
from support.python_face import run_python
from support.traces import Trace

HEAD = """
import asyncio, atexit, gc, os, sys, threading, time, types, weakref
from dftracer.python import DFTracerAI, ai, dft_fn, dftracer

log = dftracer.initialize_log("t.pfw")

@ai.data.item
def item(): ...

@ai.dataloader.fetch
def items(n):
    try:
        for i in range(n):
            item()
            yield i
    finally:
        item()

class Last:
    def __init__(self, *held):
        self.held = held
    def __del__(self):
        with ai.pipeline.test(args={"x": "y"}):
            item()
        ai.update(step=1)
        for _ in ai.comm.send.iter([1]):
            pass
        list(items(1))
"""


def ending(program: str, cwd: Path, **how: Any) -> tuple[Trace, Counter[str]]:
    env = {"PYTHONMALLOC": "debug", "PYTHONFAULTHANDLER": "1"}
    run_python(HEAD + textwrap.dedent(program), cwd=cwd, env=env, **how)
    trace = traces.read_one(cwd, open_parents=True)
    return trace, Counter(event["name"] for event in trace.recorded)


LAST = {"test": 1, "item": 3, "send.iter": 1, "send.block": 1, "fetch": 1}


@pytest.mark.parametrize(
    "program",
    [
        "last = Last()\nsys.exit(0)",
        "last = Last(); last.me = last",
        "import json\njson.last = Last(sys, ai)",
        "threading.last = [Last()]",
        "last = Last()\ndef f(): return last\nf.me = f",
        "weakref.finalize(ai, Last().__class__)",
        "local = threading.local()\nlocal.last = Last()",
    ],
)
def test_finalizers(tmp_path: Path, program: str) -> None:
    """At whatever point of the interpreter's end an object is let go: all that it does is there."""
    _, names = ending(program, tmp_path)
    times = 2 if "finalize" in program else 1
    assert names == {name: times * n for name, n in LAST.items()}


def test_exit_handlers(tmp_path: Path) -> None:
    _, names = ending(
        """
        atexit.register(ai.pipeline.test(lambda: log.finalize()))
        atexit.register(item)
        atexit.register(ai.pipeline.train(lambda: item()))
        one = items(5)
        atexit.register(lambda: next(one))
        item()
        """,
        tmp_path,
    )
    assert names == {"item": 4, "train": 1, "fetch": 1} or names == {"item": 4, "train": 1}


def test_generators_that_are_never_ended(tmp_path: Path) -> None:
    """Those of the main module are closed when the interpreter ends it."""
    _, names = ending(
        """
        one, two = items(5), items(5)
        next(one), next(two)

        @types.coroutine
        def pause():
            yield

        async def slow():
            with ai.pipeline.train:
                await pause()

        coroutine = ai.compute.forward(slow)()
        coroutine.send(None)
        """,
        tmp_path,
    )
    assert names == {"item": 4, "fetch": 2, "forward": 1, "train": 1}


@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("sys.exit(3)", 3),
        ("raise ValueError", 1),
        ("raise KeyboardInterrupt", -signal.SIGINT),
        ("os.kill(os.getpid(), signal.SIGINT); time.sleep(9)", -signal.SIGINT),
        ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(9)", -signal.SIGTERM),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("os.abort()", -signal.SIGABRT),
        ("os._exit(4)", 4),
    ],
)
def test_ends_inside_a_region(tmp_path: Path, end: str, status: int) -> None:
    program = f"""
        import signal

        @ai.compute.forward
        def last():
            item()
            with ai.pipeline.train:
                item()
                {end}

        last()
    """
    env = {"PYTHONMALLOC": "debug"}
    run_python(HEAD + textwrap.dedent(program), cwd=tmp_path, env=env, expect=status, stderr=None)
    if status not in (3, 1, -signal.SIGINT):
        # Nobody was there to finish: whoever comes next does.
        from support.faults import recover

        recover(tmp_path)
    trace = traces.read_one(tmp_path, open_parents=True)
    names = Counter(event["name"] for event in trace.recorded)
    assert names["item"] == 2
    # Unwound by an exception, the regions have an end.
    unwound = status in (3, 1, -signal.SIGINT)
    assert (names["train"], names["forward"]) == ((1, 1) if unwound else (0, 0))


THREADS = {
    "with": "with ai.pipeline.train:\n    item()\n    ready.release()\n    time.sleep(600)",
    "call": "ai.compute.forward(lambda: (item(), ready.release(), time.sleep(600)))()",
    "loop": "for _ in ai.comm.send.iter(range(9)):\n    item(); ready.release(); time.sleep(600)",
    "generator": "one = items(9)\nnext(one)\nready.release()\ntime.sleep(600)",
    "start": "ai.pipeline.epoch.start()\nitem()\nready.release()\ntime.sleep(600)",
    "lock": "with ai.pipeline.train:\n    item()\n    ready.release()\n    lock.acquire()",
    "coroutine": "async def f():\n    item(); ready.release(); await asyncio.sleep(600)\n"
    "asyncio.run(ai.compute.forward(f)())",
}


@pytest.mark.parametrize("how", THREADS)
def test_daemon_threads_that_are_cut_off(tmp_path: Path, how: str) -> None:
    program = (
        "ready = threading.Semaphore(0)\nlock = threading.Lock()\nlock.acquire()\n"
        + "def work():\n"
        + textwrap.indent(THREADS[how], "    ")
        + "\nfor _ in range(4):\n    threading.Thread(target=work, daemon=True).start()\n"
        + "for _ in range(4):\n    ready.acquire()\n"
    )
    _, names = ending(program, tmp_path)
    assert names["item"] >= 4
    assert set(names) <= {"item"}


@pytest.mark.parametrize("round_", range(2))
def test_daemon_threads_that_record_to_the_last(tmp_path: Path, round_: int) -> None:
    """At full rate while the interpreter goes away: each is stopped in the middle of something."""
    run_python(
        HEAD
        + textwrap.dedent(
            """
            @ai.compute.forward
            async def slow():
                item()

            def work():
                while True:
                    with ai.pipeline.train, ai.pipeline.epoch(args={"x": 1}):
                        for _ in ai.comm.send.iter([1, 2]):
                            item()
                        list(items(2))
                        ai.update(step=1)
                    try:
                        slow().send(None)
                    except StopIteration:
                        pass
                    sum(range(100))

            for _ in range(8):
                threading.Thread(target=work, daemon=True).start()
            time.sleep(0.05)
            """
        ),
        cwd=tmp_path,
        env={"PYTHONMALLOC": "debug", "PYTHONFAULTHANDLER": "1"},
    )
    # Hundreds of thousands of lines: all are whole, and some are looked at.
    (path,) = traces.files(tmp_path)
    assert traces.spools(tmp_path) == []
    members = traces.split_members(path.read_bytes(), path)
    lines = b"".join(member.text for member in members).splitlines()[1:]
    assert all(line.startswith(b'{"id":') and line.endswith(b"}}") for line in lines)
    names = Counter(traces.parse_line(line)["name"] for line in lines[::50])
    assert names["item"] > 0
    assert traces.parse_line(lines[-1])["name"] == "end"


def test_threads_that_outlive_the_main_module(tmp_path: Path) -> None:
    _, names = ending(
        """
        def work():
            threading.main_thread().join()
            with ai.pipeline.train:
                item()

        for _ in range(4):
            threading.Thread(target=work).start()
        """,
        tmp_path,
    )
    assert names == {"train": 4, "item": 4}


def test_after_finalize(tmp_path: Path) -> None:
    """What is used after the end does nothing; what was open then is not recorded."""
    trace, names = ending(
        """
        one, loop = items(3), ai.comm.send.iter(range(3))
        next(one), next(loop)
        ai.pipeline.epoch.start()

        @ai.compute.forward
        async def slow():
            await asyncio.sleep(0)

        coroutine = slow()
        coroutine.send(None)
        item()
        with ai.pipeline.train:
            log.finalize()
            item()
        ai.pipeline.epoch.stop()
        assert list(one) == [1, 2]
        assert list(loop) == [1, 2]
        coroutine.close()
        list(items(2))
        asyncio.run(slow())
        log.finalize()
        ai.update(step=1)
        last = Last()
        """,
        tmp_path,
    )
    assert names == {"item": 2}
    assert trace.one("end")


def test_a_second_trace_in_one_process(tmp_path: Path) -> None:
    """Nothing of the first one gets into the second."""
    run_python(
        HEAD
        + textwrap.dedent(
            """
            one, loop = items(3), ai.comm.send.iter(range(3))
            next(one), next(loop)
            ai.pipeline.epoch.start()
            with ai.pipeline.train:
                log.finalize()
                dftracer.initialize_log("second.pfw")
            next(one), next(loop)
            ai.pipeline.epoch.stop()
            with ai.pipeline.test:
                item()
            """
        ),
        cwd=tmp_path,
    )
    first, second = (
        traces.read(tmp_path / f"{name}.pfw.gz", open_parents=True) for name in ("t", "second")
    )
    assert Counter(event["name"] for event in first.recorded) == {"item": 1}
    names = Counter(event["name"] for event in second.recorded)
    # The generator's span is the first trace's; what it does now is not.
    assert names["test"] == 1
    assert names["train"] == names["epoch"] == names["fetch"] == 0
    assert 2 <= names["item"] <= 3
    assert names["send.block"] <= 1


def test_imported_again(tmp_path: Path) -> None:
    """Reloading, and importing afresh, as notebooks and test runners do."""
    _, names = ending(
        """
        import importlib

        old = ai
        for name in ("dftracer.python.ai", "dftracer.python.function", "dftracer.python"):
            importlib.reload(sys.modules[name])
        from dftracer.python import ai
        with ai.compute, old.compute:
            pass
        for name in [name for name in sys.modules if name.split(".")[0] == "dftracer"]:
            del sys.modules[name]
        gc.collect()
        from dftracer.python import ai
        with ai.compute, old.compute:
            item()
        assert isinstance(ai.compute, type(ai).__mro__[-2])
        """,
        tmp_path,
    )
    assert names == {"compute": 4, "item": 1}


@pytest.mark.parametrize("first", [True, False], ids=["main first", "sub first"])
def test_interpreters_in_one_process(tmp_path: Path, first: bool) -> None:
    """Only the main one is recorded, whichever imports the package first. The others say so."""
    pytest.importorskip("_xxsubinterpreters")
    code = (
        "from dftracer.python import ai, dftracer\n"
        "@ai.data.item\n"
        "def item(): ...\n"
        "@ai.dataloader.fetch\n"
        "def items():\n"
        "    yield item()\n"
        "def work():\n"
        "    ai.update(step=3)\n"
        "    with ai.compute.forward(args={'x': 1}):\n"
        "        list(items())\n"
    )
    begin = "dftracer.initialize_log('t.pfw')\nwork()\n"
    (tmp_path / "program.py").write_text(
        "import _xxsubinterpreters as interpreters, gc\n"
        + (f"exec({code + begin!r})\n" if first else "")
        + "for _ in range(3):\n"
        "    one = interpreters.create()\n"
        f"    interpreters.run_string(one, {code + begin!r})\n"
        "    interpreters.destroy(one)\n"
        "    gc.collect()\n"
        f"exec({code + begin!r})\n"
    )
    env = {"PYTHONMALLOC": "debug", "PYTHONFAULTHANDLER": "1"}
    lines = re.compile(r"(dftracer: nothing will be recorded: [^\n]*interpreter[^\n]*\n){3}")
    run_python(tmp_path / "program.py", cwd=tmp_path, env=env, stderr=lines)
    trace = traces.read_one(tmp_path)
    names = Counter(event["name"] for event in trace.recorded)
    times = 2 if first else 1
    assert names == {"item": times, "fetch": times, "forward": times}

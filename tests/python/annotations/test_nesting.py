"""What is inside what: `with`, start() and stop(), loops, recursion, threads. The small checks are
in programs/nesting.py."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import traces
from support.python_face import trace_of
from themes import names_of

if TYPE_CHECKING:
    from conftest import Themes
    from support.perfetto_importer import Importer

CHECKS = names_of("nesting")


def shown(perfetto: Importer, trace: traces.Trace) -> None:
    """All of it, in the importer behind ui.perfetto.dev."""
    assert traces.crossings(trace.events) == []
    loaded = perfetto.load(trace.path)
    assert (loaded.errors, loaded.problems) == ([], {})
    assert loaded.slices == len(trace.events)


@pytest.mark.parametrize("name", CHECKS)
def test_recorded(themes: Themes, name: str) -> None:
    themes("nesting").verify(name)


def test_perfetto_shows_all(themes: Themes, perfetto: Importer) -> None:
    done = themes("nesting")
    assert done.trace_problem == ""
    assert done.trace is not None
    shown(perfetto, done.trace)


def test_switched_off_the_same_holds(themes: Themes) -> None:
    off = themes("nesting", enable=False)
    off.verify(*CHECKS)
    assert off.stderr == ""


def test_in_development_mode(themes: Themes) -> None:
    done = themes("nesting", "-X", "dev")
    done.verify(*CHECKS)
    assert done.stderr == ""


def test_recursion_of_2000_levels(tmp_path: Path, perfetto: Importer) -> None:
    trace = trace_of(
        """
        import sys
        from dftracer.python import ai, dft_fn, dftracer

        dftracer.initialize_log("t.pfw")
        sys.setrecursionlimit(20_000)
        node = ai.pipeline.train(args={"k": 1})
        log = dft_fn("mine")

        @ai.compute.forward
        def calls(n):
            return 1 + calls(n - 1) if n else 0

        @log.log
        def logged(n):
            return 1 + logged(n - 1) if n else 0

        def regions(n):
            with node:
                return 1 + regions(n - 1) if n else 0

        @ai.compute.backward
        def items(n):
            yield n
            if n:
                yield from items(n - 1)

        assert calls(1999) == logged(1999) == regions(1999) == 1999
        assert sum(1 for _ in items(499)) == 500
        with ai.data.item:
            pass
        """,
        tmp_path,
    )
    names = Counter(event["name"] for event in trace.recorded)
    assert names == {"forward": 2000, "logged": 2000, "train": 2000, "backward": 500, "item": 1}
    for name in ("forward", "logged", "train"):
        found = sorted(trace.named(name), key=lambda event: event["args"]["level"])
        assert [event["args"]["level"] for event in found] == list(range(1, 2001))
        above = [-1, *(event["id"] for event in found[:-1])]
        assert [event["args"]["p_idx"] for event in found] == above
    # Afterwards the stack is empty again.
    assert trace.one("item")["args"]["level"] == 1
    shown(perfetto, trace)


def test_recursion_that_runs_out_of_stack(tmp_path: Path) -> None:
    """Each call that was begun is there, and what follows is not inside of any."""
    trace = trace_of(
        """
        from dftracer.python import ai, dftracer

        dftracer.initialize_log("t.pfw")
        calls = 0

        @ai.compute.forward
        def down():
            global calls
            calls += 1
            down()

        for _ in range(3):
            try:
                down()
            except RecursionError:
                pass
        with ai.data.item(args={"calls": calls}):
            pass
        """,
        tmp_path,
    )
    item = trace.one("item")
    assert item["args"]["level"] == 1
    # The last call of each was refused before its body began.
    assert item["args"]["calls"] <= len(trace.named("forward")) <= item["args"]["calls"] + 3


def test_threads_nest_by_themselves(tmp_path: Path, perfetto: Importer) -> None:
    trace = trace_of(
        """
        import threading
        from dftracer.python import ai, dftracer

        dftracer.initialize_log("t.pfw")
        ready = threading.Barrier(8)

        @ai.compute.forward
        def inner(n):
            return [k for k in ai.dataloader.fetch.iter(range(2))]

        def work():
            ready.wait()
            for n in range(100):
                with ai.pipeline.train:
                    inner(n)
                    ai.pipeline.test.start()
                    inner(n)
                    ai.pipeline.test.stop()

        threads = [threading.Thread(target=work) for _ in range(8)]
        with ai.pipeline.epoch:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        """,
        tmp_path,
    )
    assert Counter(event["name"] for event in trace.recorded) == {
        "epoch": 1,
        "train": 800,
        "test": 800,
        "forward": 1600,
        "fetch.iter": 3200,
        "fetch.block": 3200,
    }
    ids = trace.by_id()
    levels = {"epoch": {1}, "train": {1}, "test": {2}, "forward": {2, 3}, "fetch.iter": {3, 4}}
    for event in trace.recorded:
        if event["name"] in levels:
            assert event["args"]["level"] in levels[event["name"]]
        if event["args"]["p_idx"] != -1:
            assert ids[event["args"]["p_idx"]]["tid"] == event["tid"]
    assert len({event["tid"] for event in trace.named("train")}) == 8
    shown(perfetto, trace)


def test_signal_handlers(tmp_path: Path, perfetto: Importer) -> None:
    """Handlers that record run between any two instructions of Python code that records."""
    trace = trace_of(
        """
        import signal
        from dftracer.python import ai, dftracer

        dftracer.initialize_log("t.pfw")
        rings = rounds = 0

        @ai.data.item
        def ring(*_):
            global rings
            rings += 1
            with ai.pipeline.test(args={"x": 1}):
                list(items())

        @ai.dataloader.fetch
        def items():
            yield from range(2)

        @ai.compute.forward
        def work():
            with ai.pipeline.train:
                for _ in ai.comm.send.iter(items()):
                    ai.update(step=rounds)

        signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.0005)
        while rings < 100:
            rounds += 1
            work()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_IGN)  # one that came before is dealt with first
        dftracer.get_instance().log_metadata_event("told", f"{rings} {rounds}")
        """,
        tmp_path,
    )
    rings, rounds = map(int, trace.meta("CM", "told")[0].split())
    names = Counter(event["name"] for event in trace.recorded)
    assert names == {
        "item": rings,
        "test": rings,
        "fetch": rings + rounds,
        "forward": rounds,
        "train": rounds,
        "send.iter": 2 * rounds,
        "send.block": 2 * rounds,
    }
    shown(perfetto, trace)


def test_a_loop_that_is_left_has_as_many_items_as_it_used(tmp_path: Path) -> None:
    """As DLIO reads: the loop is in a generator, and its consumer stops after some steps.
    Its tests count the events called fetch.iter."""
    trace = trace_of(
        """
        from dftracer.python import ai, dft_fn, dftracer

        dftracer.initialize_log("t.pfw")
        loader = dft_fn("data_loader")

        @loader.log(name="next")
        def batches():
            for batch in ai.dataloader.fetch.iter(range(9)):
                yield batch

        for epoch in ai.pipeline.epoch.iter(range(2)):
            for step, batch in enumerate(batches()):
                if step == 3:
                    break
                with ai.compute:
                    pass
        """,
        tmp_path,
    )
    assert Counter(event["name"] for event in trace.recorded) == {
        "epoch.iter": 2,
        "epoch.block": 2,
        "next": 2,
        "compute": 6,
        "fetch.iter": 6,
        "fetch.block": 6,
        "fetch.iter.last": 2,
        "fetch.block.last": 2,
    }


RANDOM = """
import random, sys
from dftracer.python import ai, dft_fn, dftracer

dftracer.initialize_log("t.pfw")
chance = random.Random(int(sys.argv[1]))
nodes = [ai.compute.forward, ai.compute.backward, ai.pipeline.train, ai.data.item]
nodes.append(dft_fn("mine", "own"))
counts = dict(entered=0, started=0, items=0, generators=0)
entered, started, loops, generators = [], [], [], []


@ai.comm.send
def items():
    for n in range(chance.randrange(1, 6)):
        yield n
        if chance.random() < 0.3:
            entered.append(chance.choice(nodes))
            entered[-1].__enter__()
            counts["entered"] += 1


def enter():
    entered.append(chance.choice(nodes))
    entered[-1].__enter__()
    counts["entered"] += 1


def leave():
    if entered:
        # Mostly the innermost, sometimes any: what an exception in a stack of them does.
        at = -1 if chance.random() < 0.8 else chance.randrange(len(entered))
        entered.pop(at).__exit__(None, None, None)


def start():
    started.append(chance.choice(nodes))
    started[-1].start()
    counts["started"] += 1


def stop():
    if started:
        started.pop(chance.randrange(len(started))).stop()


def loop():
    loops.append(chance.choice(nodes[:4]).iter(range(chance.randrange(1, 6))))


def advance():
    if loops:
        at = chance.randrange(len(loops))
        if next(loops[at], None) is None:
            loops.pop(at)
        else:
            counts["items"] += 1


def generate():
    generators.append(items())


def resume():
    if generators:
        at = chance.randrange(len(generators))
        fresh = generators[at].gi_frame is not None and generators[at].gi_frame.f_lasti < 5
        counts["generators"] += fresh
        if next(generators[at], None) is None or chance.random() < 0.1:
            generators.pop(at).close()


ways = [enter, leave, start, stop, loop, advance, advance, generate, resume, resume]
for _ in range(700):  # more would be forgotten: a line remembers some hundred spans
    chance.choice(ways)()
while entered:
    leave()
while started:
    stop()
loops.clear()
for one in generators:
    one.close()
print(*counts.values())
"""


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 4, 5, 19, 20])
def test_any_order(tmp_path: Path, perfetto: Importer, seed: int) -> None:
    """Whatever is begun and ended in whatever order is there, and nothing hides anything else."""
    from support.python_face import run_python

    done = run_python(RANDOM, str(seed), cwd=tmp_path)
    entered, started, items, generators = map(int, done.stdout.split())
    trace = traces.read_one(tmp_path)
    # A loop that is dropped has a last item.
    shown_as = [re.sub(r"\.last$", "", event["name"]) for event in trace.recorded]
    names = Counter(name.rpartition(".")[2] for name in shown_as)
    assert names["iter"] == names["block"] == items
    assert names["send"] == generators
    assert sum(names.values()) == entered + started + generators + 2 * items
    shown(perfetto, trace)

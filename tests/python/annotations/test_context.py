"""Arguments and switches: what reaches whom in the tree, and when."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from context_programs import HEAD, events_of
from support.python_face import run_python

# ---- One thread ----------------------------------------------------------------------------------


def test_update_reaches_the_subtree_and_the_latest_wins(tmp_path: Path) -> None:
    found = events_of(
        """
        mark()
        assert ai.update(epoch=1, step=1) is ai
        mark(); mark(item)
        ai.compute.update(step=2)
        mark(); mark(item); mark(ai.compute)
        forward.update(step=3, args={"x": "own"})
        mark(); mark(backward)
        ai.update(step=4)
        mark(); mark(backward); mark(item)
        ai.update(epoch=None, step=None, args=None)
        ai.update()
        ai.update(args={})
        mark()
        """,
        tmp_path,
    )
    assert found == [
        ("forward", {}),
        ("forward", {"epoch": 1, "step": 1}),
        ("item", {"epoch": 1, "step": 1}),
        ("forward", {"epoch": 1, "step": 2}),
        ("item", {"epoch": 1, "step": 1}),
        ("compute", {"epoch": 1, "step": 2}),
        ("forward", {"epoch": 1, "step": 3, "x": "own"}),
        ("backward", {"epoch": 1, "step": 2}),
        ("forward", {"epoch": 1, "step": 4, "x": "own"}),
        ("backward", {"epoch": 1, "step": 4}),
        ("item", {"epoch": 1, "step": 4}),
        ("forward", {"epoch": 1, "step": 4, "x": "own"}),
    ]


def test_arguments_are_those_of_the_end(tmp_path: Path) -> None:
    found = events_of(
        """
        @forward
        def call():
            ai.update(step=1)

        @forward
        def items():
            yield
            ai.update(step=2)

        @forward
        async def slow():
            await asyncio.sleep(0)
            ai.update(step=3)

        call()
        list(items())
        asyncio.run(slow())
        with item:
            ai.update(step=4)
        item.start()
        ai.update(step=5)
        item.stop()
        for n in ai.dataloader.fetch.iter([6, 7]):
            ai.update(step=n)
        """,
        tmp_path,
    )
    assert found == [
        ("forward", {"step": 1}),
        ("forward", {"step": 2, "count": 1}),
        # The task is a context of its own, as long as the main thread has spoken first.
        ("forward", {"step": 3}),
        ("item", {"step": 4}),
        ("item", {"step": 5}),
        ("fetch.iter", {"step": 6, "count": 1}),
        ("fetch.block", {"step": 6, "count": 1}),
        ("fetch.iter", {"step": 7, "count": 2}),
        ("fetch.block", {"step": 7, "count": 2}),
    ]


def test_derived_nodes_take_part(tmp_path: Path) -> None:
    found = events_of(
        """
        early = item.derive("early")
        assert item.derive("early") is early
        ai.update(epoch=1)
        late = item.derive("late")
        mark(early); mark(late)
        early.update(step=2)
        mark(early); mark(late); mark(item)
        deep = early.derive("deep")
        item.update(step=3)
        mark(deep); mark(early)
        deep.update(step=4)
        mark(deep); mark(early); mark(item.init)
        """,
        tmp_path,
    )
    assert found == [
        ("item.early", {"epoch": 1}),
        ("item.late", {"epoch": 1}),
        ("item.early", {"epoch": 1, "step": 2}),
        ("item.late", {"epoch": 1}),
        ("item", {"epoch": 1}),
        ("item.early.deep", {"epoch": 1, "step": 3}),
        ("item.early", {"epoch": 1, "step": 3}),
        ("item.early.deep", {"epoch": 1, "step": 4}),
        ("item.early", {"epoch": 1, "step": 3}),
        ("item.init", {"epoch": 1, "step": 3}),
    ]


def test_arguments_in_parentheses_stay_there(tmp_path: Path) -> None:
    found = events_of(
        """
        one = forward(args={"x": 1}, epoch=9)

        @one
        def call(): ...

        @forward
        def plain(): ...

        call(); plain()
        ai.update(epoch=1, step=1, args={"x": 5})
        call(); plain()
        with forward(step=7):
            plain()
        with one:
            pass
        one.update(step=8)
        call(); plain(); mark(backward)
        """,
        tmp_path,
    )
    assert found == [
        ("forward", {"x": 1, "epoch": 9}),
        ("forward", {}),
        ("forward", {"x": 1, "epoch": 9, "step": 1}),
        ("forward", {"epoch": 1, "step": 1, "x": 5}),
        ("forward", {"epoch": 1, "step": 1, "x": 5}),
        ("forward", {"step": 7, "epoch": 1, "x": 5}),
        ("forward", {"x": 1, "epoch": 9, "step": 1}),
        ("forward", {"x": 1, "epoch": 9, "step": 8}),
        ("forward", {"epoch": 1, "step": 1, "x": 5}),
        ("backward", {"epoch": 1, "step": 1, "x": 5}),
    ]


def test_trees_of_ones_own(tmp_path: Path) -> None:
    found = events_of(
        """
        mine = DFTracerAI(cat="c", name="n", epoch=1, step=2, image_idx=3, image_size=4.5)
        log = dft_fn("c", "log", step=6)
        off = DFTracerAI(cat="c", name="off", enable=False)
        child = mine.derive("child")
        ai.update(step=100)
        mark(mine); mark(child); mark(off)
        with log:
            log.update(step=7, args={"y": 1})
        with log:
            pass
        child.update(step=8)
        mark(mine); mark(child)
        off.enable()
        mark(off); mark(DFTracerAI(cat="only"))
        """,
        tmp_path,
    )
    all_four = {"epoch": 1, "step": 2, "image_idx": 3, "image_size": 4.5}
    assert found == [
        ("n", all_four),
        ("n.child", all_four),
        ("log", {"step": 7, "y": 1}),
        ("log", {"step": 7, "y": 1}),
        ("n", all_four),
        ("n.child", {**all_four, "step": 8}),
        ("off", {}),
        ("only", {}),
    ]


# ---- Switches ------------------------------------------------------------------------------------


def test_switches(tmp_path: Path) -> None:
    found = events_of(
        """
        @forward
        def bare(): ...

        forward.disable()

        @forward
        def while_off(): ...

        @forward()
        def copied_off(): ...

        @forward(enable=True)
        def forced_on(): ...

        forward.enable()

        @forward()
        def copied_on(): ...

        @forward(enable=False)
        def forced_off(): ...

        functions = (bare, while_off, copied_off, forced_on, copied_on, forced_off)
        names = ["bare", "while_off", "copied_off", "forced_on", "copied_on", "forced_off"]
        for word, switch in [
            ("begin", ai.update),
            ("forward off", forward.disable),
            ("compute on", ai.compute.enable),
            ("compute off", ai.compute.disable),
            ("forward on", forward.enable),
            ("ai off", ai.disable),
            ("ai on", ai.enable),
        ]:
            switch()
            for name, function in zip(names, functions):
                with dft_fn("test", f"{word}: {name}"):
                    function()
            with dft_fn("test", f"{word}: with"):
                mark(backward)
                mark(backward, a=1)
                with backward(enable=True):
                    pass
                with backward(enable=False):
                    pass
        """,
        tmp_path,
        stderr=None,
    )
    recorded: dict[str, set[str]] = {}
    inside: list[str] = []
    for name, _ in found:
        if ": " not in name:
            inside.append(name)
            continue
        word, what = name.split(": ")
        if what == "with":
            recorded.setdefault(word, set()).add(f"with {len(inside)}")
        elif inside:
            recorded.setdefault(word, set()).add(what)
        inside = []
    always = {"forced_on", "copied_on"}
    assert recorded == {
        "begin": {"bare", "while_off", "with 3", *always},
        "forward off": {"with 3", *always},
        "compute on": {"bare", "while_off", "with 3", *always},
        "compute off": {"with 1", *always},
        "forward on": {"bare", "while_off", "with 1", *always},
        "ai off": {"with 1", *always},
        "ai on": {"bare", "while_off", "with 3", *always},
    }


def test_switched_while_open(tmp_path: Path) -> None:
    """What began is ended; what did not begin is not; and nothing takes the one for the other."""
    found = events_of(
        """
        @forward
        def items():
            yield 1
            forward.disable()
            yield 2

        with forward(args={"n": 1}), forward:
            forward.disable()
        with forward:
            forward.enable()
            with forward(args={"n": 2}):
                pass
        with backward:
            forward.disable()
            with forward, item:
                forward.enable()
        list(items())
        for _ in forward.iter([1, 2, 3]):
            forward.enable()
        forward.start()
        forward.disable()
        forward.stop()
        """,
        tmp_path,
    )
    assert found == [
        ("forward", {}),
        ("forward", {"n": 1}),
        ("forward", {"n": 2}),
        ("item", {}),
        ("backward", {}),
        ("forward", {"count": 2}),
        *[
            (f"forward.{part}", {"count": count})
            for count in (1, 2, 3)
            for part in ("iter", "block")
        ],
        ("forward", {}),
    ]


@pytest.mark.parametrize(
    ("program", "hint"),
    [
        ("@ai.checkpoint.init()\ndef f(): ...\nai.checkpoint.disable()\nai.disable()", True),
        ("@forward()\ndef f(): ...\n@backward()\ndef g(): ...\nai.disable()", True),
        ("@forward(args={'x': 1})\ndef f(): ...\nforward.disable()", True),
        ("@forward(enable=True)\ndef f(): ...\nai.disable()", False),
        ("@forward\ndef f(): ...\nai.disable()", False),
        ("ai.disable()\n@forward()\ndef f(): ...\nf()", False),
        ("@forward()\ndef f(): ...\nbackward.disable()\nai.enable()", False),
        ("with forward(args={'x': 1}):\n    pass\nai.disable()", False),
        ("@forward()\ndef f(): ...\ndel f\ngc.collect()\nai.disable()", False),
    ],
)
def test_hint_about_switches_that_reach_nothing(tmp_path: Path, program: str, hint: bool) -> None:
    pattern = re.compile(r"dftracer: [^\n]*disable\(\)[^\n]*\n")
    done = run_python(HEAD + program, cwd=tmp_path, stderr=None)
    assert bool(pattern.fullmatch(done.stderr)) == hint, done.stderr
    assert hint or done.stderr == ""


@pytest.mark.parametrize("calls", [0, 1])
def test_no_file_remains_when_the_whole_tree_is_disabled(tmp_path: Path, calls: int) -> None:
    program = f"""
from dftracer.python import ai, dftracer
log = dftracer.initialize_log("t.pfw")
for n in range({calls}):
    with ai.compute.forward:
        pass
ai.disable()
with ai.compute.forward:
    pass
log.finalize()
"""
    run_python(program, cwd=tmp_path)
    assert len(list(tmp_path.glob("t.pfw*"))) == calls

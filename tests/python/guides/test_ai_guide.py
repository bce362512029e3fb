"""The examples of the ai vocabulary, run as a user runs them: every event that they promise, and
none besides."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.python_face import EXAMPLES, Shape, marks, run_python, shapes
from support.traces import Trace, crossings, files, read, read_one

if TYPE_CHECKING:
    from support.perfetto_importer import Importer

AI = EXAMPLES / "ai"
NEEDS_NUMPY = ("data_item", "dataloader_fetch")
HINT = re.compile(
    r"dftracer: disable\(\) does not affect [^\n]*@ai\.checkpoint\.init\(\.\.\.\)[^\n]*\n"
)

VOCABULARY = {
    "compute": "forward backward step",
    "data": "preprocess item",
    "dataloader": "fetch",
    "comm": (
        "send receive barrier bcast reduce all_reduce gather all_gather scatter reduce_scatter "
        "all_to_all"
    ),
    "device": "transfer",
    "checkpoint": "capture restart",
    "pipeline": "epoch train evaluate test",
}


def example(name: str, where: Path, **how: Any) -> Trace:
    if name in NEEDS_NUMPY:
        pytest.importorskip("numpy")
    if name == "parentheses":
        how.setdefault("stderr", HINT)
    run_python(AI / f"{name}.py", cwd=where, **how)
    return read_one(where)


def loop(name: str, cat: str, count: int, inside: str = "", **args: Any) -> list[Shape]:
    """The two events of an item."""
    return [(cat, f"{inside}{name}.{part}", {**args, "count": count}) for part in ("iter", "block")]


def training() -> list[Shape]:
    found: list[Shape] = []
    for epoch in range(2):
        for step in range(3):
            at = {"step": step, "epoch": epoch}
            found += [
                ("data", "train/item", at),
                ("device", "train/transfer", at),
                ("compute", "train/forward", at),
                ("compute", "train/backward", at),
                *loop("fetch", "dataloader", step + 1, "train/", **at),
            ]
        found += loop("epoch", "pipeline", epoch + 1, "train/", step=2, epoch=epoch)
    return [*found, ("pipeline", "train", {"step": 2, "epoch": 1})]


def fetching() -> list[Shape]:
    found: list[Shape] = []
    for count in (1, 2, 3):
        found += [("data", "fetch/item", {}), *loop("fetch", "dataloader", count)]
    return [*found, ("dataloader", "fetch", {"count": 3})]


def preprocessing() -> list[Shape]:
    found: list[Shape] = []
    for of_node, of_collate, of_augment in (
        ({}, {}, {}),
        ({}, {"epoch": 1}, {}),
        ({"epoch": 2},) * 3,
    ):
        found += [
            ("data", "preprocess", of_node),
            # The block and the function in it are the same node; both are there.
            ("data", "preprocess.collate/preprocess.collate", of_collate),
            ("data", "preprocess.collate", of_collate),
            ("data", "preprocess.augment", of_augment),
        ]
    return found


def updating() -> list[Shape]:
    found: list[Shape] = []
    for epoch in range(2):
        for step in range(2):
            found.append(("compute", "forward", {"epoch": epoch, "step": step}))
            found += loop("fetch", "dataloader", step + 1)
        found += loop("epoch", "pipeline", epoch + 1)
    given = {"model": "resnet50", "batch_size": 32, "lr": 0.1, "amp": 1}
    return [
        *found,
        ("compute", "forward", {"epoch": 1, "step": 1, **given}),
        ("compute", "backward", given),
    ]


def streaming() -> list[Shape]:
    step = ("compute", "step", {})
    found: list[Shape] = []
    for epoch in range(2):
        found += [step, step, *loop("epoch", "pipeline", epoch + 1)]
    for epoch in range(2):
        found += [("compute", "step", {"step": i, "epoch": epoch}) for i in range(2)]
    return found


PAIR = {"arg1": "value1", "arg2": "value2"}
CUSTOM = ("custom_category", "my_operation", {"epoch": 1, "step": 100})
EXPECTED: dict[str, list[Shape]] = {
    "basic_setup": [("compute", "compute", {})],
    "data_item": [("data", "item", {})],
    "dataloader_fetch": fetching(),
    "preprocess": preprocessing(),
    "compute": [
        ("device", "step/transfer", {}),
        ("compute", "step/forward", {}),
        ("compute", "step/backward", {}),
        ("compute", "step", {}),
    ],
    "communication": [
        ("comm", "backward/all_reduce", {}),
        ("compute", "backward", {}),
        *[("comm", name, {}) for name in VOCABULARY["comm"].split() if name != "all_reduce"],
    ],
    "checkpoint": [
        ("checkpoint", "checkpoint.init", {}),
        ("checkpoint", "restart", {}),
        ("data", "item.init", {}),
        ("checkpoint", "capture", {}),
    ],
    "training_loop": training(),
    "metadata_streaming": streaming(),
    "custom_tracer": [CUSTOM, CUSTOM, ("simulation", "simulation", {})],
    "switches": [
        *[
            (cat, name, {"round": 1})
            for cat, name in (("compute", "forward"), ("data", "item"), ("comm", "barrier"))
        ],
        *[(cat, name, {"round": 2}) for cat, name in (("data", "item"), ("comm", "barrier"))],
        ("data", "item", {"round": 4}),
        *[
            (cat, name, {"round": 5})
            for cat, name in (("compute", "forward"), ("data", "item"), ("comm", "barrier"))
        ],
    ],
    "styles": [
        ("compute", "forward", {}),
        ("compute", "forward", PAIR),
        ("compute", "forward", {}),
        ("compute", "forward", PAIR),
        ("compute", "forward", {"epoch": 1, "step": 2, "image_idx": 3, "image_size": 224.0}),
        ("compute", "forward", {}),
        *loop("fetch", "dataloader", 1),
        *loop("fetch", "dataloader", 2),
    ],
    "update": updating(),
    "force": [("compute", name, {}) for name in ("forward", "backward", "step")],
    "hook": [
        ("compute", "epoch/compute", {"step": 0}),
        ("compute", "epoch/compute", {"step": 1}),
        ("pipeline", "epoch", {"step": 1}),
    ],
    "init_events": [("checkpoint", "checkpoint.init", {})] * 3,
    "parentheses": [("checkpoint", "checkpoint.init", {})],
}


def test_no_example_is_forgotten() -> None:
    assert {path.stem for path in AI.glob("*.py")} == {*EXPECTED, "vocabulary"}


@pytest.mark.parametrize("name", EXPECTED)
def test_example(name: str, tmp_path: Path) -> None:
    trace = example(name, tmp_path)
    found = shapes(trace)
    if name == "dataloader_fetch":
        assert trace.one("fetch")["args"]["busy"] >= 0
    # Equal and of equal types: a count is a number, and 1 is not 1.0.
    assert list(map(repr, found)) == list(map(repr, EXPECTED[name]))
    assert not crossings(trace.recorded)


def test_vocabulary(tmp_path: Path) -> None:
    trace = example("vocabulary", tmp_path)
    expected = {(cat, cat) for cat in VOCABULARY}
    expected |= {(cat, name) for cat, names in VOCABULARY.items() for name in names.split()}
    found = [(event["cat"], event["name"]) for event in trace.recorded]
    assert sorted(found) == sorted(expected)
    assert not any(args for _, _, args in shapes(trace))


def test_marks_are_written_at_once_and_in_order(tmp_path: Path) -> None:
    trace = example("metadata_streaming", tmp_path)
    found = marks(trace)
    assert [key for key, _ in found] == ["epoch.start", "epoch.end"] * 2
    times = [int(value) for _, value in found]
    assert times == sorted(times)
    # The steps of an epoch lie between its marks, in time and in the file.
    steps = [event for event in trace.named("step") if event["args"].get("epoch") == 1]
    for event in steps:
        assert times[2] <= event["ts"] <= event["ts"] + event["dur"] <= times[3]
    order = [
        record["args"].get("name", record["name"])
        for record in trace.records
        if record["name"] in ("CM", "step") and record["args"].get("epoch", 1) == 1
    ]
    assert order[-4:] == ["epoch.start", "step", "step", "epoch.end"]


def test_basic_setup_is_found_under_its_name(tmp_path: Path) -> None:
    example("basic_setup", tmp_path)
    assert [path.name for path in files(tmp_path)] == ["ai_trace.pfw.gz"]
    plain = tmp_path / "plain"
    plain.mkdir()
    example("basic_setup", plain, env={"DFTRACER_TRACE_COMPRESSION": "0"})
    assert [path.name for path in files(plain)] == ["ai_trace.pfw"]


@pytest.mark.parametrize("name", ["data_item", "dataloader_fetch"])
def test_reads_of_a_sample_are_inside_its_event(name: str, tmp_path: Path) -> None:
    trace = example(name, tmp_path, env={"DFTRACER_DISABLE_IO": "0", "DFTRACER_SUMMARY": "0"})
    paths = {r["args"]["value"]: r["args"]["name"] for r in trace.named("FH")}
    items = {event["id"]: event for event in trace.recorded if event["name"] == "item"}
    calls = [event for event in trace.recorded if event["cat"] in ("POSIX", "STDIO")]
    below = os.path.join(os.path.realpath(tmp_path), "data")
    for event in calls:
        assert paths[event["args"]["fhash"]].startswith(below), event
    reads = [event for event in calls if event["name"] == "read"]
    writes = [event for event in calls if event["name"] == "write"]
    assert {event["args"]["p_idx"] for event in reads} == set(items)
    assert writes
    assert all(event["args"]["p_idx"] not in items for event in writes)


def test_the_loop_as_the_guide_prints_it(tmp_path: Path) -> None:
    """It unpacks an int. The program sees its own error, and the trace how far it came."""
    program = """\
        from dftracer.python import ai, dftracer
        df_logger = dftracer.initialize_log("training.pfw", "/tmp/data", -1)
        @ai.pipeline.train
        def train(num_epochs, num_batches):
            for epoch in ai.pipeline.epoch.iter(range(num_epochs)):
                for step, data in ai.dataloader.fetch.iter(range(num_batches)):
                    ai.update(step=step, epoch=epoch)
        train(num_epochs=5, num_batches=100)
        df_logger.finalize()
    """
    own_error = re.compile(
        r"Traceback.*, in train\n.*TypeError: cannot unpack non-iterable int object\n", re.DOTALL
    )
    done = run_python(program, cwd=tmp_path, expect=1, stderr=own_error)
    assert "_core" not in done.stderr
    assert shapes(read_one(tmp_path)) == [
        ("dataloader", "train/fetch.iter.last", {"count": 1}),
        ("dataloader", "train/fetch.block.last", {"count": 1}),
        ("pipeline", "train/epoch.iter.last", {"count": 1}),
        ("pipeline", "train/epoch.block.last", {"count": 1}),
        ("pipeline", "train", {}),
    ]


def test_disable_before_the_class_reaches_both_forms(tmp_path: Path) -> None:
    program = """\
        from dftracer.python import ai, dftracer
        dftracer.initialize_log("t.pfw")
        ai.checkpoint.disable()
        class A:
            @ai.checkpoint.init
            def __init__(self): pass
        class B:
            @ai.checkpoint.init()
            def __init__(self): pass
        A(); B()
        ai.checkpoint.enable()
        A(); B()
    """
    run_python(program, cwd=tmp_path)
    # Decorated while it was off, the bare form follows; the other was given its switch then.
    assert shapes(read_one(tmp_path)) == [("checkpoint", "checkpoint.init", {})]


def test_perfetto_shows_every_event(perfetto: Importer, tmp_path: Path) -> None:
    for name in ("dataloader_fetch", "preprocess", "training_loop", "hook", "vocabulary"):
        where = tmp_path / name
        where.mkdir()
        trace = read(example(name, where).path)
        loaded = perfetto.load(trace.path)
        assert loaded.clean, (name, loaded)
        assert loaded.slices == len([event for event in trace.events if event["ph"] == "X"])

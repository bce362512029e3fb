"""The examples of dft_fn and of the logger, run as a user runs them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from support.python_face import EXAMPLES, Shape, marks, run_python, shapes
from support.traces import Trace, crossings, read, read_one

PYTHON = EXAMPLES / "python"

READ = [
    ("DataLoader", "DataLoader.__getitem__/DataLoader.read_data", {}),
    ("DataLoader", "DataLoader.__getitem__", {}),
    ("DataLoader", "DataLoader.preprocess", {}),
]
EXPECTED: dict[str, list[Shape]] = {
    "arguments": [
        (
            "compute",
            "forward",
            {
                "whole": 3,
                "real": 0.25,
                "flag": 1,
                "text": "déjà vu",
                "raw": "bytes",
                "nothing": None,
                "not_a_number": None,
                "large": str(2**80),
                "shape": [3, 224, 224],
                "optimizer": {"name": "sgd", "lr": 0.1},
                "path": "/data/train",
                "model": "Model",
            },
        )
    ],
    "by_hand": [
        ("math", "sum", {"n": 1000, "total": 499500, "by": "hand"}),
        ("math", "outer/inner", {}),
        ("math", "outer", {}),
    ],
    "context": [
        ("pipeline", "evaluate", {"step": 1}),
        ("dataloader", "fetch", {"step": 2}),
        ("compute", "step", {"step": 1}),
    ],
    "functions": [
        ("reader", "Shard.__init__", {"epoch": 3}),
        ("reader", "Shard.read", {"image_idx": 0, "epoch": 3, "step": 0}),
        ("reader", "tidy", {}),
        ("reader", "parse", {}),
        ("reader", "Shard.read", {"image_idx": 1, "epoch": 3, "step": 1}),
        ("reader", "tidy", {}),
        ("reader", "parse", {}),
        ("reader", "Shard.checksum", {}),
        ("reader", "warm up", {"step": 1, "source": "cache", "bytes": 4096}),
        ("reader", "shards.iter", {"shard": 1}),
        ("reader", "shards.yield", {"shard": 1}),
        ("reader", "shards.iter", {"shard": 2}),
        ("reader", "shards.yield", {"shard": 2}),
        ("reader", "phase", {}),
    ],
    "image_folder": READ * 3,
    "suspended": [
        ("dataloader", "fetch", {"count": 3}),
        ("net", "download", {"step": 1}),
        ("net", "download", {"step": 2}),
    ],
}
# Where the trace is, if not in the working directory.
WHERE = {"by_hand": "traces", "image_folder": "traces"}


def example(name: str, where: Path, **how: Any) -> Trace:
    run_python(PYTHON / f"{name}.py", cwd=where, **how)
    return read_one(where / WHERE.get(name, "."))


def test_no_example_is_forgotten() -> None:
    assert {path.stem for path in PYTHON.glob("*.py")} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_example(name: str, tmp_path: Path) -> None:
    trace = example(name, tmp_path)
    # Threads write blocks of their own, in any order.
    order = (lambda shape: (shape[1], str(shape[2]))) if name in ("context", "suspended") else None
    found, expected = shapes(trace), EXPECTED[name]
    if order is not None:
        found, expected = sorted(found, key=order), sorted(expected, key=order)
    assert [(cat, path) for cat, path, _ in found] == [(cat, path) for cat, path, _ in expected]
    for (_, _, had), (_, _, wanted) in zip(found, expected):
        # Equal, and of equal types.
        assert repr(sorted(had.items())) == repr(sorted(wanted.items()))
    assert not crossings(trace.recorded)


def test_marks_of_the_examples(tmp_path: Path) -> None:
    for name, mark in (("functions", ("format", "tfrecord")), ("by_hand", ("dataset", "imagenet"))):
        where = tmp_path / name
        where.mkdir()
        assert marks(example(name, where)) == [mark]


def test_the_rank_names_the_process(tmp_path: Path) -> None:
    trace = example("image_folder", tmp_path)
    assert trace.path.name == "trace-0-of-1.pfw.gz"
    assert trace.meta("PR", "rank") == ["0"]
    assert [r["args"]["name"] for r in trace.named("process_name")] == ["rank 0"]
    start = trace.one("start")
    assert {record["pid"] for record in trace.records} == {start["pid"]}
    assert start["pid"] > 1  # the real one, not the rank


def test_the_rank_and_the_directory_of_events_by_hand(tmp_path: Path) -> None:
    trace = example("by_hand", tmp_path)
    assert trace.meta("PR", "rank") == ["3"]
    inner, outer = trace.one("inner"), trace.one("outer")
    assert inner["args"]["p_idx"] == outer["id"]


def test_reads_are_inside_the_methods_that_make_them(tmp_path: Path) -> None:
    trace = example(
        "image_folder", tmp_path, env={"DFTRACER_DISABLE_IO": "0", "DFTRACER_SUMMARY": "0"}
    )
    ids = trace.by_id()
    paths = {r["args"]["value"]: r["args"]["name"] for r in trace.named("FH")}
    read_calls = [
        event for event in trace.recorded if event["cat"] == "POSIX" and event["name"] == "read"
    ]
    data = os.path.join(os.path.realpath(tmp_path), "data")
    seen = set()
    for event in read_calls:
        assert ids[event["args"]["p_idx"]]["name"] == "DataLoader.read_data"
        seen.add(paths[event["args"]["fhash"]])
    assert seen == {f"{data}/{i}.bin" for i in range(3)}


def test_coroutines_cover_the_time_that_they_wait(tmp_path: Path) -> None:
    trace = example("suspended", tmp_path)
    for event in trace.named("download"):
        assert event["dur"] >= 9_900  # it slept for 10 ms, by another clock
    assert trace.one("fetch")["args"]["busy"] <= trace.one("fetch")["dur"]


def test_off_every_example_runs_and_leaves_nothing(tmp_path: Path) -> None:
    examples = sorted(path for part in ("ai", "python") for path in (EXAMPLES / part).glob("*.py"))
    assert len(examples) > 20
    program = """\
        import os, runpy, sys
        top = os.getcwd()
        for number, path in enumerate(list(sys.argv[1:])):
            os.makedirs(f"{top}/{number}")
            os.chdir(f"{top}/{number}")
            sys.argv = [path]
            runpy.run_path(path, run_name="__main__")
    """
    run_python(program, *examples, cwd=tmp_path, enable=False)
    left = [p for p in tmp_path.rglob("*") if p.is_file() and p.parent.name != "data"]
    assert left == [tmp_path / "program.py"]


def test_a_plain_file_of_the_example_opens_as_it_is(tmp_path: Path) -> None:
    run_python(PYTHON / "image_folder.py", cwd=tmp_path, env={"DFTRACER_TRACE_COMPRESSION": "0"})
    trace = read(tmp_path / "traces" / "trace-0-of-1.pfw")
    assert len(shapes(trace)) == 9

"""Batch lineage: every batch that the program got, its worker, its samples and its files."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from tests.pytorch.conftest import PROGRAMS, Program, accepted, run_in
from tests.support import traces
from tests.support.command import dftracer
from tests.support.perfetto_importer import Importer

ON = {"DFTRACER_TORCH": "1"}
SAMPLES = 20
FORKED = [
    "plain",
    "persistent",
    "any_order",
    "behind_a_slow_one",
    "stream",
    "stream_again",
    "single_samples",
    "samplers",
    "many",
    "no_workers",
    "at_once",
    "failing",
    "inside",
    "options",
    "pinned",
]
Key = tuple[int, int, int, int]  # process that iterates, loader, pass, batch


class Lineage:
    """What the traces of a run say about its batches."""

    def __init__(self, directory: Path, stdout: str) -> None:
        # The last fetch of a pass is no event, and shutting the workers down is inside it.
        self.found = traces.read_directory(directory, open_parents=True)
        lines = [json.loads(line) for line in stdout.splitlines() if line.startswith("{")]
        self.truth: dict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)
        for line in lines:
            self.truth[line["loader"], line["pass"]].append(line)
        (self.main,) = (t for t in self.found if t.named("start_workers"))
        # A fetch that ended a stream, in the middle of a batch, gave the program nothing.
        fetches = self.main.named("fetch")
        self.fetched = [event for event in fetches if "batch" in event["args"]]
        self.ended = len(fetches) - len(self.fetched)
        self.parent = fetches[0]["pid"]
        self.batches: dict[Key, traces.Record] = {}
        self.processes: dict[Key, traces.Trace] = {}
        for trace in self.found:
            for event in trace.named("batch"):
                args = event["args"]
                key = (args["parent"], args["loader"], args["pass"], args["batch"])
                assert key not in self.batches, "two batches of one number"
                self.batches[key] = event
                self.processes[key] = trace
        self.names = {
            record["args"]["value"]: record["args"]["name"]
            for trace in self.found
            for record in trace.metadata
            if record["name"] == "FH"
        }

    def fetches(self, where: tuple[int, int]) -> list[traces.Record]:
        found = [
            event
            for event in self.fetched
            if (event["args"]["loader"], event["args"]["pass"]) == where
        ]
        return sorted(found, key=lambda event: event["ts"])

    def key(self, event: traces.Record) -> Key:
        args = event["args"]
        return (self.parent, args["loader"], args["pass"], args["batch"])

    def items(self, key: Key) -> list[traces.Record]:
        """The items that were read for a batch, by their place in its span."""
        batch, trace = self.batches[key], self.processes[key]
        return [
            item
            for item in trace.named("item")
            if item["args"]["p_idx"] == batch["id"] and item["tid"] == batch["tid"]
        ]

    def files(self, key: Key, item: traces.Record) -> set[str]:
        """The files that were opened inside an item, by time and thread alone."""
        return {
            Path(self.names[event["args"]["fhash"]]).name
            for event in self.processes[key].recorded
            if event["cat"] == "POSIX"
            and "fhash" in event["args"]
            and event["tid"] == item["tid"]
            and item["ts"] <= event["ts"] <= item["ts"] + item["dur"]
            and event["args"]["level"] > item["args"]["level"]
        }


def end_of(event: traces.Record) -> int:
    return int(event["ts"] + event["dur"])


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    directory = tmp_path / "data"
    directory.mkdir()
    for index in range(SAMPLES):
        (directory / f"{index}.bin").write_text(str(index))
    return directory


def trace(tmp_path: Path, samples: Path, method: str, *cases: str) -> Lineage:
    env = {
        **ON,
        "DFTRACER_LOG_FILE": str(tmp_path / "traces" / "t"),
        "DFTRACER_DISABLE_IO": "0",
        "DFTRACER_DATA_DIR": str(samples),
    }
    done = run_in(tmp_path, PROGRAMS / "lineage.py", samples, method, *cases, env=env)
    return Lineage(tmp_path / "traces", done.stdout)


def check(lineage: Lineage) -> None:
    """Each batch that the program got is the one that the trace says, and it is there once."""
    used: Counter[Key] = Counter()
    seen = {(e["args"]["loader"], e["args"]["pass"]) for e in lineage.fetched}
    assert seen == set(lineage.truth)
    for where, truth in lineage.truth.items():
        fetches = lineage.fetches(where)
        assert len(fetches) == len(truth)
        for fetch, told in zip(fetches, truth):
            key = lineage.key(fetch)
            used[key] += 1
            batch = lineage.batches[key]
            if told.get("error"):
                continue
            worker = None if told["worker"] < 0 else told["worker"]
            assert fetch["args"].get("worker") == batch["args"].get("worker") == worker
            assert batch["pid"] == told["pid"]
            check_samples(lineage, key, told["samples"])
    assert set(used.values()) == {1}
    check_arrivals(lineage, used)


def check_samples(lineage: Lineage, key: Key, samples: list[int]) -> None:
    batch = lineage.batches[key]["args"]
    items = lineage.items(key)
    assert {item["args"]["batch"] for item in items} == {key[3]}
    if "index" not in batch:  # a stream
        assert batch["count"] == len(items) == len(samples)
        return
    assert batch["index"] == samples[:64]
    assert batch.get("count", len(samples)) == len(samples)
    if len(items) == 1 and "count" in items[0]["args"]:  # read at once
        assert items[0]["args"]["index"] == samples[:64]
        return
    assert [item["args"]["index"] for item in items] == samples
    for item, sample in zip(items, samples):
        assert f"{sample}.bin" in lineage.files(key, item)
    (collate,) = (
        event
        for event in lineage.processes[key].named("preprocess.collate")
        if event["args"]["p_idx"] == lineage.batches[key]["id"]
    )
    assert collate["args"]["batch"] == key[3]


def check_arrivals(lineage: Lineage, used: Counter[Key]) -> None:
    """A batch arrives after it was built and before it is handed over."""
    arrivals = {lineage.key(event): event for event in lineage.main.named("arrive")}
    assert len(arrivals) == len(lineage.main.named("arrive"))
    fetches = {lineage.key(event): event for event in lineage.fetched}
    built_elsewhere = {key for key in used if lineage.batches[key]["pid"] != lineage.parent}
    assert built_elsewhere <= set(arrivals)
    for key, arrival in arrivals.items():
        assert arrival["args"]["worker"] == lineage.batches[key]["args"]["worker"]
        assert end_of(lineage.batches[key]) <= arrival["ts"] + 1
        if key in fetches:
            assert arrival["ts"] <= end_of(fetches[key])


def check_flows(lineage: Lineage, perfetto: Importer, merged: Path) -> None:
    """Perfetto draws an arrow from each batch of a worker to its arrival, and to its fetch."""
    loaded = perfetto.load(merged)
    assert loaded.clean, loaded
    rows = perfetto.query(
        "select o.name as source, i.name as target, extract_arg(o.arg_set_id, 'args.batch') as b,"
        " extract_arg(i.arg_set_id, 'args.batch') as c from flow"
        " join slice o on o.id = slice_out join slice i on i.id = slice_in"
    )
    assert all(row["b"] == row["c"] for row in rows)
    drawn = Counter((row["source"], row["target"]) for row in rows)
    assert drawn["batch", "arrive"] == len(lineage.main.named("arrive"))
    assert set(drawn) <= {("batch", "arrive"), ("batch", "fetch"), ("arrive", "fetch")}


def test_forked_workers(
    tmp_path: Path, samples: Path, program: Program, perfetto: Importer
) -> None:
    lineage = trace(tmp_path, samples, "fork", *FORKED)
    check(lineage)
    accepted(perfetto, lineage.found)
    # Batches that were built and not used: the program left two loops early.
    assert len(lineage.batches) > sum(map(len, lineage.truth.values()))
    assert lineage.ended == 1
    # Loaders of datasets in a worker are the worker's.
    assert {key[0] for key in lineage.batches} > {lineage.parent}
    started = lineage.main.named("start_workers")
    assert {event["args"]["workers"] for event in started} == {2, 3}
    # With the settings of their loader, as predictions want them.
    settings = [event["args"] for event in started]
    assert {args["prefetch"] for args in settings} == {2, 4}
    for name in ("persistent", "in_order", "pins"):
        assert {args[name] for args in settings} == {False, True}, name
    assert {args["cpus"] for args in settings} == {len(os.sched_getaffinity(0))}
    used = [args["cpu_us"] for args in settings]
    assert used == sorted(used)
    assert used[0] > 0
    keys = {(event["args"]["loader"], event["args"]["pass"]) for event in started}
    assert len(keys) == len(started)
    assert keys <= set(lineage.truth)
    pins = lineage.main.named("pin")
    assert {event["tid"] == lineage.parent for event in pins} == {True, False}
    assert len(pins) >= 2 + 5 + 5
    merged = tmp_path / "merged.json"
    dftracer("merge", tmp_path / "traces", "-o", merged, cwd=tmp_path)
    check_flows(lineage, perfetto, merged)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_that_start_afresh(tmp_path: Path, samples: Path, method: str) -> None:
    check(trace(tmp_path, samples, method, "persistent", "stream"))


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_that_start_afresh_under_run(tmp_path: Path, samples: Path, method: str) -> None:
    """They have their trace from the environment, and only the numbers from their parent."""
    words = (sys.executable, PROGRAMS / "lineage.py", samples, method, "persistent")
    options = ("--torch", "-o", tmp_path / "traces", "--data-dir", samples)
    done = dftracer("run", *options, "--", *words, cwd=tmp_path)
    check(Lineage(tmp_path / "traces", done.stdout))


def without_processes(stdout: str) -> list[str]:
    lines = [json.loads(line) if line.startswith("{") else line for line in stdout.splitlines()]
    for line in lines:
        if isinstance(line, dict):
            line.pop("pid", None)
    return [json.dumps(line) for line in lines]


def test_the_program_does_not_notice(program: Program, samples: Path) -> None:
    # Which worker is faster may differ from run to run only with in_order=False.
    cases = [case for case in FORKED if case != "any_order"]
    words = (PROGRAMS / "lineage.py", samples, "fork", *cases)
    bare, traced = program(*words, enable=False), program(*words, env=ON)
    assert without_processes(traced.stdout) == without_processes(bare.stdout)


def test_another_torch_is_traced_without_lineage(program: Program, tmp_path: Path) -> None:
    """A version without one of the parts that lineage needs: everything else is recorded."""
    (tmp_path / "script.py").write_text(
        "import torch.utils.data._utils.worker as worker\n"
        "del worker._ResumeIteration\n"
        "from dftracer.python.torch import auto\n"
        "assert auto.install()\n"
        "from torch.utils.data import DataLoader\n"
        "print([batch.tolist() for batch in DataLoader(torch.arange(6), batch_size=3)])\n"
        "from dftracer.python import dftracer\n"
        "dftracer.get_instance().finalize()\n".replace(
            "import torch.", "import torch\nimport torch.", 1
        )
    )
    done = program(tmp_path / "script.py", env={"DFTRACER_LOG_LEVEL": "DEBUG"})
    assert done.stdout == "[[0, 1, 2], [3, 4, 5]]\n"
    assert done.stderr.count("batches have no lineage") == 1
    found = traces.read_one(tmp_path)
    assert [event["args"]["index"] for event in found.named("item")] == list(range(6))
    assert len(found.named("fetch")) == 2
    assert not found.named("batch")


def test_a_long_garbage_collection_is_an_event(program: Program, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import gc, torch\n"
        "from dftracer.python import dftracer\n"
        "dftracer.initialize_log()\n"
        "gc.disable()\n"
        "kept = [[] for _ in range(300_000)]\n"
        "for one in kept: one.append(one)\n"
        "gc.collect(0)\n"
        "kept.append(kept); count = len(kept); del kept, one\n"
        "gc.collect(2)\n"
        "for _ in range(100): gc.collect(1)\n"
        "dftracer.get_instance().finalize()\n"
    )
    program(tmp_path / "script.py", env=ON)
    found = traces.read_one(tmp_path).named("gc")
    assert {event["cat"] for event in found} == {"python"}
    (full,) = (event for event in found if event["args"]["generation"] == 2)
    assert full["args"]["collected"] >= 300_000
    assert full["dur"] >= 100
    assert all(event["args"]["generation"] > 0 and event["dur"] >= 99 for event in found)


@pytest.mark.long
def test_spawned_workers_of_a_process_that_a_callback_instruments(
    program: Program, tmp_path: Path
) -> None:
    (tmp_path / "script.py").write_text(
        "import torch\n"
        "from torch.utils.data import DataLoader, TensorDataset\n"
        "if __name__ == '__main__':\n"
        "    from dftracer.python.torch import auto\n"
        "    assert auto.install()\n"
        "    data = TensorDataset(torch.arange(6))\n"
        "    how = {'num_workers': 1, 'multiprocessing_context': 'spawn'}\n"
        "    print([batch[0].tolist() for batch in DataLoader(data, batch_size=3, **how)])\n"
    )
    done = program(tmp_path / "script.py")
    assert done.stdout == "[[0, 1, 2], [3, 4, 5]]\n"
    (worker,) = (t for t in traces.read_directory(tmp_path) if t.named("batch"))
    assert [event["args"]["index"] for event in worker.named("batch")] == [[0, 1, 2], [3, 4, 5]]

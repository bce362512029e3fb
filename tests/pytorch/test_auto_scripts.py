"""Whole scripts, unchanged, with DFTRACER_TORCH=1 and without."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from tests.pytorch.conftest import EXAMPLES, PROGRAMS, Program, accepted, counts
from tests.support import traces
from tests.support.perfetto_importer import Importer
from tests.support.run import GLOO_ABORTED

ON = {"DFTRACER_TORCH": "1"}
PLAIN = EXAMPLES / "training_plain.py"


def main_and_workers(directory: Path) -> tuple[traces.Trace, list[traces.Trace]]:
    found = traces.read_directory(directory)
    (main,) = [trace for trace in found if trace.named("forward")]
    return main, [trace for trace in found if trace is not main]


def check_plain(directory: Path, perfetto: Importer) -> None:
    main, workers = main_and_workers(directory)
    assert counts(main.recorded) == {
        "dataloader.fetch": 2 * (3 + 1),
        "dataloader.start_workers": 1,
        "dataloader.arrive": 2 * 3,
        "compute.forward": 2 * (3 + 1),
        "compute.backward": 2 * 3,
        "compute.step": 2 * 3,
        "checkpoint.capture": 2,
        "checkpoint.restart": 1,
        # The evaluation's loader has no workers.
        "data.item": 2 * 8,
        "data.preprocess.collate": 2,
        "dataloader.batch": 2,
    }
    updates = [(e["args"]["epoch"], e["args"]["step"]) for e in main.named("step")]
    assert updates == [(0, 0), (0, 1), (0, 2), (1, 3), (1, 4), (1, 5)]
    assert {e["args"]["module"] for e in main.named("forward")} == {"Net"}
    assert len(workers) == 2
    read = [event for trace in workers for event in trace.recorded]
    assert counts(read) == {
        "dataloader.batch": 2 * 3,
        "data.item": 2 * 24,
        "data.preprocess.collate": 2 * 3,
    }
    # Workers live through both epochs, and know which one they read for.
    assert Counter(e["args"]["epoch"] for e in read if e["name"] == "item") == {0: 24, 1: 24}
    assert not any("step" in event["args"] for event in read)
    accepted(perfetto, [main, *workers])


def test_same_results_and_one_event_for_each_call(
    program: Program, tmp_path: Path, perfetto: Importer
) -> None:
    bare = program(PLAIN, 2, enable=False)
    assert [path.name for path in tmp_path.iterdir()] == ["model.pt"]
    traced = program(PLAIN, 2, env=ON)
    assert traced.stdout == bare.stdout
    check_plain(tmp_path, perfetto)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_that_start_afresh(
    program: Program, tmp_path: Path, perfetto: Importer, method: str
) -> None:
    program(PLAIN, 2, method, env=ON)
    check_plain(tmp_path, perfetto)


def torchrun(program: Program, script: Path, env: dict[str, str], place: Path) -> str:
    words = ("-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1")
    words = (*words, "--nproc-per-node", "2", str(script))
    for _ in range(4):
        done = program(*words, env=env, expect=None)
        if GLOO_ABORTED not in done.stderr:
            break
        for left in [*traces.files(place), *traces.spools(place)]:
            left.unlink(missing_ok=True)
    assert done.rc == 0, done.stderr
    return done.stdout


def test_two_ranks_with_workers(program: Program, tmp_path: Path, perfetto: Importer) -> None:
    torchrun(program, EXAMPLES / "training_ddp.py", ON, tmp_path)
    found = traces.read_directory(tmp_path)
    ranks = {trace.meta("PR", "rank")[0]: trace for trace in found if trace.named("forward")}
    assert sorted(ranks) == ["0", "1"]
    for rank, trace in ranks.items():
        assert counts(trace.recorded) == {
            "dataloader.fetch": 4,
            "dataloader.start_workers": 2,
            "dataloader.arrive": 4,
            "compute.forward": 4,
            "compute.backward": 4,
            "compute.step": 4,
            "comm.all_reduce": 2 + 4,  # the program's, and those of gradients
            "comm.bcast": 1,  # of the weights, when the model is made
            "comm.barrier": 2,
            "comm.all_gather": 1,
            "comm.send" if rank == "0" else "comm.receive": 1,
        }
        names = [r["args"]["name"] for r in trace.metadata if r["name"] == "process_name"]
        assert names == [f"rank {rank}"]
        own = [e for e in trace.named("all_reduce") if e["args"]["function"] == "all_reduce"]
        assert [e["args"]["step"] for e in own] == [2, 4]
        assert {e["args"]["bytes"] for e in own} == {4}
    workers = [trace for trace in found if trace not in ranks.values()]
    assert len(workers) == 2 * 2 * 2
    assert sum(len(trace.named("item")) for trace in workers) == 2 * 32
    accepted(perfetto, found)


@pytest.mark.long
def test_profiles_of_two_ranks(program: Program, tmp_path: Path, perfetto: Importer) -> None:
    out = torchrun(program, PROGRAMS / "ranks.py", ON, tmp_path)
    seen = {rank: int(pid) for rank, pid in re.findall(r"SEEN (\d) (\d+)", out)}
    found = traces.read_directory(tmp_path)
    assert {trace.meta("PR", "rank")[0] for trace in found} == set(seen) == {"0", "1"}
    for trace in found:
        events = [event for event in trace.recorded if event["cat"] == "PP"]
        assert {event["pid"] for event in events} == {seen[trace.meta("PR", "rank")[0]]}
        names = {event["name"] for event in events}
        assert {"gloo:all_reduce", "aten::dot"} <= names, names
        assert [e["name"] for e in trace.recorded if e["cat"] == "comm"] == ["all_reduce"]
    accepted(perfetto, found)

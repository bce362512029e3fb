"""For tests of torch's DataLoader: train with it, and say what must be in the traces then."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from support import traces
from support.python_face import ROOT, own, run_python
from support.traces import Trace

PROGRAM = ROOT / "tests" / "python" / "annotations" / "programs" / "dataloader.py"
ITEMS, BATCH, READS = 8, 2, 5
# Workers, how they are started, whether they live on from one epoch to the next.
Case = tuple[int, str, bool]
ALL: list[Case] = [
    (workers, method, persistent)
    for workers in (1, 4)
    for method in ("fork", "spawn", "forkserver")
    for persistent in (False, True)
]


def load(cwd: Path, case: Case, epochs: int, kind: str = "map") -> list[Trace]:
    """The traces of a run, which has left nothing unfinished and no empty file."""
    run_python(
        PROGRAM,
        *map(str, case),
        str(epochs),
        kind,
        cwd=cwd,
        env={"DFTRACER_DISABLE_IO": "0", "DFTRACER_SUMMARY": "0"},
        stderr=None,
    )
    directory = cwd / "traces"
    assert traces.spools(directory) == []
    assert [path.name for path in directory.iterdir() if path.stat().st_size == 0] == []
    return traces.read_directory(directory)


def names_of(found: list[Trace]) -> Counter[str]:
    names = Counter(event["name"] for trace in found for event in trace.recorded)
    for each in ("open", "pread"):
        names[each] = sum(names.pop(f"{each}{end}", 0) for end in ("", "64"))
    return names


def check(found: list[Trace], case: Case, epochs: int) -> None:
    """Every item and every batch, with the reads of each, in as many processes as there were."""
    workers, _, persistent = case
    names = names_of(found)
    batches = ITEMS // BATCH * epochs
    items = ITEMS * epochs
    expected = {
        "item": items,
        "open": items,
        "pread": items * READS,
        "close": items,
        "preprocess.collate": batches,
        "receive.iter": batches,
        "receive.block": batches,
        "forward": batches,
        "epoch.iter": epochs,
        "epoch.block": epochs,
    }
    assert {name: names[name] for name in expected} == expected
    pids = {event["pid"] for trace in found for event in trace.named("item")}
    main = next(trace for trace in found if trace.named("forward")).records[0]["pid"]
    if workers == 0:
        assert pids == {main}
    else:
        assert main not in pids
        assert len(pids) == workers * (1 if persistent else epochs)
    by_epoch = Counter(own(event)["epoch"] for trace in found for event in trace.named("item"))
    # Workers that live on know what held when they were started.
    assert by_epoch == ({0: items} if persistent else dict.fromkeys(range(epochs), ITEMS))

"""Times what a DataLoader does for a batch, without the operating system in between.

python loader_batches.py bare|events|lineage

The loop of a worker and the iterator of the training process run in this process, with queues that
are lists: what is left is the loader's own code and what is recorded of it. `events` leaves
lineage out, `lineage` has it. Prints nanoseconds per batch, as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, _DatasetKind
from torch.utils.data._utils import worker

BATCHES = 40  # so few that what they record fits into memory, and nothing waits for the disk
ROUNDS = 60
PAUSE = 0.01  # seconds, for the writer of the trace
SIZES = (1, 33)


class Numbers(Dataset):
    def __len__(self) -> int:
        return 1 << 30

    def __getitem__(self, index: int) -> int:
        return index


class Stream(IterableDataset):
    def __iter__(self) -> Iterator[int]:
        return iter(range(1 << 30))


def keep(data: Any) -> Any:
    return data


class Tasks:
    """A worker's queue of tasks, with the times at which it asked for one."""

    def __init__(self, size: int, stream: bool) -> None:
        index = [None] * size if stream else list(range(1_000_000, 1_000_000 + size))
        self.waiting: list[Any] = [None, *((i, index) for i in reversed(range(BATCHES)))]
        self.times: list[int] = []

    def get(self, timeout: float = 0) -> Any:
        self.times.append(time.perf_counter_ns())
        return self.waiting.pop()


class Results:
    def put(self, result: Any) -> None:
        pass

    def cancel_join_thread(self) -> None:
        pass

    close = cancel_join_thread


class Done:
    """Set when the tasks are over."""

    def __init__(self, tasks: Tasks) -> None:
        self.tasks = tasks

    def is_set(self) -> bool:
        return not self.tasks.waiting


def in_worker(size: int, stream: bool) -> float:
    tasks = Tasks(size, stream)
    kind = _DatasetKind.Iterable if stream else _DatasetKind.Map
    dataset = Stream() if stream else Numbers()
    begin()
    words = (kind, dataset, tasks, Results(), Done(tasks), True, keep, False, 0, None, 0, 1)
    worker._worker_loop(*words, False, None)
    worker._worker_info = None
    return (tasks.times[-1] - tasks.times[1]) / (BATCHES - 1)


class Ready:
    """The queue of results: the batch of the oldest task."""

    def __init__(self) -> None:
        self.tasks: list[Any] = []

    def put(self, task: Any) -> None:
        self.tasks.append(task)

    def get(self, timeout: float = 0) -> Any:
        return self.tasks.pop(0)[0], 7


def in_training(loader: Any) -> float:
    """Of batches that are there when they are wanted."""
    ready = Ready()
    batches = iter(loader)
    index_queue, data_queue = batches._index_queues[0], batches._data_queue
    for _ in range(2):
        data_queue.get()
    ready.tasks = [(0, None), (1, None)]
    batches._index_queues[0] = batches._data_queue = ready
    start = time.perf_counter_ns()
    for _ in range(BATCHES):
        next(batches)
    spent = time.perf_counter_ns() - start
    batches._index_queues[0], batches._data_queue = index_queue, data_queue
    return spent / BATCHES


def no_workers(size: int) -> float:
    batches = iter(DataLoader(Numbers(), batch_size=size, collate_fn=keep))
    next(batches)
    start = time.perf_counter_ns()
    for _ in range(BATCHES):
        next(batches)
    return (time.perf_counter_ns() - start) / BATCHES


def nothing() -> None:
    pass


begin = nothing


def instrument(lineage: bool) -> None:
    global begin
    from dftracer.python import dftracer
    from dftracer.python.torch import auto

    if not lineage:
        from dftracer.python.torch import _data

        _data.instrument_lineage = lambda patches, progress: False
    dftracer.initialize_log("loader.pfw")
    if not auto.install():
        raise SystemExit("nothing is recorded")
    if lineage:
        from dftracer.python.torch import _lineage

        def as_worker() -> None:
            _lineage.here.starting = _lineage.Pass(0, 0, 1)

        begin = as_worker


def main() -> None:
    mode = sys.argv[1]
    torch.set_num_threads(1)
    if mode != "bare":
        instrument(mode == "lineage")
    loader = DataLoader(Numbers(), batch_size=1, num_workers=1, collate_fn=keep)
    found: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        time.sleep(PAUSE)
        found.setdefault("training", []).append(in_training(loader))
        for size in SIZES:
            time.sleep(PAUSE)
            found.setdefault(f"worker {size}", []).append(in_worker(size, False))
            found.setdefault(f"stream {size}", []).append(in_worker(size, True))
            found.setdefault(f"none {size}", []).append(no_workers(size))
    print(json.dumps(found))


if __name__ == "__main__":
    main()

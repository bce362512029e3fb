"""Which worker built a batch, from which samples, and which step used it.

A batch is identified by the process that iterates its loader, the number of the loader there, the
number of the pass over it, and the number of the task by which the loader sends it to a worker.
The training process takes these numbers from the iterator of the loader. A worker takes them from
its queues: the loader's own code runs unchanged between two proxies. Nothing is added to what the
queues and the pickles of the program carry; a forked worker inherits what it has to know, and one
that is started in another way receives it with its invitation to the trace (`_children`).
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from dftracer._core import Builder, Lineage, Region, Results, Tasks
from dftracer.python import _children
from dftracer.python.torch._patch import Patches
from dftracer.python.torch._progress import Nodes, Progress

__all__ = ["Pass", "here", "instrument_lineage", "samples_of"]

Call = Callable[..., Any]
Key = tuple[int, int, int]  # process that iterates, loader, pass

# In place of the number of a batch.
_LATEST = -1
_NONE = -2
_ATTRIBUTE = "_dftracer"  # of torch's iterators and fetchers, which nothing pickles or compares


def _flow_base(key: Key) -> int:
    """The flow of batch n is this number plus n: different for every pass of every process."""
    text = f"{os.uname().nodename}/{key[0]}/{key[1]}/{key[2]}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def _lineage(key: Key, **constant: int) -> Lineage:
    return Lineage({"loader": key[1], "pass": key[2], **constant}, _flow_base(key))


class Pass:
    """One pass over a loader, in the process that iterates it."""

    __slots__ = (
        "building",
        "discarded",
        "in_order",
        "key",
        "latest",
        "lineage",
        "number",
        "pins",
        "workers",
    )

    def __init__(self, loader: int, number: int, workers: int) -> None:
        self.key: Key = (os.getpid(), loader, number)
        self.lineage = _lineage(self.key)
        self.workers = workers
        # For what this process does for a batch itself: building it, or pinning its memory.
        self.building = _lineage(self.key, parent=self.key[0])
        self.in_order = True
        self.pins = False
        # Without workers: the batch that was made last, and the number of the next.
        self.latest = -1
        self.number = 0
        self.discarded = False  # the end of a stream was no full batch

    def end_last_fetch(self, region: Region) -> None:
        """There was no batch."""
        if self.discarded:
            self.discarded = False
            region.end()
        else:
            region.drop()

    def end_fetch(self, region: Region, iterator: Any) -> None:
        """The program has its batch, or the exception that was raised in its place."""
        if self.workers:
            if self.in_order:
                taken = getattr(iterator, "_rcvd_idx", 0)
                self.lineage.handed(region, taken - 1 if taken else _NONE)
            else:  # what arrived is handed over at once
                self.lineage.handed(region, _LATEST)
        elif self.latest >= 0:
            self.lineage.end(region, self.latest, None, 0)
            self.latest = -1
        else:
            region.end()


class _Here(threading.local):
    """What this thread is in the middle of."""

    starting: Pass | None = None  # the iterator that it creates
    worker: Worker | None = None
    building: Lineage | None = None  # of a batch that it makes without workers
    pinning: Lineage | None = None  # the batch that is copied to pinned memory next


here = _Here()


class _Loaders:
    """Numbers the loaders of a process, and their passes."""

    def __init__(self) -> None:
        self._known: dict[int, list[Any]] = {}  # by id: weak reference, number, passes
        self._count = 0

    def next_pass(self, loader: Any) -> Pass:
        known = self._known.get(id(loader))
        if known is None or known[0]() is not loader:
            known = [self._reference(loader), self._count, 0]
            self._count += 1
            self._known[id(loader)] = known
        found = Pass(known[1], known[2], getattr(loader, "num_workers", 0))
        known[2] += 1
        return found

    def _reference(self, loader: Any) -> Callable[[], Any]:
        key = id(loader)

        def forget(dead: Any) -> None:
            if key in self._known and self._known[key][0] is dead:
                del self._known[key]

        try:
            return weakref.ref(loader, forget)
        except TypeError:  # each pass counts as a loader of its own
            return lambda: None

    def clear(self) -> None:
        self._known.clear()
        self._count = 0


_loaders = _Loaders()


def samples_of(index: Any) -> Any:
    """The samples of a batch as a list, if that takes no code of the program; None for a stream."""
    kind = type(index)
    if kind is list or kind is tuple:
        return None if index and index[0] is None else index
    if index is None:
        return None
    if kind is range:
        return list(index)
    if (kind.__module__, kind.__name__) in (("torch", "Tensor"), ("numpy", "ndarray")):
        return index.tolist() if index.ndim > 0 else [index]
    return [index]


# ---- Workers -------------------------------------------------------------------------------------


class Worker:
    """The passes for which a worker builds batches."""

    def __init__(self, key: Key, worker: int) -> None:
        self._key = key
        self._worker = worker
        self.builder = Builder(samples_of)
        self.lineage = self._new_lineage()

    def _new_lineage(self) -> Lineage:
        return _lineage(self._key, worker=self._worker, parent=self._key[0])

    def begin_pass(self, nodes: Nodes) -> Lineage:
        """The worker has a fetcher."""
        self.builder.set(nodes.batch, self.lineage)
        return self.lineage

    def resume(self, message: Any) -> None:
        """The queue of tasks said that a new pass begins: a worker that persists."""
        parent, loader, number = self._key
        self._key = (parent, loader, number + 1)
        self.lineage = self._new_lineage()


def _positions(function: Call, *names: str) -> tuple[int, ...]:
    known = list(inspect.signature(function).parameters)
    return tuple(known.index(name) for name in names)


def _instrument_workers(patches: Patches, progress: Progress, workers: Any) -> None:
    last: type = workers._IterableDatasetStopIteration
    tasks, results, worker_id = _positions(
        workers._worker_loop, "index_queue", "data_queue", "worker_id"
    )

    def make(original: Call) -> Call:
        def _worker_loop(*args: Any, **kwargs: Any) -> Any:
            starting, here.starting = here.starting, None
            key = starting.key if starting is not None else _children.received()
            if key is not None and key[0] != os.getpid():
                _loaders.clear()
            if key is None or len(args) <= max(tasks, results, worker_id):
                return original(*args, **kwargs)
            worker = here.worker = Worker(key, args[worker_id])
            given = list(args)
            given[tasks] = Tasks(args[tasks], worker.builder, worker.resume)
            given[results] = Results(args[results], worker.builder, last)
            return original(*given, **kwargs)

        return _worker_loop

    patches.replace((workers,), "_worker_loop", make)


# ---- The process that iterates -------------------------------------------------------------------


def _settings(loader: Any, mine: Pass) -> dict[str, Any]:
    """What a prediction of other settings has to know, see docs/howto/whatif.md."""
    _, number, passed = mine.key
    return {
        "loader": number,
        "pass": passed,
        "workers": mine.workers,
        "prefetch": getattr(loader, "prefetch_factor", None) or 0,
        "persistent": bool(getattr(loader, "persistent_workers", False)),
        "in_order": bool(mine.in_order),
        "pins": mine.pins,
        "cpus": len(os.sched_getaffinity(0)),
        "cpu_us": time.process_time_ns() // 1000,
    }


def _instrument_iterators(patches: Patches, progress: Progress, loaders: Any, workers: Any) -> None:
    last: type = workers._IterableDatasetStopIteration
    arrivals = _Arrivals.by_queue

    def single(original: Call) -> Call:
        def __init__(self: Any, loader: Any, *args: Any, **kwargs: Any) -> None:
            mine = _loaders.next_pass(loader)
            before, here.starting = here.starting, mine
            try:
                original(self, loader, *args, **kwargs)
            finally:
                here.starting = before
            mine.pins = bool(getattr(self, "_pin_memory", False))
            setattr(self, _ATTRIBUTE, mine)

        return __init__

    def several(original: Call) -> Call:
        def __init__(self: Any, loader: Any, *args: Any, **kwargs: Any) -> None:
            mine = _loaders.next_pass(loader)
            setattr(self, _ATTRIBUTE, mine)
            before, here.starting = here.starting, mine
            region = Region(progress.nodes.start_workers)
            try:
                original(self, loader, *args, **kwargs)
            finally:
                here.starting = before
                region.end(_settings(loader, mine))

        return __init__

    def reset(original: Call) -> Call:
        def _reset(self: Any, loader: Any, *args: Any, **kwargs: Any) -> None:
            mine = self.__dict__.get(_ATTRIBUTE)
            if mine is None:
                original(self, loader, *args, **kwargs)
                return
            first = not hasattr(self, "_task_info")
            if not first:  # the workers persist
                mine = _loaders.next_pass(loader)
                setattr(self, _ATTRIBUTE, mine)
            mine.in_order = getattr(self, "_in_order", True)
            mine.pins = bool(getattr(self, "_pin_memory", False))
            if mine.pins and first:
                # Not the iterator itself: the thread must not be the last to hold it.
                arrivals[id(self._worker_result_queue)] = vars(self)
            original(self, loader, *args, **kwargs)

        return _reset

    def get_data(original: Call) -> Call:
        def _get_data(self: Any) -> Any:
            found = original(self)
            state = self.__dict__
            mine = state.get(_ATTRIBUTE)
            if mine is not None:
                node = None if mine.pins else progress.nodes.arrive
                mine.lineage.arrive(node, found, state.get("_task_info"), last, True)
            return found

        return _get_data

    patches.replace((loaders._SingleProcessDataLoaderIter,), "__init__", single)
    kind = loaders._MultiProcessingDataLoaderIter
    patches.replace((kind,), "__init__", several)
    patches.replace((kind,), "_reset", reset)
    patches.replace((kind,), "_get_data", get_data)


# ---- Pinned memory -------------------------------------------------------------------------------


class _Arrivals:
    """The queue of results, as the thread that pins memory reads it."""

    __slots__ = ("_last", "_progress", "_queue", "_state")

    # What iterators that pin know of themselves, by their queue, until their thread has taken it.
    by_queue: dict[int, dict[str, Any]] = {}  # noqa: RUF012

    def __init__(self, queue: Any, progress: Progress, last: type) -> None:
        self._queue = queue
        self._progress = progress
        self._last = last
        self._state: dict[str, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    def get(self, *args: Any, **kwargs: Any) -> Any:
        here.pinning = None
        found = self._queue.get(*args, **kwargs)
        if self._state is None:
            self._state = self.by_queue.pop(id(self._queue), None)
        mine: Pass | None = self._state.get(_ATTRIBUTE) if self._state is not None else None
        if mine is not None and self._state is not None:
            tasks = self._state.get("_task_info")
            node = self._progress.nodes.arrive
            if mine.lineage.arrive(node, found, tasks, self._last, False):
                mine.building.begin(found[0])
                here.pinning = mine.building
        return found


def _instrument_pinning(patches: Patches, progress: Progress, pins: Any, workers: Any) -> None:
    last: type = workers._IterableDatasetStopIteration
    (queue,) = _positions(pins._pin_memory_loop, "in_queue")

    def loop(original: Call) -> Call:
        def _pin_memory_loop(*args: Any, **kwargs: Any) -> Any:
            if len(args) <= queue:
                return original(*args, **kwargs)
            given = list(args)
            given[queue] = _Arrivals(args[queue], progress, last)
            try:
                return original(*given, **kwargs)
            finally:
                _Arrivals.by_queue.pop(id(args[queue]), None)

        return _pin_memory_loop

    def copy(original: Call) -> Call:
        def pin_memory(*args: Any, **kwargs: Any) -> Any:
            lineage = here.pinning
            if lineage is None or kwargs:  # inside a batch, or not a loader's
                return original(*args, **kwargs)
            here.pinning = None
            return lineage.call(progress.nodes.pin, original, *args)

        return pin_memory

    patches.replace((pins,), "_pin_memory_loop", loop)
    patches.replace((pins,), "pin_memory", copy)


# ---- All of it -----------------------------------------------------------------------------------


def _to_child() -> Key | None:
    """Sent to a process that this thread starts."""
    return here.starting.key if here.starting is not None else None


def instrument_lineage(patches: Patches, progress: Progress) -> bool:
    """False, with nothing changed, if this version of torch has other parts than we know."""
    try:
        loaders = importlib.import_module("torch.utils.data.dataloader")
        workers = importlib.import_module("torch.utils.data._utils.worker")
        pins = importlib.import_module("torch.utils.data._utils.pin_memory")
        _check(loaders, workers, pins)
    except (ImportError, AttributeError, ValueError) as error:
        if os.environ.get("DFTRACER_LOG_LEVEL", "").upper() == "DEBUG":
            print(f"dftracer: batches have no lineage: {error}", file=sys.stderr)
        return False
    _instrument_workers(patches, progress, workers)
    _instrument_iterators(patches, progress, loaders, workers)
    _instrument_pinning(patches, progress, pins, workers)
    _children.send(_to_child)
    patches.undo_with(lambda: _children.send(None))
    return True


def _check(loaders: Any, workers: Any, pins: Any) -> None:
    """Raises for a part that is missing."""
    several = loaders._MultiProcessingDataLoaderIter
    for name in ("_get_data", "_next_data", "_reset", "_try_put_index"):
        getattr(several, name)
    _ = loaders._SingleProcessDataLoaderIter, pins.pin_memory
    _ = workers._IterableDatasetStopIteration, workers._ResumeIteration
    _positions(workers._worker_loop, "index_queue", "data_queue", "worker_id")
    _positions(pins._pin_memory_loop, "in_queue")

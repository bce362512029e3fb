"""DataLoader events: batches in the training process, items and collation in the workers."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from dftracer._core import Items, Lineage, Region, Stream
from dftracer.python._wrap import recorded
from dftracer.python.torch._lineage import Pass, here, instrument_lineage, samples_of
from dftracer.python.torch._patch import Patches
from dftracer.python.torch._progress import Progress

__all__ = ["instrument_data"]

Call = Callable[..., Any]


class _ManyItems:
    """A dataset that reads a whole batch at once. Only the fetcher sees it."""

    __slots__ = ("_dataset", "_items", "_lineage", "_node")

    def __init__(self, dataset: Any, node: Any, lineage: Lineage | None) -> None:
        self._dataset = dataset
        self._node = node
        self._lineage = lineage
        self._items = Items(dataset, node, lineage)

    def __getitem__(self, index: Any) -> Any:
        return self._items[index]

    def __getitems__(self, indices: Any) -> Any:
        region = Region(self._node)
        try:
            return self._dataset.__getitems__(indices)
        finally:
            shown = samples_of(indices)
            says: dict[str, Any] = {"count": len(indices)}
            if shown is not None:
                says["index"] = shown[:64]
            if self._lineage is not None:
                says["batch"] = self._lineage.batch
            region.end(says)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dataset, name)


def _collating(node: Any, collate: Call, lineage: Lineage | None) -> Call:
    if lineage is None:
        found: Call = recorded(node, collate)
        return found
    call = lineage.call

    def collate_fn(data: Any) -> Any:
        return call(node, collate, data)

    return collate_fn


def instrument_data(patches: Patches, progress: Progress, start: Callable[[], None]) -> None:
    loaders = importlib.import_module("torch.utils.data.dataloader")
    fetchers = importlib.import_module("torch.utils.data._utils.fetch")
    worker_info: Call = importlib.import_module("torch.utils.data").get_worker_info
    instrument_lineage(patches, progress)

    def make_iter(original: Call) -> Call:
        def __iter__(self: Any) -> Any:
            start()
            progress.begin_pass(self.dataset)
            return original(self)

        return __iter__

    def make_next(original: Call) -> Call:
        def __next__(self: Any) -> Any:
            progress.fetch(self._dataset)
            mine: Pass | None = self.__dict__.get("_dftracer")
            region = Region(progress.nodes.fetch)
            try:
                found = original(self)
            except StopIteration:
                if mine is None:
                    region.drop()
                else:
                    mine.end_last_fetch(region)
                raise
            except BaseException:
                if mine is None:
                    region.end()
                else:
                    mine.end_fetch(region, self)
                raise
            if mine is None:
                region.end()
            else:
                mine.end_fetch(region, self)
            return found

        return __next__

    def make_init(original: Call) -> Call:
        def __init__(self: Any, dataset: Any, *args: Any, **kwargs: Any) -> None:
            mine = here.starting  # of an iterator without workers
            if mine is None and worker_info() is not None:
                progress.enter_worker()
            original(self, dataset, *args, **kwargs)
            lineage: Lineage | None = None
            if mine is not None:
                lineage = mine.building
                self._dftracer = mine
            elif here.worker is not None:
                lineage = here.worker.begin_pass(progress.nodes)
            nodes = progress.nodes
            self.collate_fn = _collating(nodes.collate, self.collate_fn, lineage)
            stream = getattr(self, "dataset_iter", None)
            if stream is not None:
                self.dataset_iter = Stream(stream, nodes.item, lineage)
            elif getattr(dataset, "__getitems__", None):
                self.dataset = _ManyItems(dataset, nodes.item, lineage)
            else:
                self.dataset = Items(dataset, nodes.item, lineage)

        return __init__

    def make_fetch(original: Call) -> Call:
        def fetch(self: Any, possibly_batched_index: Any) -> Any:
            mine: Pass | None = self.__dict__.get("_dftracer")
            if mine is None:  # in a worker, whose queues know the batch
                return original(self, possibly_batched_index)
            batch = mine.number
            lineage = mine.building
            lineage.begin(batch)
            here.building = lineage
            region = Region(progress.nodes.batch)
            try:
                found = original(self, possibly_batched_index)
            except BaseException as error:
                here.building = None
                if not isinstance(error, StopIteration):
                    mine.number = batch + 1
                    mine.latest = batch
                elif lineage.items == 0:
                    region.drop()
                    raise
                else:
                    mine.discarded = True
                lineage.end(region, batch, None, 0, samples_of(possibly_batched_index))
                raise
            here.building = None
            mine.number = batch + 1
            mine.latest = batch
            lineage.end(region, batch, None, 0, samples_of(possibly_batched_index))
            if mine.pins:
                here.pinning = lineage
            return found

        return fetch

    patches.replace((loaders.DataLoader,), "__iter__", make_iter)
    patches.replace((loaders._BaseDataLoaderIter,), "__next__", make_next)
    for kind in ("_MapDatasetFetcher", "_IterableDatasetFetcher"):
        patches.replace((getattr(fetchers, kind),), "__init__", make_init)
        patches.replace((getattr(fetchers, kind),), "fetch", make_fetch)

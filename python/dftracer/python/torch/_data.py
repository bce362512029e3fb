"""DataLoader events: batches in the training process, items and collation in the workers."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

from dftracer._core import Region
from dftracer.python._wrap import recorded
from dftracer.python.torch._patch import Patches
from dftracer.python.torch._progress import Progress

__all__ = ["instrument_data"]

Call = Callable[..., Any]


class _Items:
    """A dataset that records reading its items. Only the fetcher sees it."""

    __slots__ = ("_dataset", "_node")

    def __init__(self, dataset: Any, node: Any) -> None:
        self._dataset = dataset
        self._node = node

    def __getitem__(self, index: Any) -> Any:
        with self._node:
            return self._dataset[index]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dataset, name)


class _ManyItems(_Items):
    """The same for a dataset that reads a whole batch at once."""

    __slots__ = ()

    def __getitems__(self, indices: Any) -> Any:
        region = Region(self._node)
        try:
            return self._dataset.__getitems__(indices)
        finally:
            region.end({"count": len(indices)})


class _Stream:
    """The iterator of an iterable dataset."""

    __slots__ = ("_items", "_node")

    def __init__(self, items: Iterator[Any], node: Any) -> None:
        self._items = items
        self._node = node

    def __iter__(self) -> _Stream:
        return self

    def __next__(self) -> Any:
        return _next(self._node, self._items.__next__)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._items, name)


def _next(node: Any, get: Callable[[], Any]) -> Any:
    """An event for each item of `get`; none at the end."""
    region = Region(node)
    try:
        found = get()
    except StopIteration:
        region.drop()
        raise
    except BaseException:
        region.end()
        raise
    region.end()
    return found


def instrument_data(patches: Patches, progress: Progress, start: Callable[[], None]) -> None:
    loaders = importlib.import_module("torch.utils.data.dataloader")
    fetchers = importlib.import_module("torch.utils.data._utils.fetch")
    worker_info: Call = importlib.import_module("torch.utils.data").get_worker_info

    def make_iter(original: Call) -> Call:
        def __iter__(self: Any) -> Any:
            start()
            progress.begin_pass(self.dataset)
            return original(self)

        return __iter__

    def make_next(original: Call) -> Call:
        def __next__(self: Any) -> Any:
            progress.fetch(self._dataset)
            return _next(progress.nodes.fetch, lambda: original(self))

        return __next__

    def make_init(original: Call) -> Call:
        def __init__(self: Any, dataset: Any, *args: Any, **kwargs: Any) -> None:
            if worker_info() is not None:
                progress.enter_worker()
            original(self, dataset, *args, **kwargs)
            nodes = progress.nodes
            self.collate_fn = recorded(nodes.collate, self.collate_fn)
            stream = getattr(self, "dataset_iter", None)
            if stream is not None:
                self.dataset_iter = _Stream(stream, nodes.item)
            elif getattr(dataset, "__getitems__", None):
                self.dataset = _ManyItems(dataset, nodes.item)
            else:
                self.dataset = _Items(dataset, nodes.item)

        return __init__

    patches.replace((loaders.DataLoader,), "__iter__", make_iter)
    patches.replace((loaders._BaseDataLoaderIter,), "__next__", make_next)
    for kind in ("_MapDatasetFetcher", "_IterableDatasetFetcher"):
        patches.replace((getattr(fetchers, kind),), "__init__", make_init)

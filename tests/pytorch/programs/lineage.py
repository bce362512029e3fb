"""Loaders of every kind; prints what arrived in each batch, and who made it.

python lineage.py DIRECTORY METHOD CASE...
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

SAMPLES = 20
SLOW = 2  # this sample takes long
BROKEN = 5  # and this one cannot be read


def row(index: int) -> torch.Tensor:
    info = get_worker_info()
    return torch.tensor([index, os.getpid(), -1 if info is None else info.id])


class Files(Dataset):
    """Sample i is in the file i."""

    def __init__(self, directory: str, broken: bool = False, slow: float = 0) -> None:
        self.directory = directory
        self.broken = broken
        self.slow = slow

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: Any) -> torch.Tensor:
        index = int(index)
        if self.broken and index == BROKEN:
            raise ValueError("broken")
        if index == SLOW:
            time.sleep(self.slow)
        with open(Path(self.directory) / f"{index}.bin", "rb") as file:
            return row(int(file.read()))


class ManyFiles(Files):
    def __getitems__(self, indices: list[int]) -> list[torch.Tensor]:
        return [self[index] for index in indices]


class Streamed(IterableDataset):
    """Worker n has 5 + 3 n samples."""

    def __iter__(self) -> Iterator[torch.Tensor]:
        info = get_worker_info()
        number = 0 if info is None else info.id
        for index in range(5 + 3 * number):
            yield row(100 * number + index)


class Inner(Dataset):
    """Each sample iterates a loader of its own."""

    def __init__(self, directory: str) -> None:
        self.files = Files(directory)

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> torch.Tensor:
        total = sum(int(batch[:, 0].sum()) for batch in DataLoader(self.files, batch_size=10))
        assert total == sum(range(SAMPLES))
        return row(index)


class Tensors:
    """A batch sampler that yields tensors, one batch longer than an event shows."""

    def __len__(self) -> int:
        return 2

    def __iter__(self) -> Iterator[Any]:
        yield torch.tensor([3, 1, 2])
        yield torch.arange(70) % SAMPLES


class Pinned:
    """Makes this torch pin memory, by copying it."""

    def __enter__(self) -> None:
        accelerator = torch.accelerator
        self.saved = (
            accelerator.is_available,
            accelerator.current_device_index,
            accelerator.set_device_index,
            accelerator.current_accelerator,
            torch.Tensor.pin_memory,
        )
        accelerator.is_available = lambda: True
        accelerator.current_device_index = lambda: 0
        accelerator.set_device_index = lambda index: None
        accelerator.current_accelerator = lambda *a, **k: torch.device("cuda")
        torch.Tensor.pin_memory = lambda self, *a: self.clone()

    def __exit__(self, *_: object) -> None:
        accelerator = torch.accelerator
        (
            accelerator.is_available,
            accelerator.current_device_index,
            accelerator.set_device_index,
            accelerator.current_accelerator,
            torch.Tensor.pin_memory,
        ) = self.saved


def note_start(worker: int) -> None:
    torch.manual_seed(worker)


class Told:
    """Numbers the loaders as the trace does: by their first use."""

    def __init__(self) -> None:
        self.loaders: dict[int, list[Any]] = {}

    def passes(self, loader: Any) -> tuple[int, int]:
        known = self.loaders.setdefault(id(loader), [len(self.loaders), -1, loader])
        known[1] += 1
        return known[0], known[1]

    def say(self, where: tuple[int, int], batch: Any, **more: Any) -> None:
        rows = torch.as_tensor(batch).reshape(-1, 3)
        (pid,), (worker,) = set(rows[:, 1].tolist()), set(rows[:, 2].tolist())
        line = {"loader": where[0], "pass": where[1], "samples": rows[:, 0].tolist(), **more}
        print(json.dumps({**line, "worker": worker, "pid": pid}))

    def all_of(self, loader: Any, most: int = 1 << 30) -> None:
        where = self.passes(loader)
        for number, batch in enumerate(loader):
            self.say(where, batch)
            if number + 1 == most:
                break


def run(case: str, directory: str, told: Told, **options: Any) -> None:
    files = Files(directory)
    two = {"num_workers": 2, **options}
    if case == "plain":
        loader = DataLoader(files, batch_size=4, **two)
        told.all_of(loader)
        told.all_of(loader)
    elif case == "persistent":
        loader = DataLoader(files, batch_size=4, persistent_workers=True, **two)
        told.all_of(loader, 2)
        told.all_of(loader)
        told.all_of(loader)
    elif case == "any_order":
        loader = DataLoader(Files(directory, slow=0.3), batch_size=2, in_order=False, **two)
        told.all_of(loader)
    elif case == "behind_a_slow_one":
        loader = DataLoader(Files(directory, slow=0.3), batch_size=2, prefetch_factor=4, **two)
        told.all_of(loader)
    elif case == "stream":
        told.all_of(DataLoader(Streamed(), batch_size=3, **{**two, "num_workers": 3}))
    elif case == "stream_again":
        loader = DataLoader(
            Streamed(), batch_size=3, drop_last=True, persistent_workers=True, **two
        )
        told.all_of(loader)
        told.all_of(loader)
    elif case == "single_samples":
        told.all_of(DataLoader(files, batch_size=None, **two))
        told.all_of(DataLoader(Streamed(), batch_size=None, **two))
    elif case == "samplers":
        told.all_of(DataLoader(files, batch_sampler=[[7, 7], (3,), [19, 0, 4]], **two))
        told.all_of(DataLoader(files, batch_sampler=Tensors(), **two))
        told.all_of(DataLoader(files, batch_size=6, sampler=range(9, 2, -1), **two))
    elif case == "many":
        told.all_of(DataLoader(ManyFiles(directory), batch_size=8, **two))
        told.all_of(DataLoader(ManyFiles(directory), batch_size=8))
    elif case == "no_workers":
        loader = DataLoader(files, batch_size=8)
        told.all_of(loader)
        told.all_of(loader, 1)
        told.all_of(loader)
        told.all_of(DataLoader(Streamed(), batch_size=2, drop_last=True))
        told.all_of(DataLoader(files, batch_size=None))
    elif case == "at_once":
        first, second = DataLoader(files, batch_size=5, **two), DataLoader(files, batch_size=4)
        one, other = told.passes(first), told.passes(second)
        for left, right in zip(first, second):
            told.say(one, left)
            told.say(other, right)
            told.all_of(second)
    elif case == "failing":
        for workers in (2, 0):
            kept = two if workers else {}
            loader = DataLoader(Files(directory, broken=True), batch_size=2, **kept)
            where = told.passes(loader)
            batches = iter(loader)
            while True:
                try:
                    told.say(where, next(batches))
                except StopIteration:
                    break
                except ValueError as error:
                    print(json.dumps({"loader": where[0], "pass": where[1], "error": True}))
                    print(str(error).replace(directory, "")[-7:])
    elif case == "inside":
        told.all_of(DataLoader(Inner(directory), batch_size=1, **two))
    elif case == "options":
        loader = DataLoader(files, batch_size=3, worker_init_fn=note_start, **two)
        loader.timeout = 60
        told.all_of(loader)
    elif case == "pinned":
        with Pinned():
            loader = DataLoader(
                files, batch_size=4, pin_memory=True, persistent_workers=True, **two
            )
            told.all_of(loader, 2)
            told.all_of(loader)
            told.all_of(DataLoader(files, batch_size=4, pin_memory=True))
            del loader
    else:
        raise SystemExit(f"no case {case}")


def main() -> None:
    directory, method, *cases = sys.argv[1:]
    told = Told()
    for case in cases:
        run(case, directory, told, multiprocessing_context=method)


if __name__ == "__main__":
    main()

"""Loads that read data, and saves of several kinds. Each word of the command line is one."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from typing import Any

if "safetensors" in sys.argv:  # imports torch, so torch is instrumented while this is imported
    import safetensors.torch

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

from dftracer.python import dftracer

COUNT = 8


class Files(Dataset):
    def __init__(self) -> None:
        for number in range(COUNT):
            torch.save(torch.ones(4), f"item-{number}.pt")
        self.first = torch.load("item-0.pt")

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> Any:
        return torch.load(f"item-{index}.pt")


class Stream(IterableDataset):
    def __iter__(self) -> Iterator[Any]:
        return self.items()

    def items(self) -> Iterator[Any]:
        for number in range(COUNT):
            yield self.decoded(number)

    def decoded(self, number: int) -> Any:
        held = io.BytesIO()
        torch.save(torch.ones(number), held)
        held.seek(0)
        return torch.load(held)


def collate(items: list[Any]) -> Any:
    return torch.stack([torch.load("item-0.pt"), *items])


def files() -> None:
    for _ in DataLoader(Files(), batch_size=2, collate_fn=collate):
        pass


def workers() -> None:
    for _ in DataLoader(Files(), batch_size=2, num_workers=2):
        pass


def by_hand() -> None:
    import webdataset

    webdataset.write(torch.ones(4))
    data = Files()
    assert len([data[index] for index in range(COUNT)]) == COUNT
    assert len(list(Stream())) == COUNT


def stream() -> None:
    for _ in DataLoader(Stream(), batch_size=None):
        pass


def plain() -> None:
    torch.save(torch.nn.Linear(2, 2).state_dict(), "model.pt")
    torch.load("model.pt")


def distributed() -> None:
    import warnings

    import torch.distributed.checkpoint as dcp

    warnings.simplefilter("ignore")
    state = {f"w{n}": torch.ones(4) for n in range(6)} | {"more": {"epoch": 3}}
    dcp.save(state, storage_writer=dcp.FileSystemWriter("dcp", thread_count=3))
    dcp.load(state, checkpoint_id="dcp")


def safetensors_() -> None:
    model = torch.nn.Linear(2, 2)
    safetensors.torch.save_file(model.state_dict(), "model.safetensors")
    safetensors.torch.load_file("model.safetensors")
    safetensors.torch.save_model(model, filename="other.safetensors")
    safetensors.torch.load_model(model, "other.safetensors")


PROGRAMS: dict[str, Callable[[], None]] = {
    "files": files,
    "workers": workers,
    "by_hand": by_hand,
    "stream": stream,
    "plain": plain,
    "distributed": distributed,
    "safetensors": safetensors_,
}

if __name__ == "__main__":
    for name in sys.argv[1:]:
        log = dftracer.initialize_log(f"{name}.pfw")
        PROGRAMS[name]()
        log.finalize()
        # finalize puts torch's functions back; initialize_log instruments them again.

"""Training with torch's DataLoader: the trace is started here, and the workers know nothing of it.

python dataloader.py WORKERS METHOD PERSISTENT EPOCHS KIND
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

from dftracer.python import ai, dft_fn, dftracer

ITEMS = 8
BATCH = 2
READS = 5


class Files(Dataset):  # type: ignore[type-arg]
    def __init__(self) -> None:
        # An object that is sent to the workers may keep these.
        self.node = ai.data.item
        self.log = dft_fn("files")

    def __len__(self) -> int:
        return ITEMS

    @ai.data.item
    def __getitem__(self, index: int) -> torch.Tensor:
        assert self.node is ai.data.item
        file = os.open(f"data/{index}", os.O_RDONLY)
        for at in range(READS):
            os.pread(file, 10, at)
        os.close(file)
        return torch.tensor([index])


class Stream(IterableDataset):  # type: ignore[type-arg]
    """Each worker takes its part."""

    @ai.dataloader.fetch
    def __iter__(self) -> Iterator[torch.Tensor]:
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        for index in range(first, ITEMS, step):
            yield Files()[index]


@ai.data.preprocess.derive("collate")
def collate(batch: list[torch.Tensor]) -> torch.Tensor:
    return torch.stack(batch)


@ai.compute.forward
def forward(batch: torch.Tensor) -> int:
    return int(batch.sum())


def main(workers: int, method: str, persistent: bool, epochs: int, kind: str) -> None:
    os.makedirs("data", exist_ok=True)
    for index in range(ITEMS):
        with open(f"data/{index}", "w") as file:
            file.write("x" * 100)
    dftracer.initialize_log("traces/t.pfw", "data")
    options: dict[str, Any] = {}
    if workers:
        options = {"multiprocessing_context": method, "persistent_workers": persistent}
    dataset = Files() if kind == "map" else Stream()
    loader = DataLoader(
        dataset, batch_size=BATCH, num_workers=workers, collate_fn=collate, **options
    )
    for epoch in ai.pipeline.epoch.iter(range(epochs)):
        ai.update(epoch=epoch)
        total = 0
        for step, batch in enumerate(ai.comm.receive.iter(loader)):
            ai.compute.update(step=step)
            total += forward(batch)
        assert total == sum(range(ITEMS)), total


if __name__ == "__main__":
    words = sys.argv[1:]
    main(int(words[0]), words[1], words[2] == "True", int(words[3]), words[4])

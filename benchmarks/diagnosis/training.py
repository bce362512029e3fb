"""Small trainings, each slow in one way or in none: python training.py CASE.

Delays are sleeps, so that they are the same on every machine: in a forward pass for compute, in
an item for decoding. `pipe.bin` is a named pipe that another process fills slowly: a slow file.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info

PIECE = 1 << 16


class Model(nn.Module):
    """Whose forward pass takes as long as it is told."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 2)
        self.seconds = seconds
        self.passes = 0
        self.every = 0  # every so many passes takes ten times as long

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.passes += 1
        slow = self.every and self.passes % self.every == 0
        time.sleep(self.seconds * (10 if slow else 1))
        return self.layer(x)


class Samples(Dataset):
    """Of which `make(index)` takes time."""

    def __init__(self, count: int, make: Callable[[int], None] = lambda index: None) -> None:
        self.count, self.make = count, make

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        if index >= self.count:
            raise IndexError
        self.make(index)
        return torch.full((4,), index % 7 / 7), index % 2


def train(
    samples: Dataset,
    compute: float = 0.005,
    epochs: int = 1,
    batch_size: int = 4,
    after: Callable[[int, nn.Module], None] = lambda step, model: None,
    every: int = 0,
    **options: Any,
) -> Model:
    loader = DataLoader(samples, batch_size=batch_size, **options)
    model = Model(compute)
    model.every = every
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = 0
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            after(step, model)
            step += 1
    return model


def read(path: str, pieces: int = 1) -> None:
    """Whole pieces, whatever a single call returns."""
    file = os.open(path, os.O_RDONLY)
    left = pieces * PIECE
    while left:
        left -= len(os.read(file, left))
    os.close(file)


def slow_file() -> None:
    def make(index: int) -> None:
        if index % 12 == 5:  # of both workers
            read("pipe.bin", 4)
        else:
            read(f"part-{index % 4}.bin")

    train(Samples(64, make), num_workers=2)


def slow_worker() -> None:
    def make(index: int) -> None:
        info = get_worker_info()
        time.sleep(0.020 if info.id == 1 else 0.002)

    train(Samples(120, make), compute=0.020, num_workers=3)


def throttled_reads() -> None:
    train(Samples(60, lambda index: read("pipe.bin")), num_workers=2)


def decoding() -> None:
    train(Samples(100, lambda index: time.sleep(0.010)), num_workers=0)


def too_few_workers() -> None:
    train(Samples(120, lambda index: time.sleep(0.010)), num_workers=1)


def _slow_start(worker: int) -> None:
    time.sleep(0.5)


def worker_start() -> None:
    train(Samples(32), epochs=3, num_workers=2, worker_init_fn=_slow_start)


def first_batches() -> None:
    """Each pass begins with nothing made ahead: short passes over batches that take long."""
    train(
        Samples(16, lambda index: time.sleep(0.030)),
        epochs=8,
        compute=0.090,
        num_workers=4,
        persistent_workers=True,
    )


def slow_sample() -> None:
    train(Samples(160, lambda index: time.sleep(1.2 if index == 77 else 0.001)), num_workers=2)


def _collate(items: list[tuple[torch.Tensor, int]]) -> tuple[torch.Tensor, torch.Tensor]:
    time.sleep(0.060)
    return torch.stack([x for x, _ in items]), torch.tensor([y for _, y in items])


def collation() -> None:
    train(Samples(120), num_workers=0, collate_fn=_collate)


class Objects(Samples):
    """A sample of many Python objects, which must be pickled and unpickled."""

    def __getitem__(self, index: int) -> Any:
        return [float(n) for n in range(120_000)]


def _mean(items: list[list[float]]) -> list[list[float]]:
    return items


def queue_transfer() -> None:
    loader = DataLoader(Objects(64), batch_size=4, num_workers=1, collate_fn=_mean)
    model = Model(0.005)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in loader:
        optimizer.zero_grad()
        model(torch.ones(4, 4)).sum().backward()
        optimizer.step()


def checkpoints() -> None:
    state = {"weights": torch.zeros(12_000_000)}  # 48 MB

    def save(step: int, model: nn.Module) -> None:
        if step % 5 == 4:
            torch.save(state, f"checkpoint-{step}.pt")

    train(Samples(200), compute=0.010, after=save)


def garbage() -> None:
    kept = [[n] for n in range(150_000)]

    def collect(step: int, model: nn.Module) -> None:
        gc.collect()

    train(Samples(160), compute=0.010, after=collect)
    del kept


def evaluation() -> None:
    tests = DataLoader(Samples(40), batch_size=4)

    def evaluate(step: int, model: nn.Module) -> None:
        if step % 10 == 9:
            model.eval()
            with torch.no_grad():
                for x, _ in tests:
                    model(x)
            model.train()

    train(Samples(160), compute=0.020, after=evaluate)


def log_every_step() -> None:
    log = os.open("metrics.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def write(step: int, model: nn.Module) -> None:
        for name in range(8000):
            os.write(log, b"step %d metric %d 0.1\n" % (step, name))

    train(Samples(160), compute=0.005, after=write)


def log_through_a_slow_file() -> None:
    """A log on storage that takes each line slowly."""
    log = os.open("pipe.log", os.O_WRONLY)

    def write(step: int, model: nn.Module) -> None:
        os.write(log, b"x" * PIECE)

    train(Samples(160), compute=0.005, after=write)


def uneven() -> None:
    train(Samples(240), compute=0.015, every=10)


def untraced_work() -> None:
    train(Samples(160), compute=0.010, after=lambda step, model: time.sleep(0.030))


def _ranks(make: Callable[[int], Callable[[int], None]], compute: Callable[[int], float]) -> None:
    import torch.distributed as dist

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = nn.parallel.DistributedDataParallel(Model(compute(rank)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in DataLoader(Samples(160, make(rank)), batch_size=4):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    dist.destroy_process_group()


def slow_rank() -> None:
    _ranks(lambda rank: lambda index: None, lambda rank: 0.050 if rank == 2 else 0.010)


def unbalanced_shards() -> None:
    def make(rank: int) -> Callable[[int], None]:
        # Rank 1 has the large samples.
        return lambda index: [read("part-0.bin"), time.sleep(0.016 if rank == 1 else 0.0005)][1]

    _ranks(make, lambda rank: 0.010)


def communication() -> None:
    import torch.distributed as dist

    dist.init_process_group("gloo")
    model = Model(0.010)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    gradients = torch.zeros(4_000_000)
    for x, y in DataLoader(Samples(100), batch_size=4):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        dist.all_reduce(gradients)
        optimizer.step()
    dist.destroy_process_group()


def balanced() -> None:
    train(Samples(240, lambda index: time.sleep(0.0002)), compute=0.030)


def workers_that_keep_up() -> None:
    train(
        Samples(240, lambda index: read(f"part-{index % 4}.bin")),
        compute=0.030,
        num_workers=2,
        persistent_workers=True,
    )


def main() -> int:
    torch.set_num_threads(1)
    torch.manual_seed(1)
    globals()[sys.argv[1].replace("-", "_")]()
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A training whose data takes a known time: python loader_settings.py SETTINGS (JSON).

Reading is a real read of a named pipe, whose other end delivers after a while; decoding and the
model sleep, or compute a fixed amount. What each takes does not depend on the machine's load,
unless the program computes.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import sys
import threading
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SETTINGS = {
    "workers": 2,
    "prefetch": 2,
    "persistent": False,
    "batches": 40,  # of a pass
    "passes": 1,
    "items": 2,  # of a batch
    "read": 0.0,  # seconds per item
    "decode": 0.0,
    "rounds": 0,  # of hashing per item
    "tail": 0.0,  # shape of the distribution of decoding times: 0 is none
    "start": 0.0,  # seconds that a worker takes to start
    "step": 0.01,  # seconds that training takes per batch
}
SIZE = 4096
BLOCK = b"x" * (64 << 10)


class Pipe:
    """A file that takes its time: read() returns what a thread writes after a while."""

    def __init__(self) -> None:
        name = f"pipe-{os.getpid()}"
        os.mkfifo(name)
        self._fd = os.open(name, os.O_RDWR)
        self._out = os.open(name, os.O_RDWR)
        self._wish = threading.Semaphore(0)
        self._pause = 0.0
        threading.Thread(target=self._deliver, daemon=True).start()

    def _deliver(self) -> None:
        while True:
            self._wish.acquire()
            time.sleep(self._pause)
            os.write(self._out, b"x" * SIZE)

    def read(self, pause: float) -> bytes:
        self._pause = pause
        self._wish.release()
        return os.read(self._fd, SIZE)


class Data(Dataset[torch.Tensor]):
    def __init__(self, settings: dict[str, float]) -> None:
        self._settings = settings
        self._pipe: Pipe | None = None

    def __len__(self) -> int:
        return int(self._settings["batches"] * self._settings["items"])

    def __getitem__(self, index: int) -> torch.Tensor:
        settings = self._settings
        if settings["read"]:
            if self._pipe is None:
                self._pipe = Pipe()
            self._pipe.read(settings["read"])
        if settings["decode"]:
            time.sleep(settings["decode"] * self._size_of(index))
        for _ in range(int(settings["rounds"])):
            hashlib.sha256(BLOCK).digest()
        return torch.full((8,), float(index))

    def _size_of(self, index: int) -> float:
        """How much there is to decode: 1 on average, with a long tail if there is one."""
        tail = self._settings["tail"]
        return random.Random(index).lognormvariate(-tail * tail / 2, tail) if tail else 1.0


class Model(nn.Module):
    def __init__(self, pause: float) -> None:
        super().__init__()
        self.pause = pause
        self.last = nn.Linear(8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        time.sleep(self.pause)
        return self.last(x)


def main() -> None:
    settings = {**SETTINGS, **json.loads(sys.argv[1])}
    torch.set_num_threads(1)
    options = {}
    if settings["workers"]:
        options = {
            "prefetch_factor": settings["prefetch"],
            "persistent_workers": settings["persistent"],
            "worker_init_fn": lambda worker: time.sleep(settings["start"]),
        }
    loader = DataLoader(
        Data(settings), batch_size=settings["items"], num_workers=settings["workers"], **options
    )
    model = Model(settings["step"])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(settings["passes"]):
        for x in loader:
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()


if __name__ == "__main__":
    main()

"""A DataLoader that never ran: its workers, queue and order, simulated to the microsecond.

The rules are those of PyTorch. The process that iterates hands out batches round-robin, `prefetch`
per worker ahead of itself; a worker makes its batches first in, first out; results pass through one
queue, and through one thread if memory is pinned. With in_order, a result that comes early is kept
until its turn. The events are those of `dftracer run --torch`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from support.synthetic_program import Program


@dataclass(frozen=True)
class Item:
    """One sample: microseconds of reading, then of decoding."""

    read: int = 100
    decode: int = 200
    file: str = "/data/shard-0.tar"
    size: int = 100_000
    gc: int = 0  # a garbage collection at the end of decoding, part of it


@dataclass
class Loader:
    """Makes the traces of a main process and its workers."""

    batches: Sequence[Sequence[Item]]  # of one pass
    workers: int = 2
    prefetch: int = 2
    in_order: bool = True
    again: Sequence[Sequence[Item]] = ()  # of later passes, if they differ
    passes: int = 1
    persistent: bool = True
    start: int = 5_000  # from the start of a worker until it takes its first batch
    collate: Callable[[int], int] = lambda batch: 50
    reach: int = 10  # from sending a batch until its worker takes it
    transfer: int = 20  # from the queue's one end to its other
    take: int = 3  # taking a batch off the queue
    hand: int = 2  # from there to the program
    pin: int = 0
    compute: Callable[[int], int] = lambda step: 1_000
    main_gc: Callable[[int], int] = lambda step: 0  # while a batch is handed over
    after: Callable[[Program, int], None] = lambda main, step: None
    pid: int = 100
    host: str = "node1"
    loader: int = 0
    settings: dict[str, object] | None = None  # recorded in place of those it has
    main: Program = field(init=False)
    made: list[Program] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.main = Program(pid=self.pid, host=self.host)
        self.main.now = 2_000
        self._step = 0

    def run(self) -> Loader:
        for number in range(self.passes):
            if self.workers:
                if not self.made or not self.persistent:
                    self._start_workers(number)
                self._pass(number)
            else:
                self._pass_alone(number)
        self.main.now += 1_500
        return self

    def write(self, directory: Path, **facts: int) -> Loader:
        """facts: of the end records of workers."""
        self.main.write(directory)
        for worker in self.made:
            worker.write(directory, **facts)
        return self

    def _start_workers(self, number: int) -> None:
        main = self.main
        settings = {
            "prefetch": self.prefetch,
            "persistent": self.persistent,
            "in_order": self.in_order,
            "pins": self.pin > 0,
        }
        told = {"loader": self.loader, "pass": number, "workers": self.workers}
        told |= settings if self.settings is None else self.settings
        main.span("dataloader", "start_workers", 400, **told)
        first = self.pid + 1 + len(self.made)
        for worker in range(self.workers):
            program = Program(pid=first + worker, ppid=self.pid, host=self.host, begin=main.now)
            program.now = main.now + self.start
            self.made.append(program)

    def _make(
        self, program: Program, begin: int, number: int, batch: int, worker: int | None
    ) -> int:
        """The events of making a batch. Gives when it was in the queue."""
        now = begin + 5
        items = (self.again if number and self.again else self.batches)[batch]
        for index, item in enumerate(items):
            first = now
            if item.read:
                program.read(item.file, item.size, item.read, at=now + 1)
                now += 1 + item.read
            now += item.decode
            if item.gc:
                program.span("python", "gc", item.gc, at=now - item.gc, generation=2, collected=9)
            program.span("data", "item", now - first, at=first, index=index, batch=batch)
            now += 2
        collated = self.collate(batch)
        if collated:
            program.span("data", "preprocess.collate", collated, at=now, batch=batch)
            now += collated
        now += 4
        told = {"loader": self.loader, "pass": number, "batch": batch, "parent": self.pid}
        if worker is not None:
            told["worker"] = worker
        index = list(range(len(items)))
        program.span("dataloader", "batch", now - begin, at=begin, index=index, **told)
        return now

    def _use(self, number: int, batch: int, worker: int | None, wanted: int) -> None:
        main, step = self.main, self._step
        told = {
            "loader": self.loader,
            "pass": number,
            "batch": batch,
            "epoch": number,
            "step": step,
        }
        if worker is not None:
            told["worker"] = worker
        main.span("dataloader", "fetch", main.now - wanted, at=wanted, **told)
        spent = self.compute(step)
        main.span("compute", "forward", spent // 2, epoch=number, step=step)
        main.span("compute", "backward", spent - spent // 2, epoch=number, step=step)
        self.after(main, step)
        self._step += 1

    def _pass_alone(self, number: int) -> None:
        main = self.main
        for batch in range(len(self.batches)):
            wanted = main.now
            main.now = self._make(main, wanted + 3, number, batch, None) + 3
            self._use(number, batch, None, wanted)

    def _pass(self, number: int) -> None:
        main, count = self.main, len(self.batches)
        programs = self.made[-self.workers :]
        results: list[tuple[int, int, int]] = []  # when it can be taken, batch, worker
        sent = pinned = 0

        def send() -> None:
            nonlocal sent
            if sent < count:
                worker = sent % self.workers
                program = programs[worker]
                begin = max(main.now, program.now) + self.reach
                program.now = self._make(program, begin, number, sent, worker)
                heapq.heappush(results, (program.now + self.transfer, sent, worker))
                sent += 1

        for _ in range(self.workers * self.prefetch):
            send()
        kept: dict[int, int] = {}
        for place in range(count):
            wanted = main.now
            batch = place if self.in_order else -1
            while batch not in kept:
                there, found, worker = heapq.heappop(results)
                told = {"loader": self.loader, "pass": number, "batch": found, "worker": worker}
                if self.pin:
                    taken = max(there, pinned) + self.take
                    main.span("dataloader", "arrive", 0, at=taken, tid=self.pid + 50, **told)
                    main.span(
                        "dataloader", "pin", self.pin, at=taken, tid=self.pid + 50, batch=found
                    )
                    pinned = taken + self.pin
                    main.now = max(main.now, pinned)
                else:
                    main.now = max(main.now, there) + self.take
                    main.span("dataloader", "arrive", 0, at=main.now, **told)
                kept[found] = worker
                if not self.in_order:
                    batch = found
            worker = kept.pop(batch)
            send()
            collected = self.main_gc(self._step)
            if collected:
                main.span("python", "gc", collected, generation=2, collected=5)
            main.now += self.hand
            self._use(number, batch, worker, wanted)

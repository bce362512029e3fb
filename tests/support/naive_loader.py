"""A DataLoader, simulated the long way: every process is a coroutine, and time moves from event to
event. Exact, slow, and written apart from the model that it checks.

A coroutine yields what it does next: ("sleep", time), ("compute", time, cores), or ("wait", test).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

Steps = Iterator[tuple[Any, ...]]


@dataclass
class Actor:
    steps: Steps
    kind: str = "sleep"
    left: Fraction = Fraction(0)
    cores: Fraction = Fraction(0)
    test: Callable[[], Any] = lambda: False
    over: bool = False

    def resume(self) -> None:
        try:
            what = next(self.steps)
        except StopIteration:
            self.over, self.kind = True, "over"
            return
        self.kind = what[0]
        if self.kind == "wait":
            self.test = what[1]
        else:
            self.left = Fraction(what[1])
            self.cores = Fraction(what[2]) if self.kind == "compute" else Fraction(0)


@dataclass
class Naive:
    """Whole numbers in, fractions out: `waits` and `own` of each batch that is taken."""

    blocked: Sequence[int]
    cpu: Sequence[int]
    own_blocked: Sequence[int]
    own_cpu: Sequence[int]
    workers: int
    prefetch: int = 2
    in_order: bool = True
    ready: Sequence[int] = ()
    reach: int = 0
    pause: int = 0
    transfer: int = 0
    take: int = 0
    pin: int | None = None
    cores: int = 0
    main_cores: int = 1
    now: Fraction = Fraction(0)
    waits: list[Fraction] = field(default_factory=list)
    own: list[Fraction] = field(default_factory=list)

    def run(self) -> Naive:
        self._actors: list[Actor] = []
        self._tasks: list[list[tuple[Fraction, int]]] = [[] for _ in range(self.workers)]
        self._results: list[tuple[Fraction, int]] = []
        self._pinned: list[int] = []
        self._sent = 0
        self._cycle = 0
        self._of: dict[int, int] = {}  # batch: worker, until it is handed over
        main = self._start(self._main() if self.workers else self._alone())
        for worker in range(self.workers):
            self._start(self._worker(worker))
        if self.pin is not None and self.workers:
            self._start(self._pinner())
        while not main.over:
            self._advance()
        return self

    def _start(self, steps: Steps) -> Actor:
        actor = Actor(steps)
        actor.resume()
        self._actors.append(actor)
        return actor

    def _advance(self) -> None:
        """What is due at this moment; or else one of those who wait; or else time."""
        for actor in self._actors:
            if actor.kind in ("sleep", "compute") and actor.left == 0:
                actor.resume()
                return
        # The training process looks last, when all that arrives at this moment is there.
        for actor in reversed(self._actors):
            if actor.kind == "wait" and actor.test():
                actor.resume()
                return
        computing = [actor for actor in self._actors if actor.kind == "compute"]
        wish = sum(actor.cores for actor in computing)
        rate = Fraction(1)
        if self.cores and wish > self.cores:
            rate = Fraction(self.cores) / wish
        sleeping = [actor for actor in self._actors if actor.kind == "sleep"]
        step = min([a.left for a in sleeping] + [a.left / rate for a in computing])
        for actor in sleeping:
            actor.left -= step
        for actor in computing:
            actor.left -= step * rate
        self.now += step

    def _send(self) -> None:
        if self._sent == len(self.blocked):
            return
        while True:
            worker = self._cycle % self.workers
            self._cycle += 1
            has = sum(other == worker for other in self._of.values())
            if self.in_order or has < self.prefetch:
                break
        self._of[self._sent] = worker
        self._tasks[worker].append((self.now, self._sent))
        self._sent += 1

    def _worker(self, number: int) -> Steps:
        first = self.ready[number] if number < len(self.ready) else 0
        free = Fraction(first) - self.pause
        while True:
            yield "wait", lambda: self._tasks[number]
            sent, batch = self._tasks[number].pop(0)
            begin = max(sent + self.reach, free + self.pause)
            yield "sleep", max(begin - self.now, 0)
            yield "sleep", self.blocked[batch]
            yield "compute", self.cpu[batch], 1
            free = self.now
            self._start(self._courier(batch))

    def _courier(self, batch: int) -> Steps:
        yield "sleep", self.transfer
        self._results.append((self.now, batch))

    def _take(self) -> int:
        first = min(self._results)
        self._results.remove(first)
        return first[1]

    def _pinner(self) -> Steps:
        assert self.pin is not None
        while True:
            yield "wait", lambda: self._results
            batch = self._take()
            yield "sleep", self.take + self.pin
            self._pinned.append(batch)

    def _main(self) -> Steps:
        for _ in range(self.workers * self.prefetch):
            self._send()
        kept: set[int] = set()
        for place in range(len(self.blocked)):
            wanted = self.now
            while True:
                if place in kept and self.in_order:
                    batch = place
                    break
                if self.pin is not None:
                    yield "wait", lambda: self._pinned
                    batch = self._pinned.pop(0)
                else:
                    yield "wait", lambda: self._results
                    batch = self._take()
                    yield "sleep", self.take
                if batch == place or not self.in_order:
                    break
                kept.add(batch)
            del self._of[batch]
            self._send()
            yield from self._train(place, wanted)

    def _alone(self) -> Steps:
        for place in range(len(self.blocked)):
            wanted = self.now
            yield "sleep", self.blocked[place] + self.cpu[place]
            yield from self._train(place, wanted)

    def _train(self, place: int, wanted: Fraction) -> Steps:
        self.waits.append(self.now - wanted)
        handed = self.now
        yield "sleep", self.own_blocked[place]
        yield "compute", self.own_cpu[place], self.main_cores
        self.own.append(self.now - handed)

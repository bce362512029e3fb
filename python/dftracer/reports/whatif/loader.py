"""PyTorch's DataLoader as a queue model: when each batch is made, arrives and is handed over.

The process that trains sends batches to its workers round-robin, `prefetch` per worker ahead of
what it has taken; a worker makes its batches first in, first out; results come through one queue,
and through one thread if memory is pinned. With in_order, a result that comes early is kept until
its turn. Times are nanoseconds, as floats.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

MAIN = -1
# Kinds of events, in the order in which those of one moment are looked at.
ARRIVED, BEGIN, UNBLOCKED, COMPUTE, WANT, TAKEN = range(6)


@dataclass(frozen=True)
class Setup:
    """The settings of a loader, and what each hand-over costs."""

    workers: int
    prefetch: int = 2
    in_order: bool = True
    reach: float = 0.0  # from sending a batch until an idle worker begins it
    pause: float = 0.0  # of a worker between two batches
    transfer: float = 0.0  # from a worker's end of the queue to the other
    take: float = 0.0  # taking a batch off the queue
    pin: float | None = None  # copying it into pinned memory, by a thread of its own
    cores: float = 0.0  # that the processes share; 0 is unlimited
    main_cores: float = 1.0  # that the training process uses while it computes


@dataclass
class Times:
    """One pass, or a part of it: what is known of each batch before it is simulated.

    Work of batch n waits (for storage, or asleep) and uses a processor. So does the training
    process between handing over its n-th batch and wanting the next.
    """

    blocked: Sequence[float]
    cpu: Sequence[float]
    own_blocked: Sequence[float]
    own_cpu: Sequence[float]
    # When each worker can begin, counted from the moment at which the first batch is wanted.
    ready: Sequence[float] = field(default_factory=list)


@dataclass
class Run:
    """What the training process would see, in the order in which it takes batches."""

    waits: list[float]
    own: list[float]


def simulate(times: Times, setup: Setup) -> Run:
    """One pass with these settings."""
    if not setup.workers:
        return _alone(times)
    demand = setup.workers * any(times.cpu) + setup.main_cores * any(times.own_cpu)
    if not setup.cores or demand <= setup.cores:
        return _unlimited(times, setup)
    return _Shared(times, setup).run()


def _alone(times: Times) -> Run:
    """Without workers, the training process makes the batch when it wants it."""
    waits = [one + other for one, other in zip(times.blocked, times.cpu)]
    return Run(waits, [one + other for one, other in zip(times.own_blocked, times.own_cpu)])


class _Cycle:
    """Chooses the worker of each batch, as the loader does."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._next = 0
        self._tasks = [0] * setup.workers

    def choose(self) -> int:
        setup = self._setup
        for _ in range(setup.workers):
            worker = self._next
            self._next = (worker + 1) % setup.workers
            if setup.in_order or self._tasks[worker] < setup.prefetch:
                break
        self._tasks[worker] += 1
        return worker

    def done(self, worker: int) -> None:
        self._tasks[worker] -= 1


def _unlimited(times: Times, setup: Setup) -> Run:
    """Nothing shares a processor: a batch has its end when it is sent."""
    count, in_order = len(times.blocked), setup.in_order
    work = [one + other for one, other in zip(times.blocked, times.cpu)]
    own = [one + other for one, other in zip(times.own_blocked, times.own_cpu)]
    cycle = _Cycle(setup)
    free = [_ready(times, worker) - setup.pause for worker in range(setup.workers)]
    results: list[tuple[float, int, int]] = []  # available from, batch, worker
    kept: dict[int, int] = {}
    waits = []
    sent = 0
    now: float = 0
    pinned: float = 0

    def send() -> None:
        nonlocal sent
        if sent < count:
            worker = cycle.choose()
            begin = max(now + setup.reach, free[worker] + setup.pause)
            free[worker] = begin + work[sent]
            heapq.heappush(results, (free[worker] + setup.transfer, sent, worker))
            sent += 1

    for _ in range(setup.workers * setup.prefetch):
        send()
    for place in range(count):
        wanted = now
        while True:
            if in_order and place in kept:
                worker = kept.pop(place)
                break
            there, batch, worker = heapq.heappop(results)
            if setup.pin is None:
                now = max(now, there) + setup.take
            else:
                pinned = max(there, pinned) + setup.take + setup.pin
                now = max(now, pinned)
            if not in_order or batch == place:
                break
            kept[batch] = worker
        cycle.done(worker)
        send()
        waits.append(now - wanted)
        now += own[place]
    return Run(waits, own)


def _ready(times: Times, worker: int) -> float:
    return times.ready[worker] if worker < len(times.ready) else 0


class _Shared:
    """The same, event by event, where processes share the cores.

    At each moment, all that compute progress at the same rate: 1, or less if they want more cores
    than there are. `self._work` is the time that a process has got since the beginning which was
    computing all along; a computation ends when that has grown by its length.
    """

    def __init__(self, times: Times, setup: Setup) -> None:
        self._times = times
        self._setup = setup
        self._cycle = _Cycle(setup)
        self._now: float = 0
        self._work: float = 0
        self._running: list[tuple[float, int]] = []  # end in terms of _work, worker or MAIN
        self._demand: float = 0
        self._events: list[tuple[float, int, int]] = []  # moment, kind, worker or batch
        self._queues: list[deque[tuple[float, int]]] = [deque() for _ in range(setup.workers)]
        self._making = [-1] * setup.workers
        self._free = [_ready(times, worker) - setup.pause for worker in range(setup.workers)]
        self._sent = 0
        self._made_by: list[int] = []
        self._pinned: float = 0
        self._there: deque[int] = deque()
        self._kept: dict[int, None] = {}  # taken, in this order
        self._wanted: float | None = None
        self._taking = False
        self._began_own: float = 0
        self._waits: list[float] = []
        self._own: list[float] = []

    def run(self) -> Run:
        setup, count = self._setup, len(self._times.blocked)
        for _ in range(setup.workers * setup.prefetch):
            self._send()
        self._at(0, WANT, 0)
        while len(self._own) < count:
            self._next()
        return Run(self._waits, self._own)

    def _at(self, moment: float, kind: int, which: int) -> None:
        heapq.heappush(self._events, (moment, kind, which))

    def _next(self) -> None:
        demand, cores = self._demand, self._setup.cores
        rate = 1 if demand <= cores else cores / demand
        event = self._events[0][0] if self._events else None
        if self._running:
            end = self._now + max(self._running[0][0] - self._work, 0) / rate
            if event is None or end <= event:
                self._work = max(self._work, self._running[0][0])
                self._now = end
                self._computed(heapq.heappop(self._running)[1])
                return
        moment, kind, which = heapq.heappop(self._events)
        self._work += (moment - self._now) * rate
        self._now = moment
        self._handle(kind, which)

    def _handle(self, kind: int, which: int) -> None:
        if kind == ARRIVED:
            self._arrived(which)
        elif kind == BEGIN:
            self._making[which] = batch = self._queues[which].popleft()[1]
            self._at(self._now + self._times.blocked[batch], UNBLOCKED, which)
        elif kind == UNBLOCKED:
            self._compute(which, self._times.cpu[self._making[which]])
        elif kind == COMPUTE:
            self._compute(MAIN, self._times.own_cpu[len(self._own)])
        elif kind == WANT:
            self._wanted = self._now
            self._look()
        else:
            self._taken(which)

    def _compute(self, who: int, length: float) -> None:
        self._demand += self._weight(who)
        if length > 0:
            heapq.heappush(self._running, (self._work + length, who))
        else:
            self._computed(who)

    def _weight(self, who: int) -> float:
        return self._setup.main_cores if who == MAIN else 1

    def _computed(self, who: int) -> None:
        self._demand -= self._weight(who)
        if who == MAIN:
            self._own.append(self._now - self._began_own)
            if len(self._own) < len(self._times.blocked):
                self._at(self._now, WANT, 0)
            return
        self._at(self._now + self._setup.transfer, ARRIVED, self._making[who])
        self._making[who] = -1
        self._free[who] = self._now
        self._wake(who)

    def _wake(self, worker: int) -> None:
        """Has an idle worker begin the batch that it got first."""
        if self._making[worker] == -1 and self._queues[worker]:
            sent = self._queues[worker][0][0]
            moment = max(sent + self._setup.reach, self._free[worker] + self._setup.pause)
            self._making[worker] = -2
            self._at(moment, BEGIN, worker)

    def _send(self) -> None:
        if self._sent < len(self._times.blocked):
            worker = self._cycle.choose()
            self._made_by.append(worker)
            self._queues[worker].append((self._now, self._sent))
            self._sent += 1
            self._wake(worker)

    def _arrived(self, batch: int) -> None:
        setup = self._setup
        if setup.pin is not None:
            self._pinned = max(self._now, self._pinned) + setup.take + setup.pin
            self._at(self._pinned, TAKEN, batch)
            return
        self._there.append(batch)
        self._look()

    def _look(self) -> None:
        """What the training process does that wants a batch."""
        if self._wanted is None or self._taking:
            return
        batch = len(self._waits) if self._setup.in_order else next(iter(self._kept), -1)
        if batch in self._kept:
            del self._kept[batch]
            self._hand(batch)
        elif self._there:
            self._taking = True
            self._at(self._now + self._setup.take, TAKEN, self._there.popleft())

    def _taken(self, batch: int) -> None:
        if self._setup.pin is None:
            self._taking = False
        self._kept[batch] = None
        self._look()

    def _hand(self, batch: int) -> None:
        assert self._wanted is not None
        self._waits.append(self._now - self._wanted)
        self._wanted = None
        self._cycle.done(self._made_by[batch])
        self._send()
        self._began_own = self._now
        self._at(self._now + self._times.own_blocked[len(self._own)], COMPUTE, 0)

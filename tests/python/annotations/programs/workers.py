"""Work in other processes, in all the ways that Python has. Nothing here speaks of tracing in the
worker: only the main program starts the trace.

python workers.py HOW WAY   # the pids of the workers, one a line
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import signal
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from dftracer.python import ai, dft_fn, dftracer

TASKS = 6
READS = 20
_all_there: Any = None
log = dft_fn("app")


@ai.data.item
def load(number: int) -> int:
    """One file: an open, READS reads, a close."""
    file = os.open(f"data/{number % 2}", os.O_RDONLY)
    size = sum(len(os.pread(file, 10, at)) for at in range(READS))
    os.close(file)
    return size


def batches(number: int) -> Any:
    yield load(number)


@ai.dataloader.fetch
def recorded_batches(number: int) -> Any:
    yield from batches(number)


@log.log
def work(number: int) -> int:
    """An `item`, in a `fetch`, in a `work`."""
    if _all_there is not None:
        _all_there.wait()
    with ai.compute.forward(args={"number": number}):
        assert list(recorded_batches(number)) == [10 * READS]
    return os.getpid()


def enter(barrier: Any) -> None:
    """All workers take part: the first task of each waits for the others."""
    global _all_there
    _all_there = barrier


def pool(context: Any) -> Any:
    workers = 2
    with context.Pool(workers, enter, (context.Barrier(workers),)) as made:  # ended by SIGTERM
        return made.map(work, range(TASKS), chunksize=1)


def closed_pool(context: Any) -> Any:
    with context.Pool(2, maxtasksperchild=1) as made:
        pids = made.map(work, range(TASKS), chunksize=1)
        made.close()
        made.join()
    return pids


def executor(context: Any) -> Any:
    with ProcessPoolExecutor(2, mp_context=context) as made:
        return list(made.map(work, range(TASKS)))


def _run(number: int, note: str = "") -> None:
    """The pid is left in a file, which is not among those of interest."""
    with open(f"pids/{number}", "w") as file:
        file.write(str(work(number)))


def _end(number: int, how: str) -> None:
    _run(number)
    if how == "_exit":
        os._exit(0)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "term":
        os.kill(os.getpid(), signal.SIGTERM)
    if how == "raise":
        sys.stderr = None
        raise ValueError("the worker's end")
    if how == "exit":
        sys.exit(3)


def _all_of(made: list[Any]) -> list[str]:
    for one in made:
        one.start()
    for one in made:
        one.join()
    pids = []
    for number in range(len(made)):
        with open(f"pids/{number}") as file:
            pids.append(file.read())
    return pids


def processes(context: Any) -> Any:
    """Each ends in another way."""
    ends = ["", "_exit", "kill", "term", "raise", "exit"]
    made = [context.Process(target=_end, args=pair) for pair in enumerate(ends)]
    pids = _all_of(made)
    assert [one.exitcode for one in made] == [0, 0, -9, -15, 1, 3]
    return pids


def _in_thread(number: int) -> None:
    thread = threading.Thread(target=_run, args=(number,))
    thread.start()
    thread.join()


def _grandchild(number: int, way: str) -> None:
    context = multiprocessing.get_context("fork" if way == "spawn" else "spawn")
    child = context.Process(target=_in_thread, args=(number,))
    child.start()
    child.join()


def nested(context: Any) -> Any:
    """Children of children; the ones in between do nothing themselves."""
    way = context.get_start_method()
    return _all_of(
        [context.Process(target=_grandchild, args=(number, way)) for number in range(TASKS)]
    )


class Keeper:
    """Has nodes among its attributes, as a Dataset may."""

    def __init__(self) -> None:
        self.node = ai.comm.send
        self.log = dft_fn("keeper")

    def run(self, number: int) -> None:
        assert self.node is ai.comm.send
        _run(number)

    @ai.comm.send
    def recorded_run(self, number: int) -> None:
        self.run(number)

    __call__ = run


def decorated_targets(context: Any) -> Any:
    """The callable that is sent is itself recorded: a function, a partial, a bound method."""
    keeper = Keeper()
    targets = [
        ai.comm.send(_run),
        ai.comm.send(functools.partial(_run, note="x")),
        ai.comm.send(keeper.run),
        keeper.recorded_run,
        ai.comm.send(keeper),
        ai.comm.send(args={"x": 1})(_run),
    ]
    made = [context.Process(target=each, args=(n,)) for n, each in enumerate(targets)]
    pids = _all_of(made)
    assert [one.exitcode for one in made] == [0] * len(made)
    return pids


WAYS = (pool, closed_pool, executor, processes, nested, decorated_targets)


def main(how: str, way: str) -> None:
    os.mkdir("data")
    os.mkdir("pids")
    for number in range(2):
        with open(f"data/{number}", "w") as file:
            file.write("x" * 1000)
    dftracer.initialize_log("traces/t.pfw", "data")
    context = multiprocessing.get_context(way)
    pids = next(each for each in WAYS if each.__name__ == how)(context)
    print(*pids)


if __name__ == "__main__":
    main(*sys.argv[1:])

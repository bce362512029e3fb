"""Makes the partial tables of a report in processes of this machine, for `--cluster local:N`.

Each block is read by a process of its own, N at a time. Orders and tables are files in the scratch
directory of the report, which only its user can enter. Nothing listens on a socket: a Dask
scheduler on the loopback interface would run code for every user of the machine.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dftracer import _cleanup
from dftracer.errors import DFTracerError
from dftracer.reports.store import Shifts, Store
from dftracer.trace.stream import Damage

_ORDERS = "orders.json"
_OUTCOME = "outcome.json"
# The package is imported from where this process found it, not from the current directory.
_START = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    "from dftracer.reports.local_workers import work; work(sys.argv[1])"
)
_PR_SET_PDEATHSIG = 1


class _Task:
    """A block, and the process that reads it, if one is running."""

    def __init__(self, place: str, orders: dict[str, Any]) -> None:
        self.place = place
        self.child: subprocess.Popen[bytes] | None = None
        self.tries = 0
        self._orders = orders

    def start(self) -> subprocess.Popen[bytes]:
        self.tries += 1
        os.makedirs(self.place, mode=0o700, exist_ok=True)
        with open(os.path.join(self.place, _ORDERS), "w", encoding="utf-8") as file:
            json.dump(self._orders, file)
        with open(os.path.join(self.place, "errors"), "wb") as errors:
            self.child = _cleanup.start(
                [sys.executable, "-c", _START, self.place, *sys.path],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,  # closed when the process ends
                stderr=errors,
            )
        return self.child

    def end(self) -> dict[str, Any] | None:
        """The outcome of the process; None if it died before it was done."""
        assert self.child is not None
        _cleanup.end(self.child)
        try:
            with open(os.path.join(self.place, _OUTCOME), encoding="utf-8") as file:
                found: dict[str, Any] = json.load(file)
        except (OSError, ValueError):
            return None
        return found

    def why(self) -> str:
        assert self.child is not None
        code = self.child.returncode
        if code < 0:
            return f"killed by {signal.Signals(-code).name}"
        with contextlib.suppress(OSError):
            text = Path(self.place, "errors").read_text(errors="replace")
            lines = [line for line in text.split("\n") if line.strip()]
            if lines:
                return " ".join(lines[-1].split())
        return f"status {code}"


def add_local_blocks(
    store: Store,
    files: Sequence[Path],
    parts: Sequence[tuple[int, Sequence[Path]]],
    shifts: Shifts,
    processes: int,
    retries: int,
) -> None:
    """Adds the tables in the order of the blocks, whichever is done first."""
    every = [str(file.absolute()) for file in files]
    tasks = []
    for number, (first, part) in enumerate(parts):
        names = [str(file.absolute()) for file in part]
        orders = {
            "first": first,
            "files": names,
            "every": every,
            "shifts": [(path, host, ns) for (path, host), ns in shifts.items()],
            "parent": os.getpid(),
        }
        tasks.append(_Task(os.path.join(store.place, f"block-{number}"), orders))
    waiting = list(reversed(tasks))
    done: dict[str, list[dict[str, Any]]] = {}
    loaded = 0
    running = selectors.DefaultSelector()
    try:
        while loaded < len(tasks):
            while waiting and len(running.get_map()) < processes:
                task = waiting.pop()
                running.register(task.start().stdout, selectors.EVENT_READ, task)  # type: ignore[arg-type]
            for key, _ in running.select():
                if os.read(key.fd, 4096):
                    continue
                task = key.data
                running.unregister(key.fileobj)
                outcome = task.end()
                if outcome is None:
                    if task.tries > retries:
                        raise DFTracerError(
                            f"a process that reads {len(task._orders['files'])} of the traces "
                            f"died {task.tries} times: {task.why()}",
                            exit_code=1,
                        )
                    _cleanup.remove(task.place)
                    waiting.append(task)
                elif "error" in outcome:
                    raise DFTracerError(outcome["error"], exit_code=outcome["exit_code"])
                else:
                    done[task.place] = outcome["damages"]
            while loaded < len(tasks) and tasks[loaded].place in done:
                _load(store, tasks[loaded].place, done.pop(tasks[loaded].place))
                loaded += 1
    finally:
        running.close()
        for task in tasks:
            if task.child is not None:
                _cleanup.end(task.child)


def _load(store: Store, place: str, damages: list[dict[str, Any]]) -> None:
    tables = sorted(Path(place).glob("*.parquet"))
    store.load({table.stem: table.read_bytes() for table in tables})
    store.damages += [Damage(**one) for one in damages]
    _cleanup.remove(place)


def work(place: str) -> None:
    """Entry point of a worker process: reads a block."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles it and ends its children
    with open(os.path.join(place, _ORDERS), encoding="utf-8") as file:
        orders = json.load(file)
    _die_with(orders["parent"])
    outcome: dict[str, Any]
    try:
        with Store(threads=1, parent=place) as store:
            files, every = (list(map(Path, orders[key])) for key in ("files", "every"))
            shifts = {(path, host): ns for path, host, ns in orders["shifts"]}
            store.add_block(files, orders["first"], every, shifts)
            for name, data in store.export().items():
                Path(place, f"{name}.parquet").write_bytes(data)
            outcome = {"damages": [dataclasses.asdict(damage) for damage in store.damages]}
    except DFTracerError as error:
        outcome = {"error": str(error), "exit_code": error.exit_code}
    part = os.path.join(place, "outcome.part")
    with open(part, "w", encoding="utf-8") as file:
        json.dump(outcome, file)
    os.replace(part, os.path.join(place, _OUTCOME))


def _die_with(parent: int) -> None:
    """A killed parent cannot end its children."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)

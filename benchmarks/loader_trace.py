"""The trace of a training that reads through DataLoader workers, with the lineage of its batches.

Made line by line: a real training of ten million calls takes longer than the report that is to be
measured.
"""

from __future__ import annotations

import contextlib
import gzip
from pathlib import Path
from typing import TextIO

WORKERS = 4
ITEMS = 32  # per batch
CALLS = 10  # per item
FILES = 64
BEGIN = 1_794_800_000_000_000  # microseconds
HOST = "6e6f646531000000"
MAIN = 100


def make_loader_trace(events: int, directory: Path, compute: int) -> Path:
    """compute: microseconds per step. A batch takes 2.9 ms in one of four workers, so that training
    waits for every batch below 0.7 ms."""
    directory.mkdir()
    count = events // (ITEMS * (CALLS + 1) + 5)
    free = [0] * WORKERS
    now = 0
    names = ["main", *(f"worker-{number}" for number in range(WORKERS))]
    with contextlib.ExitStack() as stack:
        files = [
            stack.enter_context(gzip.open(directory / f"{name}.pfw.gz", "wt", 1)) for name in names
        ]
        for number, file in enumerate(files):
            _head(file, MAIN + number)
        for batch in range(count):
            worker = batch % WORKERS
            begin = free[worker] + 10
            free[worker] = _batch(files[1 + worker], batch, worker, begin)
            wanted, now = now, max(now, free[worker]) + 5
            told = f'"loader":0,"pass":0,"batch":{batch},"worker":{worker}'
            step = f'"epoch":0,"step":{batch}'
            _line(files[0], MAIN, "dataloader", "arrive", now - 2, 0, told)
            _line(files[0], MAIN, "dataloader", "fetch", wanted, now - wanted, f"{told},{step}")
            _line(files[0], MAIN, "compute", "forward", now, compute // 2, step)
            now += compute // 2
            _line(files[0], MAIN, "compute", "backward", now, compute - compute // 2, step)
            now += compute - compute // 2
    return directory


def _head(file: TextIO, pid: int) -> None:
    file.write("[\n")
    start = f'"ppid":{MAIN if pid > MAIN else 1},"version":"v0"'
    _meta(file, pid, "HH", "node1", HOST)
    for number in range(FILES):
        _meta(file, pid, "FH", f"/data/shard-{number}.tar", f"{number + 1:016x}")
    _line(file, pid, "dftracer", "start", 0, 0, start)


def _meta(file: TextIO, pid: int, kind: str, name: str, value: str) -> None:
    file.write(
        f'{{"id":1,"name":"{kind}","cat":"dftracer","pid":{pid},"tid":{pid},"ph":"M",'
        f'"args":{{"hhash":"{HOST}","name":"{name}","value":"{value}"}}}}\n'
    )


def _line(file: TextIO, pid: int, cat: str, name: str, ts: int, dur: int, args: str) -> None:
    file.write(
        f'{{"id":1,"name":"{name}","cat":"{cat}","pid":{pid},"tid":{pid},"ts":{BEGIN + ts},'
        f'"dur":{dur},"ph":"X","args":{{"hhash":"{HOST}",{args}}}}}\n'
    )


def _batch(file: TextIO, batch: int, worker: int, begin: int) -> int:
    """Gives its end."""
    pid, now = MAIN + 1 + worker, begin
    read = f'"fhash":"{1 + batch // 16 % FILES:016x}","count":65536,"ret":65536'
    for item in range(ITEMS):
        first = now
        for call in range(CALLS):
            spent = 3 + (call * 7 + item) % 9
            _line(file, pid, "POSIX", "read", now + 1, spent, read)
            now += spent + 2
        _line(file, pid, "data", "item", first, now - first, f'"index":{item},"batch":{batch}')
    told = f'"loader":0,"pass":0,"batch":{batch},"worker":{worker},"parent":{MAIN}'
    _line(file, pid, "dataloader", "batch", begin, now - begin, told)
    return now

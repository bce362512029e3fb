"""The partial tables of a report from the workers of a Dask cluster.

A task is a block: some neighbouring trace files, read by one worker into a store of its own. Its
partial tables come back as Parquet and are added to those of the others; sql/final does the rest,
as on one machine. A task whose worker dies is done again by another.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dftracer.errors import DFTracerError
from dftracer.reports.store import Shifts, Store

INSTALL = "Dask is not installed: pip install 'pydftracer[report,dask]'"
# Bytes of trace files that are worth a task.
BLOCK = 64 << 20
RETRIES = 3


def blocks(files: Sequence[Path], workers: int = 1) -> list[tuple[int, list[Path]]]:
    """Neighbouring files, and the number of the first one; some blocks a worker, none too large."""
    sizes = [file.stat().st_size if file.exists() else 0 for file in files]
    limit = min(BLOCK, max(sum(sizes) // (2 * workers), 1))
    found: list[tuple[int, list[Path]]] = []
    room = 0
    for number, (file, size) in enumerate(zip(files, sizes)):
        if not found or room < size:
            found.append((number, []))
            room = limit
        found[-1][1].append(file)
        room -= size
    return found


def make_block(
    first: int, files: Sequence[str], every: Sequence[str], shifts: Shifts
) -> tuple[Any, Any]:
    """On a worker: the partial tables of a block, and what of it could not be read."""
    with Store(threads=1) as store:
        named = [Path(file) for file in every]
        store.add_block([Path(file) for file in files], first, named, shifts)
        return store.export(), store.damages


def add_blocks(
    store: Store, files: Sequence[Path], address: str, shifts: Shifts | None = None
) -> None:
    ahead = {(os.path.abspath(path), host): ns for (path, host), ns in (shifts or {}).items()}
    with _client(address) as (client, workers):
        every = [str(file.absolute()) for file in files]
        futures = [
            client.submit(
                make_block,
                first,
                [str(file.absolute()) for file in part],
                every,
                ahead,
                pure=False,
                retries=RETRIES,
            )
            for first, part in blocks(files, workers)
        ]
        try:
            for future in futures:
                tables, damages = future.result()
                store.load(tables)
                store.damages += damages
                future.release()
        except (DFTracerError, KeyboardInterrupt):
            raise
        except Exception as error:
            text = " ".join(str(error).split())
            raise DFTracerError(f"the cluster failed: {text}", exit_code=1) from None


@contextlib.contextmanager
def _client(address: str) -> Iterator[tuple[Any, int]]:
    try:
        import distributed
    except ImportError:
        raise DFTracerError(INSTALL, exit_code=1) from None
    kind, _, number = address.partition(":")
    if kind == "local":
        if not number.isdecimal() or int(number) < 1:
            raise DFTracerError(f"--cluster local:N needs a number of processes, not {number!r}")
        with (
            distributed.LocalCluster(
                n_workers=int(number),
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
                silence_logs=50,
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client, int(number)
        return
    try:
        client = distributed.Client(address, timeout="10s")
    except (OSError, ValueError, TimeoutError) as error:
        text = " ".join(str(error).split()) or "no answer"
        raise DFTracerError(f"{address}: no Dask scheduler there: {text}", exit_code=1) from None
    with client:
        yield client, max(len(client.scheduler_info()["workers"]), 1)

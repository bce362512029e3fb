"""Makes the partial tables of a report in several processes, here or in a Dask cluster.

A task is a block: consecutive trace files, read by one process into its own store. Its partial
tables are returned as Parquet and added up; sql/final does the rest, as in one process. A task
whose process dies is repeated by another.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dftracer.errors import DFTracerError
from dftracer.reports.store import Shifts, Store

INSTALL = "Dask is not installed: pip install 'pydftracer[report,dask]'"
# Bytes of trace files per task.
BLOCK = 64 << 20
RETRIES = 3
MOST_PROCESSES = 1024


class Tls(NamedTuple):
    """Files in PEM format, as Dask's own options name them."""

    ca_file: str
    cert: str
    key: str


class Cluster(NamedTuple):
    """The value of `--cluster`: local processes, or the address of a Dask scheduler."""

    address: str
    processes: int = 0
    tls: Tls | None = None

    @property
    def warning(self) -> str | None:
        if self.processes or self.address.startswith("tls://"):
            return None
        return (
            f"{self.address}: without TLS, everyone who can reach this scheduler can run code on "
            "its workers and on this machine; see docs/report.md"
        )


def parse(address: str, tls: Tls | None = None) -> Cluster:
    kind, _, number = address.partition(":")
    if kind != "local":
        if tls is not None and not address.startswith("tls://"):
            raise DFTracerError(f"{address}: TLS files need an address that begins with tls://")
        return Cluster(address, tls=tls)
    if tls is not None:
        raise DFTracerError("--cluster local:N uses no network and needs no TLS files")
    if not (number.isascii() and number.isdecimal() and 1 <= int(number) <= MOST_PROCESSES):
        raise DFTracerError(
            f"--cluster local:N needs a number of processes from 1 to {MOST_PROCESSES}, "
            f"not {number!r}"
        )
    return Cluster(address, int(number))


def blocks(files: Sequence[Path], workers: int = 1) -> list[tuple[int, list[Path]]]:
    """Consecutive files, and the number of the first one; some blocks per worker, none too
    large."""
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
    """In a worker: the partial tables of a block, and what could not be read."""
    with Store(threads=1) as store:
        named = [Path(file) for file in every]
        store.add_block([Path(file) for file in files], first, named, shifts)
        return store.export(), store.damages


def add_blocks(
    store: Store, files: Sequence[Path], cluster: Cluster, shifts: Shifts | None = None
) -> None:
    ahead = {(os.path.abspath(path), host): ns for (path, host), ns in (shifts or {}).items()}
    if cluster.processes:
        from dftracer.reports.local_workers import add_local_blocks

        parts = blocks(files, cluster.processes)
        add_local_blocks(store, files, parts, ahead, cluster.processes, RETRIES)
    else:
        _add_dask_blocks(store, files, cluster, ahead)


def _add_dask_blocks(store: Store, files: Sequence[Path], cluster: Cluster, ahead: Shifts) -> None:
    with _client(cluster) as (client, workers):
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
def _client(cluster: Cluster) -> Iterator[tuple[Any, int]]:
    try:
        import distributed
    except ImportError:
        raise DFTracerError(INSTALL, exit_code=1) from None
    options: dict[str, Any] = {}
    if cluster.tls is not None:
        options["security"] = distributed.Security(
            tls_ca_file=cluster.tls.ca_file,
            tls_client_cert=cluster.tls.cert,
            tls_client_key=cluster.tls.key,
            require_encryption=True,
        )
    try:
        client = distributed.Client(cluster.address, timeout="10s", **options)
    except (OSError, TypeError, ValueError, TimeoutError) as error:
        text = " ".join(str(error).split()) or "no answer"
        if cluster.address.startswith("tls://") and cluster.tls is None:
            text += " (are --tls-ca-file, --tls-cert and --tls-key missing?)"
        address = cluster.address
        raise DFTracerError(
            f"{address}: cannot connect to a Dask scheduler: {text}", exit_code=1
        ) from None
    with client:
        yield client, max(len(client.scheduler_info()["workers"]), 1)

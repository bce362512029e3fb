"""DuckDB for commands and reports: interruptible statements, quoting, file names."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from dftracer import _cleanup
from dftracer.errors import DFTracerError

if TYPE_CHECKING:
    import duckdb

INSTALL = "DuckDB is not installed: pip install 'pydftracer[report]'"
# Seconds after which a statement that ignores an interruption is abandoned.
PATIENCE = 10.0

Result = TypeVar("Result")


def connect(*, ordered: bool = True) -> duckdb.DuckDBPyConnection:
    """ordered: rows keep the order of their source, which costs memory."""
    try:
        import duckdb
    except ImportError:
        raise DFTracerError(INSTALL, exit_code=1) from None
    connection = duckdb.connect()
    # DuckDB prints it to stdout if Python is interactive, as it is with -c.
    # In Jupyter without ipywidgets it refuses the setting, and has no bar.
    with contextlib.suppress(duckdb.Error):
        connection.execute("set enable_progress_bar = false")
    if not ordered:
        connection.execute("set preserve_insertion_order = false")
    return connection


def literal(text: str) -> str:
    """An SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


@contextlib.contextmanager
def plain(directory: str) -> Iterator[str]:
    """The directory under a name that DuckDB takes literally: even if quoted, it reads a backslash
    as a slash when it makes directories, and puts `.wal` before a question mark."""
    if re.fullmatch(r"[\w/.,:+=@%^ -]*", directory):
        yield directory
        return
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        alias = f"/proc/self/fd/{handle}"
        yield alias if os.path.isdir(alias) else directory
    finally:
        os.close(handle)


def pattern(path: str) -> str:
    """A file name for DuckDB's readers, with glob characters escaped."""
    return re.sub(r"[*?\[]", r"[\g<0>]", path)


def error_text(error: BaseException) -> str:
    """The first line of DuckDB's message; hints and the statement follow it."""
    return " ".join(str(error).split("\n")[0].split())


def interruptible(
    connection: duckdb.DuckDBPyConnection,
    work: Callable[..., Result],
    *arguments: Any,
    **options: Any,
) -> Result:
    """Calls `work` in another thread, where DuckDB does not check for signals, and interrupts it
    when the main thread gets one. In the main thread, Ctrl-C never ends a long join, and ends
    other statements with an error of DuckDB's own."""
    if threading.current_thread() is not threading.main_thread():
        return work(*arguments, **options)
    from concurrent.futures import Future

    outcome: Future[Result] = Future()

    def run() -> None:
        try:
            outcome.set_result(work(*arguments, **options))
        except BaseException as error:
            outcome.set_exception(error)

    thread = threading.Thread(target=run, name=_cleanup.LEFT_ALONE, daemon=True)
    try:
        with _cleanup.whole():
            thread.start()
        return outcome.result()
    except BaseException:
        if thread.ident is not None and not outcome.done():
            _stop(connection, thread)
        raise


def _stop(connection: duckdb.DuckDBPyConnection, thread: threading.Thread) -> None:
    # Between two statements there is nothing to interrupt: try again.
    for _ in range(int(PATIENCE / 0.05)):
        with contextlib.suppress(Exception):
            connection.interrupt()
        thread.join(0.05)
        if not thread.is_alive():
            return

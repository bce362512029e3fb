from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any

_Paths = Sequence[str | bytes | PathLike[str]]

def summarise(
    paths: _Paths,
    *,
    threads: int = ...,
    by_file: bool = ...,
    by_path: bool = ...,
    samples: int = ...,
    progress: Callable[[int], object] | None = ...,
) -> dict[str, Any]: ...
def stream(
    paths: _Paths,
    *,
    columns: Sequence[str] | None = ...,
    threads: int = ...,
    nanoseconds: bool = ...,
    all_rows: bool = ...,
    summary: bool = ...,
    explain: _Paths = ...,
    coded: Sequence[str] = ...,
) -> tuple[object, object]: ...
def stream_result(handle: object, /) -> dict[str, Any] | None: ...
def sweep(
    spans: object, windows: object, *, shift: int = ..., gather: int = ...
) -> tuple[object, dict[int, bytes]]: ...
def union_length(packed: Sequence[bytes], /) -> int: ...
def stream_words(handle: object, column: str, /) -> object: ...
def longs_stream(handle: object, /) -> object: ...
def schema(*, columns: Sequence[str] | None = ..., coded: Sequence[str] = ...) -> object: ...
def export(
    format: str,
    paths: _Paths,
    output: str | bytes | PathLike[str] | int | None,
    *,
    threads: int = ...,
    progress: Callable[[int], object] | None = ...,
) -> dict[str, Any]: ...
def view(
    paths: _Paths,
    output: str | bytes | PathLike[str] | int | None,
    *,
    begin: int | None = ...,
    end: int | None = ...,
    pids: Sequence[int] | None = ...,
    limit: int = ...,
    threads: int = ...,
) -> dict[str, Any]: ...
def probe(paths: _Paths, /) -> list[dict[str, Any]]: ...
def columns() -> list[str]: ...
def calls() -> list[tuple[str, str, bool, bool]]: ...
def merge(
    paths: _Paths,
    out: str | bytes | PathLike[str],
    *,
    threads: int = ...,
    level: int = ...,
    align: str = ...,
    progress: Callable[[int], object] | None = ...,
) -> dict[str, Any]: ...
def split(
    paths: _Paths,
    stem: str | bytes | PathLike[str],
    end: str,
    by: str,
    number: int,
    *,
    start: int | None = ...,
    stop: int | None = ...,
    align: str = ...,
    threads: int = ...,
    level: int = ...,
    progress: Callable[[int], object] | None = ...,
) -> dict[str, Any]: ...
def clocks(paths: _Paths, *, threads: int = ...) -> dict[str, Any]: ...
def copy(
    path: str | bytes | PathLike[str],
    out: str | bytes | PathLike[str],
    *,
    repair: bool = ...,
    threads: int = ...,
    level: int = ...,
    member: int = ...,
    progress: Callable[[int], object] | None = ...,
) -> dict[str, Any]: ...

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
) -> tuple[object, object]: ...
def stream_result(handle: object, /) -> dict[str, Any] | None: ...
def schema(*, columns: Sequence[str] | None = ...) -> object: ...
def export(
    format: str,
    paths: _Paths,
    output: str | bytes | PathLike[str],
    *,
    threads: int = ...,
    progress: Callable[[int], object] | None = ...,
) -> dict[str, Any]: ...
def probe(paths: _Paths, /) -> list[dict[str, Any]]: ...
def columns() -> list[str]: ...

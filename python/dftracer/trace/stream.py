"""The events of a trace as an Arrow stream, for DuckDB, pandas, polars and pyarrow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dftracer import _reader
from dftracer.errors import DFTracerError
from dftracer.trace.files import PathLike, find_traces, without_copies

COLUMNS: tuple[str, ...] = tuple(_reader.columns())
# Problems that are not damage.
ODD = ("unpaired",)


@dataclass
class Damage:
    """How much was read, and what could not be read."""

    files: int = 0
    bytes_read: int = 0
    bytes_on_disk: int = 0
    records: int = 0
    events: int = 0
    damaged: bool = False
    troubles: dict[str, int] = field(default_factory=dict)
    # Reported, but not damage: spans that were still open when recording ended.
    odd: dict[str, int] = field(default_factory=dict)
    problems: list[dict[str, Any]] = field(default_factory=list)

    @staticmethod
    def of(outcome: dict[str, Any]) -> Damage:
        total = outcome["total"]
        found = Damage(
            files=len(outcome["files"]),
            bytes_read=total["bytes_read"],
            bytes_on_disk=sum(file["size"] for file in outcome["files"]),
            records=total["records"],
            events=total["events"],
            damaged=total["damaged"],
            troubles={k: n for k, n in total["troubles"].items() if k not in ODD},
            odd={k: n for k, n in total["troubles"].items() if k in ODD},
        )
        for problem in total["problems"]:
            path = outcome["files"][problem["file"]]["path"]
            found.problems.append({**problem, "file": path})
        # Every byte of an undamaged file must have been read.
        for file in outcome["files"]:
            report = file["report"]
            if not report["damaged"] and report["bytes_read"] != file["size"]:
                detail = f"{report['bytes_read']} of {file['size']} bytes read"
                found.add("wrong_size", file["path"], "the file changed while it was read", detail)
        return found

    def add(self, kind: str, path: str, text: str, detail: str) -> None:
        self.damaged = True
        self.troubles[kind] = self.troubles.get(kind, 0) + 1
        place = {"file": path, "offset": 0, "line": 0, "size": 0}
        self.problems.append({"kind": kind, "text": text, **place, "detail": detail})


class Longs:
    """A table that the reader has made. DuckDB may read it more than once."""

    def __init__(self, handle: object) -> None:
        self._handle = handle

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return _reader.longs_stream(self._handle)


class Trace:
    """Files that are read as one table. Each use as an Arrow stream reads them again.

    summary: collect what `summarise_all` returns in the same pass, see `found`. explain: other
    files in which unknown hashes are looked up. coded: text columns that are returned as numbers,
    see `words`.
    """

    def __init__(
        self,
        files: Sequence[Path],
        columns: Sequence[str] | None = None,
        threads: int = 0,
        time_unit: str = "us",
        records: str = "events",
        summary: bool = False,
        explain: Sequence[Path] = (),
        coded: Sequence[str] = (),
    ) -> None:
        if time_unit not in ("us", "ns"):
            raise DFTracerError(f"time_unit must be us or ns, not {time_unit!r}")
        if records not in ("events", "all"):
            raise DFTracerError(f"records must be events or all, not {records!r}")
        for name in columns or ():
            if name not in COLUMNS:
                raise DFTracerError(f"no column {name!r}; the columns are {', '.join(COLUMNS)}")
        self.files = list(files)
        self.columns = tuple(columns) if columns is not None else COLUMNS
        self._threads = threads
        self._nanoseconds = time_unit == "ns"
        self._all_rows = records == "all"
        self._summary = summary
        self._explain = list(explain)
        self._coded = list(coded)
        self._handle: object = None

    def __arrow_c_schema__(self) -> object:
        return _reader.schema(columns=self.columns, coded=self._coded)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        capsule, self._handle = _reader.stream(
            self.files,
            columns=self.columns,
            threads=self._threads,
            nanoseconds=self._nanoseconds,
            all_rows=self._all_rows,
            summary=self._summary,
            explain=self._explain,
            coded=self._coded,
        )
        return capsule

    @property
    def found(self) -> dict[str, Any] | None:
        """Everything that the last stream found, after it was read to its end."""
        return None if self._handle is None else _reader.stream_result(self._handle)

    def words(self, column: str) -> Longs:
        """The texts of a coded column, as a table of `code` and `word`."""
        return Longs(_reader.stream_words(self._handle, column))

    @property
    def damage(self) -> Damage | None:
        """The damage that the last stream found, after it was read to its end."""
        result = self.found
        return None if result is None else Damage.of(result)

    @property
    def rows(self) -> int | None:
        """Rows of the last stream, after it was read to its end."""
        result = self.found
        return None if result is None else int(result["rows"])


def read(
    paths: PathLike | Iterable[PathLike],
    *,
    columns: Sequence[str] | None = None,
    threads: int = 0,
    time_unit: str = "us",
    records: str = "events",
) -> Trace:
    """The events of trace files, or of directories of trace files, as an Arrow stream.

    columns: some of COLUMNS (default: all). threads: 0 is one per core. time_unit: of ts and dur,
    "us" or "ns". records: "events", or "all" to include metadata and the tracer's own records.
    """
    given = [paths] if isinstance(paths, (str, bytes)) or hasattr(paths, "__fspath__") else paths
    files = find_traces(given)  # type: ignore[arg-type]
    if not files:
        raise DFTracerError("no trace files (.pfw, .pfw.gz) found")
    return Trace(without_copies(files), columns, threads, time_unit, records)

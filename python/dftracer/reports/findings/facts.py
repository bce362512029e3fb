"""What rules work with: the tables of a report as facts, and the case that a rule makes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Optional

from dftracer._format import counted, duration
from dftracer._names import shorten
from dftracer.reports.bounds import busy_words
from dftracer.reports.dataloader_workers import Start, starts, waits
from dftracer.reports.model import SCHEMAS
from dftracer.reports.store import SMALL

# A stdio call that takes less than this has only touched its buffer.
BUFFERED = 1_000  # nanoseconds, mean of the small calls of a name
# Findings that concern less time are not reported: of rules about I/O, and of all others.
IO_FLOOR = 20_000_000
FLOOR = 1_000_000

Row = dict[str, Any]


@dataclass
class Case:
    """What a rule found."""

    title: str
    evidence: str
    concerns: int
    whole: int
    base: str  # what `whole` is: "of the 5.03 s that the job took"
    timed: bool = True  # these are nanoseconds
    advice: str = ""  # in place of the rule's
    files: tuple[str, ...] = ()  # that it concerns most, costliest first
    estimated: bool = False  # the time follows from averages or proportions

    @property
    def share(self) -> float:
        return self.concerns / self.whole if self.whole > 0 else 0.0


@dataclass
class Facts:
    """The tables, and values that several rules need."""

    tables: dict[str, list[Row]]
    overview: Row = field(default_factory=dict)
    split: dict[str, int] = field(default_factory=dict)
    starts: list[Start] = field(default_factory=list)

    def __post_init__(self) -> None:
        rows = self.tables["overview"]
        self.overview = rows[0] if rows else {}
        names = [c.name for c in SCHEMAS["steps"].columns if c.name.endswith("_ns")]
        self.split = {name: sum_of(self.tables["steps"], name) for name in names}
        self.starts = starts(self.tables["processes"], self.tables["steps"])

    @property
    def processes(self) -> list[Row]:
        return self.tables["processes"]

    @property
    def trains(self) -> bool:
        return self.split["dur_ns"] > 0

    def lifetime(self, wanted: Callable[[Row], Any] = lambda process: True) -> int:
        return sum(
            process["life_ns"]
            for process in self.processes
            if process["life_ns"] is not None and wanted(process)
        )

    @property
    def busy(self) -> int:
        """Time in which processes neither waited for others nor slept."""
        return self.overview.get("busy_ns") or 0

    @property
    def of_busy(self) -> str:
        return busy_words(self.overview)

    def wall(self, total: int) -> int:
        """Scales summed durations of I/O calls to wall-clock time.

        With parallel threads and nested calls, the sum exceeds the time in which a call was open.
        """
        io = self.overview.get("io_ns") or 0
        every = sum_of(self.calls(lambda call: True), "total_ns")
        return total if every <= io else total * io // every

    def scaled(self) -> bool:
        """Whether wall() has to scale: then the time of some calls is an estimate."""
        io = self.overview.get("io_ns") or 0
        return sum_of(self.calls(lambda call: True), "total_ns") > io

    def places(self, kinds: Collection[str]) -> tuple[str, ...]:
        """The files on which calls of these kinds took the most time."""
        rows = [r for r in self.tables["costs"] if r["kind"] in kinds and r["place"] == "file"]
        return tuple(row["path"] for row in sorted(rows, key=lambda row: -row["total_ns"]))

    def place(self, kinds: Collection[str], total: int) -> str:
        """Where calls of these kinds took most of their time: a file or directory, and a line."""
        rows = [row for row in self.tables["costs"] if row["kind"] in kinds]
        files = [row for row in rows if row["place"] == "file"]
        folders = [row for row in rows if row["place"] == "directory"]
        file = max(files, key=lambda row: row["total_ns"], default=None)
        lines = [row for row in rows if row["place"] == "line"]
        line = max(lines, key=lambda row: row["total_ns"], default=None)
        at = f"; most by {shown_path(line['path'])}: {cost(line)}" if line is not None else ""
        folder = max(folders, key=lambda row: row["total_ns"], default=None)
        if file is None:
            return at
        if folder is None or folder["files"] == 1 or 2 * file["total_ns"] >= total:
            return f"; most on {shown_path(file['path'])}: {cost(file)}{at}"
        return (
            f"; most in {shown_path(folder['path'])}: {cost(folder)} on "
            f"{counted(folder['files'], 'file')}, {shown_path(file['path'])} alone {cost(file)}{at}"
        )

    @property
    def exposed(self) -> bool:
        """Whether the program waited for I/O."""
        if not self.trains:
            return True
        waited = self.split["fetch_ns"] - sum(waits(self.starts).values())
        fetch = (waited + self.split["loose_io_ns"]) / self.split["dur_ns"]
        computing = [p for p in self.processes if p["compute_ns"]]
        life = self.lifetime(lambda process: process["compute_ns"])
        unhidden = sum(p["unhidden_io_ns"] for p in computing) / life if life > 0 else 0.0
        return fetch >= 0.05 or unhidden >= 0.05

    def top_file(self, kind: str) -> str | None:
        rows = (r for r in self.tables["costs"] if r["kind"] == kind and r["place"] == "file")
        most = max(rows, key=lambda row: row["total_ns"], default=None)
        return None if most is None else most["path"]

    def transfers(self, direction: str) -> list[Row]:
        """Transfers of files, by size; those through pipes have no class."""
        io = {layer["cat"] for layer in self.tables["layers"] if layer["class"] == "io"}
        return [
            row
            for row in self.tables["sizes"]
            if row["direction"] == direction and row["bytes"] and row["cat"] in io
        ]

    def median_of(self, transfer: Row) -> int:
        """The median duration of the call that a row of transfers belongs to, rounded up: traces
        have whole microseconds, and a median below one is 0."""
        rows = (c for c in self.tables["calls"] if c["cat"] == transfer["cat"])
        found = next((c["p50_ns"] or 0 for c in rows if c["name"] == transfer["name"]), 0)
        return int(found) + 1000

    def buffered(self, direction: str) -> set[str]:
        """stdio calls whose small transfers only touch a buffer."""
        sums: dict[str, list[int]] = {}
        for row in self.transfers(direction):
            if row["cat"] == "STDIO" and row["upper"] <= SMALL:
                of = sums.setdefault(row["name"], [0, 0])
                of[0] += row["total_ns"]
                of[1] += row["count"]
        return {name for name, (total, count) in sums.items() if total < BUFFERED * count}

    def calls(self, wanted: Callable[[Row], Any]) -> list[Row]:
        return [call for call in self.tables["calls"] if call["class"] == "io" and wanted(call)]


Check = Callable[[Facts], Optional[Case]]


@dataclass(frozen=True)
class Rule:
    """A check, the shares from which it is low, medium and high, and advice."""

    name: str
    check: Check
    shares: tuple[float, float, float]
    advice: str
    floor: int = FLOOR  # nanoseconds that it must concern
    # Rules that say why: if one of these has at least half of its time, that one comes first.
    explained_by: tuple[str, ...] = ()


def sum_of(rows: list[Row], column: str) -> int:
    return sum(row[column] for row in rows)


def shown_path(text: str) -> str:
    return shorten(text, 120)


def cost(row: Row) -> str:
    return f"{counted(row['calls'], 'call')}, {duration(row['total_ns'])}"


def median(values: list[int]) -> int:
    return sorted(values)[len(values) // 2] if values else 0

"""Places in programs that made I/O calls, from the descriptions that traces contain.

A description is `file:line function`, with ` > module.function` for what the line called if that
is Python code of a library, and ` @ module+0xoffset [build id]` for the native caller; or the last
part alone. src/intercept/call_site.hpp makes them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dftracer.reports.model import SCHEMAS, Table
from dftracer.reports.symbols import Symbols

_NATIVE = re.compile(r"(?P<module>.+)\+0x(?P<offset>[0-9a-f]+)(?: \[(?P<build>[0-9a-f]{16})\])?\Z")
_PYTHON = re.compile(
    r"(?P<file>.*):(?P<line>[0-9]+) (?P<function>\S+)(?: > (?P<callee>\S+))?\Z", re.DOTALL
)


@dataclass(frozen=True)
class Site:
    """None in place of what is not known, or does not apply."""

    text: str
    file: str | None = None
    line: int | None = None
    function: str | None = None
    callee: str | None = None
    module: str | None = None
    offset: int | None = None
    build: str | None = None

    @property
    def line_text(self) -> str | None:
        """`data.py:42 Data.__getitem__`; None for native code."""
        if self.file is None:
            return None
        name = self.file.rpartition("/")[2] or self.file
        return f"{name}:{self.line} {self.function}"

    def native(self, symbols: Symbols) -> str | None:
        """`libhdf5.so.200 H5FD_read`, or with an offset in place of an unknown function."""
        if self.module is None or self.offset is None:
            return None
        name = self.module.rpartition("/")[2] or self.module
        symbol = symbols.function_at(self.module, self.offset, self.build)
        return f"{name} {symbol}" if symbol else f"{name}+0x{self.offset:x}"


def parse(text: str) -> Site:
    """Never fails: an unknown description is only a text."""
    python, separator, native = text.rpartition(" @ ")
    found = _PYTHON.match(python) if separator else None
    caller = _NATIVE.match(native)
    if found is None:
        found = _PYTHON.match(text)
        caller = None if found is not None else _NATIVE.match(text)
    place = found.groupdict() if found is not None else {}
    module = caller.groupdict() if caller is not None else {}
    if found is not None and not separator:
        module = {}
    return Site(
        text,
        place.get("file"),
        int(place["line"]) if "line" in place else None,
        place.get("function"),
        place.get("callee"),
        module.get("module"),
        int(module["offset"], 16) if "offset" in module else None,
        module.get("build"),
    )


def place_of(text: str, symbols: Symbols) -> tuple[str, str]:
    """What calls are counted by, and what people read: a line of Python code, whatever it called,
    or a native function."""
    site = parse(text)
    if site.line_text is not None:
        return f"{site.file}:{site.line} {site.function}", site.line_text
    native = site.native(symbols)
    return (f"{site.module} {native}", native) if native else (text, text)


Row = tuple[Any, ...]


def add(tables: dict[str, Table], found: Sequence[Row]) -> None:
    """Adds the tables of lines and functions, behind that of costs."""
    symbols = Symbols()
    lines = Table(SCHEMAS["lines"], [_line(row, symbols) for row in found])
    functions = Table(SCHEMAS["functions"], _functions(lines))
    names = list(tables)
    later = {name: tables.pop(name) for name in names[names.index("costs") + 1 :]}
    tables.update({"lines": lines, "functions": functions, **later})


def _line(row: Row, symbols: Symbols) -> Row:
    site, shown, time, calls, read, written, *more = row
    place = parse(str(site))
    return (
        *(shown, time, calls, read, written, place.callee, place.native(symbols)),
        *(*more, place.file, place.line, place.function, site),
    )


def _functions(lines: Table) -> list[Row]:
    found: dict[tuple[str, str | None], list[int]] = {}
    for row in lines:
        key = row["function"] or row["place"], row["file"]
        sums = found.setdefault(key, [0] * 5)
        numbers = (1, row["calls"], row["read_bytes"], row["write_bytes"], row["total_ns"])
        for at, number in enumerate(numbers):
            sums[at] += number
    order = sorted(found, key=lambda key: (-found[key][-1], key[0], key[1] or ""))
    return [(*key, *found[key]) for key in order]

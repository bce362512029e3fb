"""What commands print with: colour, widths, numbers for people, and a bar for long work."""

from __future__ import annotations

import os
import sys
import time
import unicodedata
from collections.abc import Sequence
from typing import TextIO

_STYLES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "cyan": "36",
}


def is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def has_colour(stream: TextIO) -> bool:
    """Colour is for terminals, and not where the user (https://no-color.org) said no."""
    dumb = os.environ.get("TERM", "") == "dumb"
    return is_terminal(stream) and not dumb and not os.environ.get("NO_COLOR")


def styled(text: str, style: str, stream: TextIO | None = None) -> str:
    if not has_colour(sys.stdout if stream is None else stream):
        return text
    return f"\033[{_STYLES[style]}m{text}\033[0m"


def width(stream: TextIO | None = None, default: int = 100) -> int:
    """Columns of the terminal behind a stream; `default` where there is none."""
    try:
        columns = os.get_terminal_size((sys.stdout if stream is None else stream).fileno()).columns
    except (OSError, ValueError):
        return default
    return columns or default


def printable(text: str) -> str:
    """A name may hold anything, and a terminal must not act on it."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def complain(error: object) -> None:
    """A message of one line or several, which may name files."""
    text = "\n".join(map(printable, str(error).split("\n")))
    print(f"dftracer: {text}", file=sys.stderr)


def columns_of(text: str) -> int:
    """Columns that a printable text takes: East Asian characters take two."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.combining(char) != 0 for char in text)


def shorten(text: str, room: int, *, keep_start: bool = False) -> str:
    """At most `room` columns. The end of a path says more than its start; of a command line,
    the start."""
    clean = printable(text)
    if columns_of(clean) <= room:
        return clean
    if room <= 1:
        return "…"[:room]
    while clean and columns_of(clean) > room - 1:
        clean = clean[:-1] if keep_start else clean[1:]
    return clean + "…" if keep_start else "…" + clean


def pad(text: str, room: int, *, right: bool = False) -> str:
    blank = " " * max(0, room - columns_of(text))
    return blank + text if right else text + blank


def counted(number: int, noun: str, plural: str = "") -> str:
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def bytes_text(size: float) -> str:
    if size < 1000:
        return f"{int(size)} B"
    for unit in ("KB", "MB", "GB"):
        size /= 1000
        if size < 999.5:
            return f"{size:.3g} {unit}"
    return f"{size / 1000:,.3g} TB"


def duration_text(seconds: float) -> str:
    if seconds == 0:
        return "0"
    for limit, scale, unit in ((1e-6, 1e9, "ns"), (1e-3, 1e6, "us"), (1.0, 1e3, "ms")):
        if seconds < limit * 0.9995:
            return f"{seconds * scale:.3g} {unit}"
    if seconds < 99.95:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def table(rows: Sequence[Sequence[str]], right: Sequence[bool], room: int) -> list[str]:
    """Lines of a table whose first row is its head. The first column gives way when the whole is
    too wide."""
    if not rows:
        return []
    widths = [max(columns_of(row[column]) for row in rows) for column in range(len(rows[0]))]
    spare = room - sum(widths) - 2 * (len(widths) - 1)
    if spare < 0:
        widths[0] = max(8, widths[0] + spare)
    lines = []
    for row in rows:
        cells = [
            pad(shorten(cell, most), most, right=align)
            for cell, most, align in zip(row, widths, right)
        ]
        lines.append(shorten("  ".join(cells).rstrip(), room, keep_start=True))
    return lines


class Progress:
    """A bar on stderr while long work goes on; nothing at all where stderr is no terminal."""

    _EVERY = 0.1  # seconds
    _AFTER = 0.5  # short work shows none

    def __init__(self, label: str, total: int, *, unit: str = "bytes") -> None:
        self._label = label
        self._total = total
        self._bytes = unit == "bytes"
        self._done = 0
        self._shown = False
        self._on = is_terminal(sys.stderr)
        self._begin = time.monotonic()
        self._next = self._begin + self._AFTER

    def advance(self, amount: int) -> None:
        self._done += amount
        if not self._on or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + self._EVERY
        self._show()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()

    def _show(self) -> None:
        share = min(1.0, self._done / self._total) if self._total > 0 else 0.0
        text = bytes_text if self._bytes else "{:,}".format
        facts = f" {share:4.0%}  {text(self._done)} of {text(self._total)}"
        passed = time.monotonic() - self._begin
        if share > 0.02:
            facts += f", {duration_text(passed / share - passed)} left"
        room = min(40, width(sys.stderr) - len(self._label) - len(facts) - 4)
        bar = ""
        if room >= 10:
            full = int(room * share)
            bar = " " + "█" * full + "░" * (room - full)
        sys.stderr.write(f"\r\033[K{self._label}{bar}{facts}")
        sys.stderr.flush()
        self._shown = True

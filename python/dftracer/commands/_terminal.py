"""What commands print with: colour, the width, and a bar for long work."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TextIO

from dftracer._format import duration, size
from dftracer._names import printable

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
    """Columns: what COLUMNS says, those of the terminal behind a stream, else `default`."""
    wanted = os.environ.get("COLUMNS", "")
    if wanted.isdecimal() and int(wanted) > 0:
        return int(wanted)
    try:
        columns = os.get_terminal_size((sys.stdout if stream is None else stream).fileno()).columns
    except (OSError, ValueError):
        return default
    return columns or default


def complain(error: object) -> None:
    """A message of one line, and what is indented below it. A name in it may hold anything, and
    must neither become a line of its own nor reach the terminal as a command."""
    lines = str(error).replace("\n  ", "\0").split("\0")
    print("dftracer: " + "\n  ".join(map(printable, lines)), file=sys.stderr)


class Progress:
    """A bar on stderr while long work goes on; nothing at all where stderr is no terminal."""

    _EVERY = 0.1  # seconds
    _AFTER = 0.5  # short work shows none

    def __init__(self, label: str, total: int) -> None:
        self._label = label
        self._total = total  # bytes
        self._done = 0
        self._shown = False
        self._on = is_terminal(sys.stderr)
        self._begin = time.monotonic()
        self._next = self._begin + self._AFTER

    @property
    def callback(self) -> Callable[[int], None] | None:
        """For work that says how far it is; None where nothing would be shown."""
        return self.reach if self._on else None

    def advance(self, amount: int) -> None:
        self.reach(self._done + amount)

    def reach(self, done: int) -> None:
        self._done = done
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
        facts = f" {share:4.0%}  {size(self._done)} of {size(self._total)}"
        passed = time.monotonic() - self._begin
        if share > 0.02:
            facts += f", {duration(1e9 * (passed / share - passed))} left"
        room = min(40, width(sys.stderr) - len(self._label) - len(facts) - 4)
        bar = ""
        if room >= 10:
            full = int(room * share)
            bar = " " + "█" * full + "░" * (room - full)
        sys.stderr.write(f"\r\033[K{self._label}{bar}{facts}")
        sys.stderr.flush()
        self._shown = True

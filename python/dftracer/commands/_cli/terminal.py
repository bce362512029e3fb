"""What commands print with: colour, the width of the terminal, error messages."""

from __future__ import annotations

import os
import sys
from typing import TextIO

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
    """Colour is for terminals, unless NO_COLOR is set (https://no-color.org)."""
    dumb = os.environ.get("TERM", "") == "dumb"
    return is_terminal(stream) and not dumb and not os.environ.get("NO_COLOR")


def styled(text: str, style: str, stream: TextIO | None = None) -> str:
    if not has_colour(sys.stdout if stream is None else stream):
        return text
    return f"\033[{_STYLES[style]}m{text}\033[0m"


def width(stream: TextIO | None = None, default: int = 100) -> int:
    """Columns: COLUMNS, or the width of the stream's terminal, or `default`."""
    wanted = os.environ.get("COLUMNS", "")
    if wanted.isdecimal() and int(wanted) > 0:
        return int(wanted)
    try:
        columns = os.get_terminal_size((sys.stdout if stream is None else stream).fileno()).columns
    except (OSError, ValueError):
        return default
    return columns or default


def complain(error: object) -> None:
    """Prints one line to stderr, with any indented lines below it. A name in it may contain
    anything: it must not start a line of its own or reach the terminal as an escape sequence."""
    lines = str(error).replace("\n  ", "\0").split("\0")
    print("dftracer: " + "\n  ".join(map(printable, lines)), file=sys.stderr)


def bold(text: str) -> str:
    return styled(text, "bold")


def dim(text: str) -> str:
    return styled(text, "dim")

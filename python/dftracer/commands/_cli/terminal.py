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


def bold(text: str) -> str:
    return styled(text, "bold")


def dim(text: str) -> str:
    return styled(text, "dim")

"""Reads the table of calls (src/format/calls.def) for the documentation and the tests."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FORMAT = ROOT / "src" / "format"


@dataclass
class Entry:
    """One symbol of a row."""

    symbol: str
    shown: str


@dataclass
class Row:
    """One row: functions that are recorded alike."""

    kind: str  # CALL, HAND, SILENT or UNWRAPPED
    section: str
    category: str
    does: str  # READ, WRITE, OPEN and so on; "" for SILENT
    about: str  # on_fd(fd), or PATH in a row without a signature
    recorded: list[str]  # the keys of its arguments
    entries: list[Entry]
    syscalls: list[str] = field(default_factory=list)


def columns(text: str) -> list[str]:
    """The arguments of a macro call: apart at the commas outside of parentheses."""
    parts = [""]
    depth = 0
    for token in re.findall(r"[(),]|[^(),]+", text):
        depth += {"(": 1, ")": -1}.get(token, 0)
        if token == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += token
    return [" ".join(part.split()) for part in parts]


def layers() -> list[Path]:
    """The files that calls.def includes: one per category."""
    text = (FORMAT / "calls.def").read_text(encoding="utf-8")
    return [FORMAT / name for name in re.findall(r'#include "format/(\w+_calls\.def)"', text)]


def _keys(recorded: str) -> list[str]:
    inner = recorded.removeprefix("(").removesuffix(")")
    cells = columns(inner) if inner else []
    return [re.split(r"[(,)]", cell)[1].strip() if "(" in cell else cell for cell in cells]


def _row(kind: str, section: str, cells: list[str]) -> Row:
    if kind == "UNWRAPPED":
        category, does, name = cells
        return Row(kind, section, category, does.split("(")[0], "", [], [Entry(name, name)])
    if kind == "CALL":
        category, does, _, _, _, about, recorded, *names = cells
        if "RET_LEN(" in does:
            recorded = recorded[:-1] + (", " if recorded != "()" else "") + "NUM_AS(ret_len, n))"
    elif kind == "HAND":
        category, does, about, recorded, *names = cells
    else:
        category, *names = cells
        does, about, recorded = "", "", "()"
    row = Row(kind, section, category, does.split("(")[0], about, _keys(recorded), [])
    for name in names:
        how, _, rest = name.partition("(")
        words = columns(rest.removesuffix(")"))
        if how == "SYSCALL":
            row.syscalls += words
        else:
            row.entries.append(Entry(words[0], words[-1]))
    return row


def read_table() -> list[Row]:
    """All rows, in the order of the table."""
    rows: list[Row] = []
    for path in layers():
        text = path.read_text(encoding="utf-8")
        section = ""
        pattern = r"^// ---- (?P<title>.*)$|^DFT_(?P<kind>CALL|HAND|SILENT|UNWRAPPED)\("
        for match in re.finditer(pattern, text, re.MULTILINE):
            if match["title"]:
                section = match["title"]
                continue
            rows.append(_row(match["kind"], section, columns(_inside(text, match.end()))))
    return rows


def _inside(text: str, start: int) -> str:
    """The text up to the parenthesis that closes the one before `start`."""
    depth = 1
    for position in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        if depth == 0:
            return text[start:position]
    raise ValueError(f"a row is not closed: {text[start : start + 60]!r}")


def symbols(rows: list[Row]) -> set[str]:
    """The functions that are wrapped."""
    return {entry.symbol for row in rows if row.kind != "UNWRAPPED" for entry in row.entries}

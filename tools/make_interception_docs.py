#!/usr/bin/env python3
"""Writes the tables of docs/interception.md from the table of calls (src/format/calls.def).

The text around the tables is written by hand; what stands between the two marks is made here.
With --check, writes nothing and exits 1 if the page is not what the table says.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

import calls_table

ROOT = Path(__file__).resolve().parent.parent
KEYS = ROOT / "src" / "intercept" / "keys.def"
PAGE = ROOT / "docs" / "interception.md"
BEGIN = "<!-- Made by tools/make_interception_docs.py from src/format/calls.def. -->"
END = "<!-- End of what is made. -->"

# The column `about`, in words.
FILES = {
    "on_fd": "descriptor",
    "on_fds": "descriptors",
    "on_stream": "stream",
    "on_path": "path",
    "on_paths": "paths",
    "on_unnamed": "",
    "on_process": "",
    "NOTHING": "",
    "PATH": "path",
    "DESCRIPTOR": "descriptor",
    "STREAM": "stream",
    "MAPPING": "mapping",
    "PROGRAM": "program",
    "FIRST_REQUEST": "of the first request",
    "FIRST_COMPLETION": "of the first completion",
}


@dataclass
class Line:
    """Functions that are recorded alike: a line of the page."""

    names: list[str]
    others: list[str]  # further symbols that are shown under these names
    category: str
    file: str
    arguments: list[str]


def add_row(lines: list[Line], row: calls_table.Row) -> None:
    """Rows that differ in their names only become one line."""
    line = Line([], [], row.category, FILES[row.about.split("(")[0]], row.recorded)
    for known in lines:
        if (known.category, known.file, known.arguments) == (
            line.category,
            line.file,
            line.arguments,
        ):
            line = known
            break
    else:
        lines.append(line)
    for entry in row.entries:
        if entry.shown not in line.names:
            line.names.append(entry.shown)
        if entry.symbol != entry.shown:
            line.others.append(entry.symbol)


def read_sections(rows: list[calls_table.Row]) -> list[tuple[str, list[Line]]]:
    """The sections of the table with their lines, in its order."""
    sections: list[tuple[str, list[Line]]] = []
    for row in rows:
        if not sections or sections[-1][0] != row.section:
            sections.append((row.section, []))
        if row.kind in ("CALL", "HAND") and row.entries:
            add_row(sections[-1][1], row)
    return [section for section in sections if section[1]]


def check(rows: list[calls_table.Row]) -> None:
    """A key that no trace has must not go unnoticed."""
    keys = set(re.findall(r"^DFT_KEY\((\w+)\)", KEYS.read_text(encoding="utf-8"), re.MULTILINE))
    unknown = sorted({key for row in rows for key in row.recorded} - keys)
    if unknown:
        raise SystemExit(f"make_interception_docs: not in keys.def: {', '.join(unknown)}")


def code(names: list[str]) -> str:
    return " ".join(f"`{name}`" for name in names)


def make_tables(sections: list[tuple[str, list[Line]]]) -> str:
    made = [BEGIN, "\n"]
    for title, rows in sections:
        category, name = title.split(": ", 1)
        made.append(f"\n### {category}: {name}\n\n")
        made.append(
            "| functions | file | arguments | also caught as |\n| --- | --- | --- | --- |\n"
        )
        for row in rows:
            names = code(row.names)
            if row.category != category:
                names += f" (category `{row.category}`)"
            made.append(f"| {names} | {row.file} | {code(row.arguments)} | {code(row.others)} |\n")
    made += ["\n", END]
    return "".join(made)


def make_page(page: str, tables: str) -> str:
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"make_interception_docs: no marks in {PAGE.relative_to(ROOT)}")
    return before + tables + after


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print("usage: make_interception_docs.py [--check]", file=sys.stderr)
        return 2
    rows = calls_table.read_table()
    check(rows)
    now = PAGE.read_text(encoding="utf-8")
    page = make_page(now, make_tables(read_sections(rows)))
    if arguments == ["--check"]:
        if now == page:
            return 0
        name = PAGE.relative_to(ROOT)
        print(f"{name} is not up to date: run tools/make_interception_docs.py", file=sys.stderr)
        return 1
    PAGE.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
"""Writes the tables of docs/interception.md from src/intercept/wrap.def.

The text around the tables is written by hand; what stands between the two marks is made here.
With --check, writes nothing and exits 1 if the page is not what the table says.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "src" / "intercept" / "wrap.def"
KEYS = ROOT / "src" / "intercept" / "keys.def"
PAGE = ROOT / "docs" / "interception.md"
BEGIN = "<!-- Made by tools/make_interception_docs.py from src/intercept/wrap.def. -->"
END = "<!-- End of what is made. -->"

FILES = {
    "on_fd": "descriptor",
    "on_fds": "descriptors",
    "on_stream": "stream",
    "on_path": "path",
    "on_paths": "paths",
    "on_unnamed": "",
    "on_nothing": "",
}

# Of the functions whose wrappers are written by hand: which file, and the arguments. Those of the
# same kind share a line.
ODD = {
    "open open64": ("path", "flags mode"),
    "openat openat64": ("path", "dirfd flags mode"),
    "openat2": ("path", "dirfd flags mode resolve"),
    "creat creat64": ("path", "mode"),
    "mkstemp mkstemp64": ("path", ""),
    "mkostemp mkostemp64": ("path", "flags"),
    "mkstemps mkstemps64": ("path", "suffixlen"),
    "mkostemps mkostemps64": ("path", "suffixlen flags"),
    "memfd_create": ("", "name flags"),
    "shm_open": ("", "name flags mode"),
    "shm_unlink": ("", "name"),
    "close": ("descriptor", ""),
    "close_range": ("", "first last flags"),
    "closefrom": ("", "first"),
    "dup": ("descriptor", "oldfd"),
    "dup2": ("descriptor", "oldfd newfd"),
    "dup3": ("descriptor", "oldfd newfd flags"),
    "fcntl fcntl64": ("descriptor", "cmd"),
    "pipe": ("", ""),
    "pipe2": ("", "flags"),
    "chdir chroot": ("path", ""),
    "fchdir": ("descriptor", ""),
    "opendir": ("path", ""),
    "closedir": ("descriptor", ""),
    "mmap mmap64": ("descriptor", "length prot flags offset"),
    "munmap": ("mapping", "length"),
    "mremap": ("mapping", "old_size new_size flags"),
    "msync": ("mapping", "length flags"),
    "madvise posix_madvise": ("mapping", "length advice"),
    "aio_read aio_read64 aio_write aio_write64": ("descriptor", "count offset"),
    "aio_fsync aio_fsync64": ("descriptor", "operation"),
    "aio_return aio_return64": ("descriptor", "offset read_len write_len"),
    "lio_listio lio_listio64": ("", "mode nr"),
    "io_submit": ("of the first request", "nr"),
    "io_getevents io_pgetevents": (
        "of the first completion",
        "min_nr nr offset read_len write_len",
    ),
    "fork _Fork vfork daemon": ("", ""),
    "posix_spawn": ("program", "pid"),
    "posix_spawnp": ("program", "file pid"),
    "system": ("", "command"),
    "execve execv execl execle": ("program", "untraced"),
    "execvp execvpe execlp": ("program", "file untraced"),
    "fexecve": ("program", ""),
    "execveat": ("program", "dirfd flags"),
    "_exit _Exit": ("", "status"),
    "fopen fopen64 freopen freopen64": ("path", "mode"),
    "fclose pclose": ("stream", ""),
    "popen": ("", "command mode"),
    "fscanf fprintf fwprintf": ("stream", ""),
    "scanf printf wprintf": ("stream", ""),
    "dprintf": ("descriptor", ""),
}
# Wrapped for what they change; calls of them make no event.
SILENT = """dlopen dlmopen dlsym prctl setuid seteuid setreuid setresuid setgid setegid setregid
    setresgid setgroups initgroups capset unshare setns"""


@dataclass
class Row:
    """Functions that are recorded alike."""

    names: list[str]
    others: list[str]  # further symbols that are shown under these names
    category: str
    file: str
    arguments: list[str]


def columns(text: str) -> list[str]:
    """The arguments of a macro call, apart at the commas that stand in no bracket."""
    parts = [""]
    depth = 0
    for token in re.findall(r"[(),]|[^(),]+", text):
        depth += {"(": 1, ")": -1}.get(token, 0)
        if token == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += token
    return [part.strip() for part in parts]


def odd_row(name: str) -> tuple[str, list[str]]:
    for names, (file, arguments) in ODD.items():
        if name in names.split():
            return file, arguments.split()
    raise SystemExit(f"make_interception_docs: say in ODD what is recorded of {name}")


def read_row(macro: str, cells: list[str]) -> Row:
    category, _, shown, *rest = cells
    name = shown.strip('"')
    if macro == "ODD":
        file, arguments = odd_row(name)
    else:
        file = FILES[rest[3].split("(")[0]]
        arguments = [re.split(r"[(,)]", cell)[1].strip() for cell in rest[5:]]
    return Row([name], [], category, file, arguments)


def add_row(rows: list[Row], row: Row, symbol: str) -> None:
    """Functions that differ in their names only are one row."""
    for known in rows:
        if (known.category, known.file, known.arguments) == (row.category, row.file, row.arguments):
            known.names += [name for name in row.names if name not in known.names]
            row = known
            break
    else:
        rows.append(row)
    if symbol not in row.names:
        row.others.append(symbol)


def read_table(text: str) -> list[tuple[str, list[Row]]]:
    """The sections of the table with their rows, in its order."""
    sections: list[tuple[str, list[Row]]] = []
    pattern = r"^// ---- (.*)$|^DFT_(ROW|ODD)\((.*)\)$"
    for title, macro, text_of_row in re.findall(pattern, text, re.MULTILINE):
        if title:
            sections.append((title, []))
            continue
        cells = columns(text_of_row)
        if cells[1] not in SILENT.split():
            add_row(sections[-1][1], read_row(macro, cells), cells[1])
    return sections


def check(text: str, sections: list[tuple[str, list[Row]]]) -> None:
    """A row that is passed over, or a key that no trace has, must not go unnoticed."""
    symbols = re.findall(r"^DFT_(?:ROW|ODD)\(\w+, (\w+)", text, re.MULTILINE)
    rows = [row for _, section in sections for row in section]
    shown = {name for row in rows for name in row.names} | {n for row in rows for n in row.others}
    missing = set(symbols) - shown - set(SILENT.split())
    keys = set(re.findall(r"^DFT_KEY\((\w+)\)", KEYS.read_text(encoding="utf-8"), re.MULTILINE))
    unknown = {key for row in rows for key in row.arguments} - keys
    stale = {name for names in ODD for name in names.split()} - shown
    for what, names in (
        ("not shown", missing),
        ("no key of keys.def", unknown),
        ("not in the table", stale),
    ):
        if names:
            raise SystemExit(f"make_interception_docs: {what}: {', '.join(sorted(names))}")


def code(names: list[str]) -> str:
    return " ".join(f"`{name}`" for name in names)


def make_tables(sections: list[tuple[str, list[Row]]]) -> str:
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
    text = TABLE.read_text(encoding="utf-8")
    sections = read_table(text)
    check(text, sections)
    now = PAGE.read_text(encoding="utf-8")
    page = make_page(now, make_tables(sections))
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

"""The name of a program, from its command line, and what the processes of each program did."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

INTERPRETERS = re.compile(r"(python|pypy|perl|ruby|node|Rscript|lua|julia|bash|dash|zsh|sh)[\d.]*")
WRAPPERS = ("env", "nice", "nohup", "stdbuf", "timeout", "time", "taskset", "numactl", "setsid")
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
OPTION = re.compile(r"[-\d]")  # an option of a wrapper, or its value: nice -n 10
WITH_VALUE = ("-W", "-X")  # options of interpreters with a value


def program_name(command: str) -> str:
    """For `/usr/bin/python3 -u train.py --token x`: train.py."""
    words = command.split()
    wrapped = False
    while words:
        if words[0].rsplit("/", 1)[-1] in WRAPPERS:
            wrapped = True
        elif not ASSIGNMENT.match(words[0]) and not (wrapped and OPTION.match(words[0])):
            break
        words = words[1:]
    if not words:
        return ""
    name = words[0].rsplit("/", 1)[-1].lstrip("-")  # -bash is a login shell
    if not INTERPRETERS.fullmatch(name):
        return name
    at = 1
    while at < len(words) and words[at].startswith("-"):
        if words[at] == "-m" and at + 1 < len(words):
            return words[at + 1]
        if words[at] in ("-c", "-e"):  # the program is an argument
            return name
        at += 2 if words[at] in WITH_VALUE else 1
    return words[at].rsplit("/", 1)[-1] if at < len(words) else name


# Columns of the table `programs` that are sums over its processes.
SUMS = ("life_ns", "cpu_ns", "busy_ns", "io_ns", "wait_ns", "read_bytes", "write_bytes")
UNNAMED = "(unknown)"


def by_program(processes: Iterable[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Rows of the table `programs`."""
    found: dict[str, list[dict[str, Any]]] = {}
    for process in processes:
        name = program_name(process["command"] or "") or UNNAMED
        found.setdefault(name, []).append(process)
    rows = []
    for name, members in found.items():
        sums = [_sum(members, column) for column in SUMS]
        rows.append((name, len(members), _union(members), *sums))
    # What kept processors and storage busy comes before what waited for it.
    busy = 3 + SUMS.index("busy_ns")
    return sorted(rows, key=lambda row: (-(row[busy] or 0), row[0]))


def _sum(members: Iterable[dict[str, Any]], column: str) -> int | None:
    """None if one is unknown: a sum without it would be wrong."""
    values = [member[column] for member in members]
    return None if None in values else sum(values)


def _union(members: Iterable[dict[str, Any]]) -> int:
    """Time in which at least one of them ran."""
    lives = sorted((m["start_ns"], m["end_ns"]) for m in members if m["start_ns"] is not None)
    covered, reached = 0, 0
    for start, end in lives:
        covered += max(end - max(start, reached), 0)
        reached = max(reached, end)
    return covered

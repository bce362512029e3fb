#!/usr/bin/env python3
"""Checks that figures which are quoted from docs/performance.md are the ones that stand there.

A document quotes a figure with its key in an HTML comment behind the number:

    about 230<!-- figure: event-instructions --> instructions

Sentences that QUOTES matches are checked in every document, with or without a key.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "docs" / "performance.md"
NUMBER = r"([\d.,]*\d)"

# key: the row of docs/performance.md, with the number as its group.
FIGURES = {
    "event-instructions": r"\| one event with two arguments, calling thread: instructions "
    rf"\|[^|]*\|[^|]*\| {NUMBER} \|",
    "event-instructions-peer": r"\| one event with two arguments, calling thread: instructions "
    rf"\|[^|]*\|[^|]*\|[^|]*\| {NUMBER} \|",
    "event-ns": rf"\| the same in time, in bursts [^|]*\|[^|]*\|[^|]*\| {NUMBER} ns",
    "event-bytes": rf"\| bytes per event, compressed[^|]*\|[^|]*\|[^|]*\| {NUMBER} \|",
    "start-ms": r"\| start and end of a traced program that does nothing "
    rf"\|[^|]*\|[^|]*\| \+ {NUMBER} ms",
    "read-ns": rf"\| a cached 4 KiB read, metadata on[^|]*\|[^|]*\|[^|]*\| \+ {NUMBER} ns",
    "read-ns-peer": r"\| a cached 4 KiB read, metadata on[^|]*\|[^|]*\|[^|]*\|[^|]*"
    rf"\| \+ {NUMBER} ns",
    "read-ns-lttng": r"\| a cached 4 KiB read, metadata on[^|]*\|[^|]*\|[^|]*\|[^|]*\|[^|]*"
    rf"\| \+ {NUMBER} ns",
    "read-instructions": r"\| a read: instructions added on the calling thread "
    rf"\|[^|]*\|[^|]*\| \+ {NUMBER} \|",
    "read-loop-c": r"\| a loop of cached 4 KiB reads from C, wall "
    rf"\|[^|]*\|[^|]*\| \+ {NUMBER} %",
    "read-loop-python": rf"\| … from Python \(`os.pread`\) \|[^|]*\|[^|]*\| \+ {NUMBER} %",
    "decorated-call-ns": r"\| a decorated call, `@ai.compute.forward`: CPU added "
    rf"\|[^|]*\|[^|]*\| \+ {NUMBER} ns",
    "decorated-call-ns-peer": r"\| a decorated call, `@ai.compute.forward`: CPU added "
    rf"\|[^|]*\|[^|]*\|[^|]*\| \+ {NUMBER} ns",
    "with-block-ns": r"\| … the call in `with ai.compute.forward:` "
    rf"\|[^|]*\|[^|]*\| \+ {NUMBER} ns",
    "decorated-call-instructions": r"\| a decorated call, `@ai.compute.forward`: instructions "
    r"added "
    rf"\|[^|]*\|[^|]*\| \+ {NUMBER} \|",
    "merge-rate": rf"\| merge of 8 files, 10 M events \|[^|]*\|[^|]*\| {NUMBER} M events",
    "merge-memory": rf"\| merge of 8 files, 10 M events \|[^|]*\|[^|]*\|[^|]*, {NUMBER} MB",
    "report-10m-seconds": rf"\| … 10 M events \|[^|]*\|[^|]*\| {NUMBER} s",
    "report-100m-seconds": rf"\| … 100 M events \(one run\) \|[^|]*\|[^|]*\| {NUMBER} s",
    "training-step": rf"\| ours: annotations and I/O \|[^|]*\| {NUMBER} \(",
}
# Sentences about a figure, wherever they stand.
QUOTES = (
    (
        rf"(?:event|region) with two arguments[^.|]{{0,60}}?{NUMBER} instructions",
        "event-instructions",
    ),
    (rf"{NUMBER} instructions (?:per|an) event", "event-instructions"),
    (rf"{NUMBER} instructions on the calling thread", "event-instructions"),
    (rf"{NUMBER} instructions from begin to end", "event-instructions"),
)
MARK = re.compile(rf"{NUMBER}[^\d\n<]{{0,12}}<!-- figure: ([\w-]+) -->")


def documents() -> Iterator[Path]:
    yield ROOT / "README.md"
    for page in sorted((ROOT / "docs").rglob("*.md")):
        if page != SOURCE:
            yield page


def read_figures(text: str) -> tuple[dict[str, str], list[str]]:
    """The figures, and what is wrong with the table of them."""
    figures: dict[str, str] = {}
    problems: list[str] = []
    for key, pattern in FIGURES.items():
        found = re.findall(pattern, text)
        if len(found) != 1:
            problems.append(f"docs/performance.md: {len(found)} rows for the figure {key!r}")
        else:
            figures[key] = found[0]
    return figures, problems


def check(text: str, name: str, figures: dict[str, str]) -> Iterator[str]:
    for number, key in MARK.findall(text):
        if key not in figures:
            yield f"{name}: no figure is called {key!r}"
        elif number != figures[key]:
            yield f"{name}: {key} is {number} here and {figures[key]} in docs/performance.md"
    plain = re.sub(r"\s+", " ", re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL))
    for pattern, key in QUOTES:
        for number in re.findall(pattern, plain):
            if number != figures.get(key):
                yield f"{name}: {number} instructions, but {key} is {figures.get(key)}"


def main() -> int:
    figures, problems = read_figures(SOURCE.read_text(encoding="utf-8"))
    for page in documents():
        name = page.relative_to(ROOT).as_posix()
        problems += check(page.read_text(encoding="utf-8"), name, figures)
    for problem in dict.fromkeys(problems):
        print(f"check_figures: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

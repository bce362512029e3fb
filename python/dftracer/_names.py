"""Shows names of files, calls and processes, which may contain anything, in limited space."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

MARK = "…"


def printable(text: str) -> str:
    """Replaces control characters: a terminal must not act on a name, or a page hide a part."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def columns_of(text: str) -> int:
    """Width of a printable text in columns: East Asian characters take two."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(char: str) -> int:
    if unicodedata.east_asian_width(char) in "WF":
        return 2
    return 0 if unicodedata.combining(char) else 1


def _fits(chars: Iterable[str], room: int) -> int:
    """How many of the characters fit."""
    number = 0
    for char in chars:
        room -= _columns(char)
        if room < 0:
            break
        number += 1
    return number


def _start(text: str, room: int) -> str:
    return text[: _fits(text, room)]


def _end(text: str, room: int) -> str:
    return text[len(text) - _fits(reversed(text), room) :]


def shorten(text: str, room: int, *, keep_start: bool = False) -> str:
    """At most `room` columns. Keeps the end of a path, or with keep_start the start of a command
    line."""
    clean = printable(text)
    if columns_of(clean) <= room:
        return clean
    if room <= 1:
        return MARK[:room]
    return _start(clean, room - 1) + MARK if keep_start else MARK + _end(clean, room - 1)


def shorten_all(names: Sequence[str], room: int) -> list[str]:
    """Each in at most `room` columns; different names stay different.

    Names lose their start. If they then look the same, they are cut so that the difference remains
    visible, followed by their end; if that is not enough, they are numbered.
    """
    clean = [printable(name) for name in names]
    shown = _distinguished(clean, [shorten(name, room) for name in clean], room)
    # Names of different groups may now look alike.
    for text, places in _alike(clean, shown):
        numbers = {clean[at]: number for number, at in enumerate(places, 1)}
        for at in places:
            end = f"~{numbers[clean[at]]}"
            shown[at] = _start(text, max(1, room - len(end))) + end
    return shown


def _alike(names: Sequence[str], shown: Sequence[str]) -> list[tuple[str, list[int]]]:
    """Indices of texts that stand for several names."""
    found: dict[str, list[int]] = {}
    for at, text in enumerate(shown):
        found.setdefault(text, []).append(at)
    return [
        (text, places) for text, places in found.items() if len({names[at] for at in places}) > 1
    ]


def _distinguished(names: Sequence[str], shown: list[str], room: int) -> list[str]:
    for _, places in _alike(names, shown):
        different = list(dict.fromkeys(names[at] for at in places))
        texts = _cut_at_difference(different, room)
        if 1 < len(set(texts)) < len(texts):
            texts = _distinguished(different, texts, room)
        made = dict(zip(different, texts))
        for at in places:
            shown[at] = made[names[at]]
    return shown


def _cut_at_difference(names: Sequence[str], room: int) -> list[str]:
    """The difference with some text before it, and the end: …run-3/…part-0.bin"""
    prefix = _common_start(names)
    # From the beginning of the word that differs, if it is close.
    begin = max(prefix.rfind("/"), prefix.rfind(" ")) + 1
    if len(prefix) - begin > room // 4:
        begin = len(prefix) - room // 4
    if begin <= len(MARK):
        begin = 0
    lead = MARK if begin else ""
    room -= len(lead)
    made = []
    for name in names:
        rest = name[begin:]
        if columns_of(rest) > room:
            start = _start(rest, max(1, room - 1 - room // 3))
            rest = start + MARK + _end(rest, room - 1 - columns_of(start))
        made.append(lead + rest)
    return made


def _common_start(names: Sequence[str]) -> str:
    first, last = min(names), max(names)
    same = 0
    while same < min(len(first), len(last)) and first[same] == last[same]:
        same += 1
    return first[:same]

"""Random damage to the bytes of a file."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import strategies as st


class Wound(NamedTuple):
    place: float  # of the whole length
    inserted: bytes
    removed: int


WOUND = st.builds(
    Wound, place=st.floats(0, 1), inserted=st.binary(max_size=6), removed=st.integers(0, 200)
)


def wounds(least: int = 0) -> st.SearchStrategy[list[Wound]]:
    return st.lists(WOUND, min_size=least, max_size=3)


def damage(data: bytes, hurt: list[Wound]) -> bytes:
    for place, inserted, removed in hurt:
        at = int(place * len(data))
        data = data[:at] + inserted + data[at + removed :]
    return data

"""Writes `.pfw.gz` files as docs/design/file-format.md describes them, without the product."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence


def member(lines: Sequence[bytes], *, bracket: bool = False, count: int | None = None) -> bytes:
    """One gzip member of whole lines, with its size and their number in the header."""
    text = (b"[\n" if bracket else b"") + b"".join(line + b"\n" for line in lines)
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    data = packer.compress(text) + packer.flush()
    size = 24 + len(data) + 8
    head = b"\x1f\x8b\x08\x04\0\0\0\0\0\x03\x0c\0DF\x08\0"
    head += struct.pack("<II", size, len(lines) if count is None else count)
    return head + data + struct.pack("<II", zlib.crc32(text), len(text) & 0xFFFFFFFF)


def pack(lines: Iterable[bytes], a_member: int) -> list[bytes]:
    """The members of a whole file."""
    every = list(lines)
    groups = [every[at : at + a_member] for at in range(0, len(every), a_member)]
    return [member(group, bracket=index == 0) for index, group in enumerate(groups)]

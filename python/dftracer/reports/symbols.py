"""Names of functions in native programs and libraries, from the symbol tables of their files.

A file that was built anew since the trace was made is not used: its build id differs.
"""

from __future__ import annotations

import bisect
import ctypes
import mmap
import os
import struct
from typing import Any

# Larger tables are not read: names are a courtesy.
MOST_SYMBOLS = 4_000_000
MOST_NAME = 512
_SYMTAB, _DYNSYM, _NOTE = 2, 11, 7
_FUNCTION = 2
_GNU_BUILD_ID = 3


class Symbols:
    """Reads each file once."""

    def __init__(self) -> None:
        self._files: dict[tuple[str, str | None], _Functions | None] = {}
        self._demangle = _Demangler()

    def function_at(self, path: str, offset: int, build: str | None) -> str | None:
        key = path, build
        if key not in self._files:
            self._files[key] = _read(path, build)
        functions = self._files[key]
        # The return address; the call is before it.
        name = functions.name_at(offset) if functions is not None else None
        return None if name is None else self._demangle(name)


class _Functions:
    def __init__(self, found: list[tuple[int, int, str]]) -> None:
        found.sort()
        self._starts = [start for start, _, _ in found]
        self._found = found

    def name_at(self, offset: int) -> str | None:
        at = bisect.bisect_right(self._starts, offset) - 1
        if at < 0:
            return None
        start, length, name = self._found[at]
        return name if offset < start + max(length, 1) else None


def _read(path: str, build: str | None) -> _Functions | None:
    if not path.startswith("/"):
        return None
    try:
        # Not a pipe or a device that a trace names.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (OSError, ValueError):
        return None
    try:
        with open(fd, "rb", closefd=True) as file:
            if not os.path.isfile(path) or os.fstat(file.fileno()).st_size < 64:
                return None
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _parse(data, build)
    except (OSError, ValueError, struct.error, IndexError, OverflowError):
        return None


def _parse(data: mmap.mmap, build: str | None) -> _Functions | None:
    if data[:6] != b"\x7fELF\x02\x01":  # 64 bits, little-endian
        return None
    (sections_at,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    if size != 64:
        return None
    sections = [
        struct.unpack_from("<IIQQQQIIQQ", data, sections_at + 64 * number)
        for number in range(count)
    ]
    if _build_id(data, sections) != build:
        return None
    found: dict[int, tuple[int, int, str]] = {}
    for wanted in (_DYNSYM, _SYMTAB):
        for _, kind, _, _, at, length, link, _, _, _ in sections:
            if kind == wanted and link < len(sections) and length // 24 <= MOST_SYMBOLS:
                names, names_length = sections[link][4], sections[link][5]
                _add(found, data[at : at + length], data[names : names + names_length])
    return _Functions(list(found.values()))


def _add(found: dict[int, tuple[int, int, str]], table: bytes, names: bytes) -> None:
    for name, info, _, section, value, size in struct.iter_unpack(
        "<IBBHQQ", table[: len(table) // 24 * 24]
    ):
        if info & 15 != _FUNCTION or not section or name >= len(names):
            continue
        end = names.find(b"\0", name, name + MOST_NAME)
        if end > name:
            found[value] = value, size, names[name:end].decode("utf-8", "replace")


def _build_id(data: mmap.mmap, sections: list[tuple[int, ...]]) -> str | None:
    """Its first eight bytes, as traces have them."""
    for _, kind, _, _, at, length, *_ in sections:
        if kind != _NOTE:
            continue
        end = at + length
        while at + 12 <= end:
            name, text, note = struct.unpack_from("<III", data, at)
            value = at + 12 + (name + 3) // 4 * 4
            if note == _GNU_BUILD_ID and name == 4 and data[at + 12 : at + 16] == b"GNU\0":
                return data[value : value + 8].hex() if text >= 8 else None
            at = value + (text + 3) // 4 * 4
    return None


class _Demangler:
    """C++ names as C++ writes them, where the machine has its run-time library."""

    def __init__(self) -> None:
        self._functions: tuple[Any, Any] | None = None
        self._tried = False

    def _load(self) -> tuple[Any, Any] | None:
        try:
            demangle = ctypes.CDLL("libstdc++.so.6")["__cxa_demangle"]
            free = ctypes.CDLL(None)["free"]
        except (OSError, AttributeError):
            return None
        demangle.restype = ctypes.c_void_p
        demangle.argtypes = [ctypes.c_char_p, *[ctypes.c_void_p] * 3]
        free.argtypes = [ctypes.c_void_p]
        return demangle, free

    def __call__(self, name: str) -> str:
        if not name.startswith("_Z"):
            return name
        if not self._tried:
            self._tried = True
            self._functions = self._load()
        if self._functions is None:
            return name
        demangle, free = self._functions
        text = demangle(name.encode(), None, None, None)
        if not text:
            return name
        shown = ctypes.string_at(text).decode("utf-8", "replace")
        free(text)
        # Without its parameters, as for C.
        return shown.partition("(")[0] or shown

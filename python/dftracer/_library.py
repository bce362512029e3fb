"""libdftracer_core.so through ctypes: the few calls that need neither speed nor the extension."""

from __future__ import annotations

import ctypes
import functools
import os
from pathlib import Path
from typing import NamedTuple

from dftracer.errors import DFTracerError

LIBRARY = Path(__file__).resolve().parent / "lib64" / "libdftracer_core.so"

RECOVER_FORCE = 1


class _Recovery(ctypes.Structure):
    # The layout of struct dftracer_recovery in dftracer.h.
    _fields_ = [
        ("spools", ctypes.c_uint64),
        ("recovered", ctypes.c_uint64),
        ("events", ctypes.c_uint64),
        ("alive", ctypes.c_uint64),
        ("unknown", ctypes.c_uint64),
        ("broken", ctypes.c_uint64),
    ]


class Recovery(NamedTuple):
    """What was found in a directory: spools by fate, and the events brought into traces."""

    spools: int
    recovered: int
    events: int
    alive: int
    unknown: int
    broken: int


@functools.cache
def load() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(str(LIBRARY))
    except OSError as error:
        raise DFTracerError(f"cannot load {LIBRARY}: {error}") from None
    library.dftracer_recover.argtypes = [
        ctypes.c_char_p,
        ctypes.c_uint,
        ctypes.POINTER(_Recovery),
    ]
    library.dftracer_recover.restype = ctypes.c_int
    return library


def recover(directory: str | os.PathLike[str], *, force: bool = False) -> Recovery:
    """Finish the spools that dead processes left in a directory; OSError if that cannot be."""
    out = _Recovery()
    flags = RECOVER_FORCE if force else 0
    code = load().dftracer_recover(os.fsencode(directory), flags, ctypes.byref(out))
    if code != 0:
        raise OSError(code, os.strerror(code), os.fspath(directory))
    return Recovery(out.spools, out.recovered, out.events, out.alive, out.unknown, out.broken)

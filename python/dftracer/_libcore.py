"""libdftracer_core.so through ctypes: the calls that commands make once per run, without the
extension. A program that is traced never imports this module."""

from __future__ import annotations

import ctypes
import functools
import os
from pathlib import Path
from typing import Any, NamedTuple

from dftracer import _mixture
from dftracer.errors import DFTracerError

LIBRARY = Path(__file__).resolve().parent / "lib64" / "libdftracer_core.so"
PRELOAD = LIBRARY.with_name("libdftracer_preload.so")
# What NVTX and ITT load as the library of a tool.
INJECT = LIBRARY.with_name("libdftracer_inject.so")

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
    """The spools found in a directory, by outcome, and the events that were recovered."""

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
    try:
        recovering = library.dftracer_recover
    except AttributeError:  # the library of DFTracer's own package, under the same name
        text = f"{LIBRARY} is not the library of this package"
        raise DFTracerError(text if _mixture.warned() else f"{text}: {_mixture.REPAIR}") from None
    recovering.argtypes = [ctypes.c_char_p, ctypes.c_uint, ctypes.POINTER(_Recovery)]
    recovering.restype = ctypes.c_int
    return library


def recover(directory: str | os.PathLike[str], *, force: bool = False) -> Recovery:
    """Recover the spools that crashed processes left in a directory; raises OSError."""
    out = _Recovery()
    flags = RECOVER_FORCE if force else 0
    code = load().dftracer_recover(os.fsencode(directory), flags, ctypes.byref(out))
    if code != 0:
        raise OSError(code, os.strerror(code), os.fspath(directory))
    return Recovery(out.spools, out.recovered, out.events, out.alive, out.unknown, out.broken)


class _Run(ctypes.Structure):
    # struct Run of src/api/cli_run.cpp
    _fields_ = [
        ("run", ctypes.c_uint64),
        ("key", ctypes.c_uint64),
        ("recovered", ctypes.c_uint64),
        ("recovered_events", ctypes.c_uint64),
        ("recovered_files", ctypes.c_uint64),
        ("recovered_lost", ctypes.c_uint64),
        ("guest", ctypes.c_uint32),
        ("untraced", ctypes.c_uint32),
        ("directory", ctypes.c_char * 4096),
        ("spools", ctypes.c_char * 4096),
        ("why", ctypes.c_char * 64),
    ]


class _Sums(ctypes.Structure):
    # struct Sums of src/api/cli_run.cpp
    _fields_ = [
        ("processes", ctypes.c_uint64),
        ("events", ctypes.c_uint64),
        ("files", ctypes.c_uint64),
        ("calls", ctypes.c_uint64),
        ("filtered", ctypes.c_uint64),
        ("lost", ctypes.c_uint64),
        ("recovered", ctypes.c_uint64),
        ("alive", ctypes.c_uint64),
        ("broken", ctypes.c_uint64),
        ("ring_requests", ctypes.c_uint64),
        ("untraced", ctypes.c_char * 1024),
    ]


class Sums(NamedTuple):
    """Totals that the processes of a run have reported."""

    processes: int
    events: int
    files: int
    calls: int
    filtered: int
    lost: int
    recovered: int
    alive: int
    broken: int
    ring_requests: int
    untraced: str


class Run:
    """A run that this process leads. The environment must be that of the program to start."""

    # The program uses another C library, whose loader would refuse to preload ours.
    OTHER_LIBC = 5
    # Its runtime makes raw system calls, which are not intercepted.
    GO = 6

    def __init__(self, program: str) -> None:
        self._run = _Run()
        library = load()
        code = library.dftracer_run_begin(os.fsencode(program), ctypes.byref(self._run))
        if code != 0:
            raise OSError(code, os.strerror(code), self.directory)

    @property
    def directory(self) -> str:
        return os.fsdecode(self._run.directory)

    @property
    def id(self) -> str:
        return f"{self._run.run:016x}"

    @property
    def is_guest(self) -> bool:
        """This process belongs to another run, which records into the same directory."""
        return bool(self._run.guest)

    @property
    def untraced(self) -> int:
        return int(self._run.untraced)

    @property
    def why_untraced(self) -> str:
        return os.fsdecode(self._run.why)

    def look(self) -> Sums:
        """Completes the traces of crashed processes; returns the totals so far."""
        sums = _Sums()
        code = load().dftracer_run_look(ctypes.byref(self._run), ctypes.byref(sums))
        if code != 0:
            raise OSError(code, os.strerror(code), self.directory)
        values: dict[str, Any] = {name: getattr(sums, name) for name in Sums._fields}
        return Sums(**{**values, "untraced": os.fsdecode(sums.untraced)})

    def end(self) -> None:
        load().dftracer_run_end(ctypes.byref(self._run))


def job() -> int:
    """The id of the job of a launcher (srun, mpirun, torchrun); 0 without one."""
    function = load().dftracer_run_job
    function.restype = ctypes.c_uint64
    return int(function())


def rank() -> int:
    """The rank that a launcher assigned, or -1."""
    return int(load().dftracer_run_rank())


def uses_counter() -> bool:
    """Whether events are timed with the CPU timestamp counter."""
    return bool(load().dftracer_doctor_counter())


def complaints() -> list[str]:
    """Warnings that a traced process would print about the settings in this environment."""
    text = ctypes.create_string_buffer(65536)
    load().dftracer_doctor_settings(text, ctypes.c_size_t(len(text)))
    return [line.partition(": ")[2] for line in os.fsdecode(text.value).splitlines()]


def version() -> str:
    function = load().dftracer_version
    function.restype = ctypes.c_char_p
    return os.fsdecode(function())


class _Peeked(ctypes.Structure):
    # struct Peeked of src/recovery/peek.hpp
    _fields_ = [
        ("run", ctypes.c_uint64),
        ("key", ctypes.c_uint64),
        ("written", ctypes.c_uint64),
        ("waiting", ctypes.c_uint64),
        ("lost", ctypes.c_uint64),
        ("trace_size", ctypes.c_uint64),
        ("pid", ctypes.c_uint32),
        ("life", ctypes.c_uint32),
        ("time_divisor_log10", ctypes.c_uint32),
        ("opening", ctypes.c_uint32),
        ("host", ctypes.c_char * 256),
        ("trace_name", ctypes.c_char * 256),
    ]


class Peeked(NamedTuple):
    """A running process, from its spool: totals, and its newest records as lines."""

    run: int
    key: int
    written: int
    waiting: int
    lost: int
    trace_size: int
    pid: int
    runs: bool
    units: int  # of time per second in the lines
    host: str
    trace_name: str
    opening: bytes
    lines: bytes


_LINES = 8 << 20
_GONE = 1
_buffer: ctypes.Array[ctypes.c_char] | None = None


def peek(directory: str, name: str) -> Peeked | None:
    """None if there is no spool, or no longer."""
    global _buffer
    if _buffer is None:
        _buffer = ctypes.create_string_buffer(_LINES)
    out = _Peeked()
    code = load().dftracer_peek(
        os.fsencode(directory),
        os.fsencode(name),
        ctypes.byref(out),
        _buffer,
        ctypes.c_size_t(_LINES),
    )
    if code != 0:
        return None
    text = _buffer.value
    return Peeked(
        run=out.run,
        key=out.key,
        written=out.written,
        waiting=out.waiting,
        lost=out.lost,
        trace_size=out.trace_size,
        pid=out.pid,
        runs=out.life != _GONE,
        units=10 ** (9 - out.time_divisor_log10),
        host=os.fsdecode(out.host),
        trace_name=os.fsdecode(out.trace_name),
        opening=text[: out.opening],
        lines=text[out.opening :],
    )

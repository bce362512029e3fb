"""The core's functions that only commands need, through ctypes: they are called once a run."""

from __future__ import annotations

import ctypes
import os
from typing import Any, NamedTuple

from dftracer import _library


class _Run(ctypes.Structure):
    # struct Run of src/bind/run.cpp
    _fields_ = [
        ("run", ctypes.c_uint64),
        ("key", ctypes.c_uint64),
        ("recovered", ctypes.c_uint64),
        ("recovered_events", ctypes.c_uint64),
        ("recovered_files", ctypes.c_uint64),
        ("guest", ctypes.c_uint32),
        ("untraced", ctypes.c_uint32),
        ("directory", ctypes.c_char * 4096),
        ("spools", ctypes.c_char * 4096),
        ("why", ctypes.c_char * 64),
    ]


class _Sums(ctypes.Structure):
    # struct Sums of src/bind/run.cpp
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
        ("untraced", ctypes.c_char * 1024),
    ]


class Sums(NamedTuple):
    """What the processes of a run have recorded, by their own account."""

    processes: int
    events: int
    files: int
    calls: int
    filtered: int
    lost: int
    recovered: int
    alive: int
    broken: int
    untraced: str


class Run:
    """This process as the first of a run. The environment must be that of the program to start."""

    # The program's C library is another one, whose loader would refuse to start it with ours.
    OTHER_LIBC = 5

    def __init__(self, program: str) -> None:
        self._run = _Run()
        library = _library.load()
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
        """Another run, which this process belongs to, records into the same directory."""
        return bool(self._run.guest)

    @property
    def untraced(self) -> int:
        return int(self._run.untraced)

    @property
    def why_untraced(self) -> str:
        return os.fsdecode(self._run.why)

    def look(self) -> Sums:
        """Finishes the traces of the dead; what the run has come to so far."""
        sums = _Sums()
        code = _library.load().dftracer_run_look(ctypes.byref(self._run), ctypes.byref(sums))
        if code != 0:
            raise OSError(code, os.strerror(code), self.directory)
        values: dict[str, Any] = {name: getattr(sums, name) for name in Sums._fields}
        return Sums(**{**values, "untraced": os.fsdecode(sums.untraced)})

    def end(self) -> None:
        _library.load().dftracer_run_end(ctypes.byref(self._run))


def job() -> int:
    """The id of the job that a launcher (srun, mpirun, torchrun) runs us in; 0 without one."""
    function = _library.load().dftracer_run_job
    function.restype = ctypes.c_uint64
    return int(function())


def rank() -> int:
    """The rank that a launcher gave us, or -1."""
    return int(_library.load().dftracer_run_rank())


def uses_counter() -> bool:
    """Whether events are timed by the processor's own counter."""
    return bool(_library.load().dftracer_doctor_counter())


def complaints() -> list[str]:
    """What a traced process would say about the settings in this process's environment."""
    text = ctypes.create_string_buffer(65536)
    _library.load().dftracer_doctor_settings(text, ctypes.c_size_t(len(text)))
    return [line.partition(": ")[2] for line in os.fsdecode(text.value).splitlines()]


def version() -> str:
    function = _library.load().dftracer_version
    function.restype = ctypes.c_char_p
    return os.fsdecode(function())

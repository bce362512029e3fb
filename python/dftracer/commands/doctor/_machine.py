"""The checks of `dftracer doctor` on C library, kernel, clock, perf and io_uring."""

from __future__ import annotations

import errno
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

from dftracer import _libcore
from dftracer.commands.doctor._check import Check, ok, warn

NAMESPACES_SINCE = (2, 35)  # glibc: docs/interception.md, blind spots

# Makes two system calls that a sandbox may refuse, and prints their errors, 0 for none. In a
# process of its own: a seccomp filter may kill the caller.
_PROBE = """
import ctypes, os, platform, struct
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def attempt(*words):
    ctypes.set_errno(0)
    fd = libc.syscall(*(ctypes.c_long(w) if isinstance(w, int) else w for w in words))
    if fd >= 0:
        os.close(fd)
    print(0 if fd >= 0 else ctypes.get_errno(), flush=True)
# perf_event_open: page faults, a software event, of this process in user space.
attr = struct.pack("=IIQQQQQIIQ", 1, 64, 2, 0, 0, 0, 0b1100001, 0, 0, 0)  # perf_event_attr
number = {"x86_64": 298, "aarch64": 241}[platform.machine()]
attempt(number, ctypes.create_string_buffer(attr), 0, -1, -1, 8)
attempt(425, 1, ctypes.create_string_buffer(120))  # io_uring_setup: io_uring_params
"""


class Probe(NamedTuple):
    """Errors of the two system calls; 0 for success, None if it is not known."""

    perf: int | None
    io_uring: int | None
    killed: int = 0  # the signal that ended the probe


def probe() -> Probe:
    clean = {
        name: text
        for name, text in os.environ.items()
        if name != "LD_PRELOAD" and not name.startswith("DFTRACER_")
    }
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _PROBE],
            env=clean,
            capture_output=True,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return Probe(None, None)
    numbers = iter(done.stdout.split())
    errors = [None if word is None else int(word) for word in (next(numbers, None) for _ in "12")]
    return Probe(errors[0], errors[1], max(0, -done.returncode))


def check_system() -> Iterator[Check]:
    yield system(*platform.libc_ver())


def check_clock() -> Iterator[Check]:
    yield clock()


def check_permissions() -> Iterator[Check]:
    found = probe()
    yield perf(found, read("/proc/sys/kernel/perf_event_paranoid"))
    yield io_uring(found, read("/proc/sys/kernel/io_uring_disabled"))


def system(name: str, version: str) -> Check:
    where = f"{platform.system()} {platform.release()} {platform.machine()}"
    if name != "glibc":
        text = f"{where}, {name or 'unknown C library'}: dftracer run needs glibc"
        return warn("system", text)
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    seen = "are" if numbers >= NAMESPACES_SINCE else "(glibc before 2.35) are not"
    return ok(
        "system",
        f"{where}, glibc {version}: libraries in namespaces of their own (dlmopen) {seen} recorded",
    )


def clock() -> Check:
    source = read("/sys/devices/system/clocksource/clocksource0/current_clocksource") or "unknown"
    if _libcore.uses_counter():
        counter = "generic timer" if platform.machine() == "aarch64" else "timestamp counter"
        return ok(
            "clock",
            f"CPU {counter}, because the kernel trusts it (clock source {source}): no "
            "system call per event, one time on all CPUs",
        )
    return warn(
        "clock",
        f"clock_gettime, because the kernel's clock source is {source}: about 50 ns more per event",
    )


def perf(found: Probe, paranoid: str | None) -> Check:
    text = _permission(found.perf, found, f"perf_event_paranoid {paranoid or 'unknown'}")
    if found.perf == 0:
        return ok("perf", f"{text}; page faults on mapped files are recorded, by thread and time")
    return ok(
        "perf",
        f"{text}; of mapped files, traces say how much was touched, but not when and by which "
        "thread (set kernel.perf_event_paranoid to 2 or less)",
    )


def io_uring(found: Probe, disabled: str | None) -> Check:
    setting = f"io_uring_disabled {disabled}" if disabled else "no io_uring_disabled"
    text = _permission(found.io_uring, found, setting)
    if found.io_uring == 0:
        meaning = (
            "requests through liburing and syscall() are recorded; of those by instructions of a "
            "program's own, reports and doctor TRACE have the number"
        )
    elif found.io_uring is None:
        meaning = "where a program uses it, reports and doctor TRACE name the gap"
    else:
        meaning = "programs use calls that are recorded instead"
    return ok("io_uring", f"{text}; {meaning}")


def _permission(error: int | None, found: Probe, setting: str) -> str:
    if error == 0:
        return f"permitted ({setting})"
    if error == errno.ENOSYS:
        return f"not permitted: the kernel or a sandbox does not have the call ({setting})"
    if error is not None:
        return (
            f"not permitted: {os.strerror(error)} ({setting}, or the seccomp filter of a container)"
        )
    if found.killed:
        name = signal.Signals(found.killed).name
        return f"not known: a sandbox ended the attempt with {name} ({setting})"
    return f"not known ({setting})"


def read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return None

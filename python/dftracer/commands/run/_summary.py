"""The end of a run: completes the traces of crashed processes and prints the summary."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from dftracer import _format, _libcore
from dftracer._format import counted, duration
from dftracer._names import printable

# Seconds to wait for processes that end because the program has, like multiprocessing's helpers.
PATIENCE = 0.5


def finish(own: _libcore.Run, passed: float, command: Sequence[str]) -> list[str]:
    """Completes the traces of crashed processes; returns the lines of the summary."""
    rank = _libcore.rank()
    until = time.monotonic() + PATIENCE
    try:
        while True:
            sums = own.look()
            files = _files_of(own)
            # A process that is ending has its file before it has reported its counts. Processes of
            # other ranks may keep running.
            ended = sums.alive == 0 and sums.processes >= len(files)
            if ended or rank >= 0 or time.monotonic() > until:
                if rank < 0 and sums.processes < len(files):
                    sums = _recount(own, sums)
                sizes = sum(path.stat().st_size for path in files)
                return _summary(own, sums, sizes, passed, command, rank)
            time.sleep(0.01)
    except OSError as error:
        return [f"cannot complete the traces in {own.directory}: {error.strerror}"]
    finally:
        own.end()


def _recount(own: _libcore.Run, sums: _libcore.Sums) -> _libcore.Sums:
    """Counts from the run's files, if processes could not report: without /proc they do not find
    the run they belong to."""
    from dftracer.trace.summary import summarise

    found = [summarise(path, sample_lines=0) for path in _files_of(own)]
    ours = [one for one in found if one.run in ("", own.id)]
    return sums._replace(
        processes=max(sums.processes, sum(len(one.processes) for one in ours)),
        events=max(sums.events, sum(one.events for one in ours)),
        files=max(sums.files, sum(one.metadata["FH"] for one in ours)),
    )


def _files_of(own: _libcore.Run) -> list[Path]:
    """This run's files. Only that of the first process may have a name without the key."""
    base = os.path.basename(os.environ.get("DFTRACER_LOG_FILE", ""))
    stem = base.split(".pfw")[0]
    exact = {f"{stem}.pfw", f"{stem}.pfw.gz"} if base != stem else set()
    key = f"-{own.id[:8]}-"
    return [
        Path(entry.path)
        for entry in os.scandir(own.directory)
        if entry.name in exact or (key in entry.name and entry.name.endswith((".pfw", ".pfw.gz")))
    ]


def _summary(
    own: _libcore.Run,
    sums: _libcore.Sums,
    size: int,
    passed: float,
    command: Sequence[str],
    rank: int,
) -> list[str]:
    where = os.path.relpath(own.directory)
    where = own.directory if where.startswith("..") else where
    facts = [
        counted(sums.processes, "process", "processes"),
        f"{counted(sums.events, 'event')} on {counted(sums.files, 'file')}",
        _format.size(size),
    ]
    prefix = f"rank {rank}: " if rank >= 0 else ""
    first = f"{prefix}{', '.join(facts)} in {duration(1e9 * passed)}: {printable(where)}"
    notes = []
    if sums.events == 0:
        notes.append(f"nothing was recorded: {_why_empty(own, sums, command)}")
    if sums.untraced:
        notes.append(f"not traced: {printable(sums.untraced)}")
    if sums.ring_requests:
        notes.append(f"not seen: {counted(sums.ring_requests, 'request')} of io_uring")
    if own.untraced and sums.events != 0:
        extent = "partly traced" if own.untraced == own.GO else "not traced"
        notes.append(f"{extent}: {printable(command[0])} ({own.why_untraced})")
    if sums.lost:
        notes.append(f"{counted(sums.lost, 'event')} lost; the trace shows when")
    if sums.recovered:
        dead = counted(sums.recovered, "process", "processes")
        notes.append(
            f"{dead} ended without exit() (killed, crashed, or a raw system call); "
            "the recorded events are complete"
        )
    if sums.alive and rank < 0:
        living = counted(sums.alive, "process", "processes")
        verb = "is" if sums.alive == 1 else "are"
        notes.append(f"{living} {verb} still running and recording")
    if sums.broken:
        notes.append(f"{counted(sums.broken, 'spool')} could not be read: dftracer recover {where}")
    notes = [prefix + note for note in notes]
    # Rank 0 prints the summary; other ranks print only what went wrong.
    if rank > 0:
        return notes
    if sums.events == 0:
        return [*notes, f"next: dftracer doctor {_quoted(where)}"]
    then = f"next: dftracer report {_quoted(where)} (or info; view shows the timeline)"
    return [first, *notes, then]


def _why_empty(own: _libcore.Run, sums: _libcore.Sums, command: Sequence[str]) -> str:
    if own.untraced:
        return f"{printable(command[0])} is {own.why_untraced}"
    if os.environ.get("DFTRACER_DISABLE_IO", "0").lower() in ("1", "true", "yes", "on"):
        return "I/O calls are disabled, and the program has no regions of its own"
    if sums.calls == 0:
        return "no call was intercepted and no region recorded"
    calls = counted(sums.calls, "call")
    data = os.environ.get("DFTRACER_DATA_DIR")
    if data:
        return f"{calls}, all outside {printable(data)}"
    return (
        f"{calls}, all on /proc, /sys, /dev, shared libraries or Python's own files; "
        "--data-dir all records those as well"
    )


def _ansi_c(char: str) -> str:
    """Escaped for $'...' of a shell."""
    if char.isprintable() and char not in "\\'":
        return char
    return "".join(f"\\{byte:03o}" for byte in os.fsencode(char))


def _quoted(path: str) -> str:
    """Quoted for a shell; on one line, whatever the name contains."""
    import shlex

    if path.isprintable():
        return shlex.quote(path)
    plain = "".join(map(_ansi_c, path))
    return f"$'{plain}'"


def show(lines: Sequence[str]) -> None:
    if os.environ.get("DFTRACER_SUMMARY", "1").lower() in ("0", "false", "no", "off", ""):
        return
    text = "".join(f"dftracer: {line}\n" for line in lines)
    with contextlib.suppress(AttributeError, OSError, ValueError):
        # One write, so that the lines of several ranks do not interleave.
        sys.stderr.write(text)
        sys.stderr.flush()

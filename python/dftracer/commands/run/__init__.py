"""`dftracer run -- PROGRAM ARGS...`: any program, with its calls recorded."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dftracer import _cleanup, _format, _libcore
from dftracer._format import counted, duration
from dftracer._names import printable
from dftracer.commands.run._child import CannotStart, Child
from dftracer.errors import DFTracerError

EXAMPLES = """\
  dftracer run -- python train.py --epochs 3
  dftracer run -o traces --data-dir /data -- make -j8     only files below /data
  mpirun -n 4 dftracer run -o traces -- ./simulation      all ranks into one directory
  dftracer run --no-io -- python annotated.py             only the program's own regions

Each option has a variable, which holds where the option is not given; see docs/command.md.

exit status: that of the program. If it was killed by a signal, so is this command. 125 if nothing
could be recorded, 126 if the program cannot be executed, 127 if there is none of that name.
"""

# What a failure of our own ends with, as in env, nohup and timeout.
OWN_FAILURE = 125
# Seconds for processes that end because the program has, like the helpers of multiprocessing.
PATIENCE = 0.5

# Flags, and what argparse is to know of them.
OPTIONS: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
    (
        ("-o", "--output"),
        {
            "metavar": "DIR",
            "help": "directory of the traces (DFTRACER_LOG_FILE; default: a new one, "
            "dftracer-NAME-TIME); PATH.pfw.gz names the file of the first process",
        },
    ),
    (
        ("--name",),
        {"metavar": "N", "help": "first part of the files' names (default: the program's)"},
    ),
    (
        ("--data-dir",),
        {
            "metavar": "P",
            "action": "append",
            "default": [],
            "help": "record only files below P; may be repeated; `all` records the system's files, "
            "too (DFTRACER_DATA_DIR)",
        },
    ),
    (
        ("--no-io",),
        {
            "action": "store_true",
            "help": "record no I/O calls, only the program's own regions (DFTRACER_DISABLE_IO=1)",
        },
    ),
    (
        ("--no-metadata",),
        {
            "action": "store_true",
            "help": "leave out the arguments of calls (DFTRACER_INC_METADATA=0)",
        },
    ),
    (
        ("--torch",),
        {"action": "store_true", "help": "record PyTorch's own regions (DFTRACER_TORCH=1)"},
    ),
    (
        ("-q", "--quiet"),
        {"action": "store_true", "help": "no summary at the end (DFTRACER_SUMMARY=0)"},
    ),
)
_WITH_VALUE = {flag for flags, how in OPTIONS if "metavar" in how for flag in flags}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "dftracer run [OPTION ...] [--] PROGRAM [ARGUMENT ...]"
    for flags, how in OPTIONS:
        parser.add_argument(*flags, **how)


def split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Our options end with `--` or with the first word that is none: that is the program."""
    at = 0
    while at < len(words):
        word = words[at]
        if word == "--":
            return list(words[:at]), list(words[at + 1 :])
        if not word.startswith("-") or word == "-":
            break
        at += 2 if word in _WITH_VALUE else 1
    return list(words[:at]), list(words[at:])


def run(args: argparse.Namespace) -> int:
    command: list[str] = args.rest
    if not command:
        raise DFTracerError("no program given: dftracer run [OPTION ...] -- PROGRAM [ARGUMENT ...]")
    if not _libcore.PRELOAD.exists():
        raise DFTracerError(
            f"{_libcore.PRELOAD} is missing: this package was built for a platform on which "
            "programs can only start their trace themselves",
            OWN_FAILURE,
        )
    os.environ.update(_settings(args, command))
    own: _libcore.Run | None = None
    try:
        with _cleanup.whole():
            own = _libcore.Run(command[0])
        environment = dict(os.environ)
        environment["DFTRACER_RUN_ID"] = own.id
        if own.untraced == own.OTHER_LIBC:
            del environment["LD_PRELOAD"]
        if not os.path.exists("/proc/self/stat"):
            # The processes cannot find out that they belong to a run, so each would speak for
            # itself.
            environment["DFTRACER_SUMMARY"] = "0"
        begin = time.monotonic()
        child = Child(command, environment)  # from here on signals are the program's
    except BaseException as error:
        if own is not None:
            own.end()
            _remove_if_empty(own.directory)
        if isinstance(error, CannotStart):
            raise DFTracerError(str(error), error.exit_code) from None
        if own is None and isinstance(error, OSError):
            where = error.filename or os.environ.get("DFTRACER_LOG_FILE", ".")
            text = f"cannot record into {where}: {error.strerror}"
            raise DFTracerError(text, OWN_FAILURE) from None
        raise
    _cleanup.keep(os.path.dirname(os.environ.get("DFTRACER_LOG_FILE", "")))
    status = child.wait()
    passed = time.monotonic() - begin
    if not own.is_guest:
        _say(_end(own, passed, command))
    return status.leave()


def _end(own: _libcore.Run, passed: float, command: Sequence[str]) -> list[str]:
    """Finishes what the run's processes have left; the lines of the summary."""
    rank = _libcore.rank()
    until = time.monotonic() + PATIENCE
    try:
        while True:
            sums = own.look()
            files = _files_of(own)
            # A process that is ending has its file before it has told its numbers. The processes of
            # other ranks may well go on.
            ended = sums.alive == 0 and sums.processes >= len(files)
            if ended or rank >= 0 or time.monotonic() > until:
                if rank < 0 and sums.processes < len(files):
                    sums = _recount(own, sums)
                sizes = sum(path.stat().st_size for path in files)
                return _summary(own, sums, sizes, passed, command, rank)
            time.sleep(0.01)
    except OSError as error:
        return [f"cannot finish the traces in {own.directory}: {error.strerror}"]
    finally:
        own.end()


def _settings(args: argparse.Namespace, command: Sequence[str]) -> dict[str, str]:
    """The variables that make a program record itself."""
    settings = {"DFTRACER_ENABLE": "1", "DFTRACER_INIT": "PRELOAD"}
    log_file = _log_file(args, command, os.environ)
    if log_file is not None:
        settings["DFTRACER_LOG_FILE"] = log_file
    place = os.path.dirname(log_file) if log_file is not None else os.getcwd()
    settings["LD_PRELOAD"] = _preload(os.environ.get("LD_PRELOAD", ""), place)
    if args.data_dir:
        settings["DFTRACER_DATA_DIR"] = ":".join(_data_directory(path) for path in args.data_dir)
    for given, name, value in (
        (args.no_io, "DFTRACER_DISABLE_IO", "1"),
        (args.no_metadata, "DFTRACER_INC_METADATA", "0"),
        (args.torch, "DFTRACER_TORCH", "1"),
        (args.quiet, "DFTRACER_SUMMARY", "0"),
    ):
        if given:
            settings[name] = value
    return settings


def _data_directory(path: str) -> str:
    if ":" in path:
        raise DFTracerError(f"--data-dir {path}: a directory with ':' in its name cannot be given")
    if path == "":
        raise DFTracerError("--data-dir needs a directory")
    return path if path == "all" else os.path.abspath(path)


def _log_file(
    args: argparse.Namespace, command: Sequence[str], environment: Mapping[str, str]
) -> str | None:
    """Directory and first part of the files' names; None where the user's YAML file is to say."""
    given = environment.get("DFTRACER_LOG_FILE", "")
    if args.name is not None and (not args.name or "/" in args.name or len(args.name) > 150):
        raise DFTracerError(f"--name {args.name!r} cannot be the first part of a file's name")
    if args.output is None and given:
        # A job script's own setting, or that of a run around this one.
        base = os.path.abspath(given)
        return os.path.join(os.path.dirname(base), args.name) if args.name else base
    if args.output is None and args.name is None and environment.get("DFTRACER_CONFIGURATION"):
        return None
    name = args.name or _name_of(command)
    if args.output is None:
        return os.path.join(_new_directory(name), name)
    if args.output == "":
        raise DFTracerError("-o needs a directory")
    output: str = os.path.abspath(args.output)
    if output.endswith((".pfw", ".pfw.gz")) and not os.path.isdir(output):
        return output
    if os.path.exists(output) and not os.path.isdir(output):
        raise DFTracerError(f"-o {args.output}: is not a directory", OWN_FAILURE)
    return os.path.join(output, name)


def _name_of(command: Sequence[str]) -> str:
    """What a person would call this program: of `python -m pkg.tool` and `python train.py`, the
    last word."""
    name = os.path.basename(command[0].rstrip("/")) or "run"
    if name.startswith(("python", "pypy")):
        words = iter(command[1:])
        for word in words:
            if word == "-m":
                name = next(words, name)
                break
            if word == "-c":
                break
            if word in ("-W", "-X"):
                next(words, None)
            elif not word.startswith("-"):
                name = os.path.splitext(os.path.basename(word))[0]
                break
    clean = "".join(char if char.isalnum() or char in "._+" else "-" for char in name)
    return clean.strip(".-")[:60] or "run"


def _new_directory(name: str) -> str:
    """Its name sorts by time. The ranks of a job have to come to the same one."""
    job = _libcore.job()
    if job == 0 and _libcore.rank() >= 0:
        # A launcher that names no job: its processes on this node are those with the same parent.
        job = hash((os.getppid(), _start_of(os.getppid()))) & (1 << 64) - 1
    if job != 0:
        return os.path.abspath(f"dftracer-{name}-{job >> 32:08x}")
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for number in range(1, 1000):
        path = os.path.abspath(f"dftracer-{name}-{stamp}" + (f"-{number}" if number > 1 else ""))
        try:
            _cleanup.make_output(path)
        except FileExistsError:
            continue
        except OSError as error:
            raise DFTracerError(
                f"cannot make {path}: {error.strerror}; -o names another place", OWN_FAILURE
            ) from None
        return path
    raise DFTracerError("too many traces of this name in this directory", OWN_FAILURE)


def _start_of(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0


def _preload(given: str, place: str) -> str:
    path = str(_libcore.PRELOAD)
    if any(char in path for char in " :$"):
        # The loader would split or expand it. The traces' directory may have a better name.
        link = os.path.join(place, ".dftracer-lib")
        if any(char in link for char in " :$"):
            raise DFTracerError(
                f"LD_PRELOAD cannot name {path}, for its blanks or colons; choose a directory "
                "without them by -o",
                OWN_FAILURE,
            )
        os.makedirs(os.path.dirname(link), exist_ok=True)
        if not os.path.islink(link):
            os.symlink(_libcore.PRELOAD.parent, link)
        path = os.path.join(link, _libcore.PRELOAD.name)
    words = given.replace(" ", ":").split(":")
    if path in words:
        return given
    return f"{given}:{path}" if given else path


def _remove_if_empty(directory: str) -> None:
    with contextlib.suppress(OSError):
        os.rmdir(directory)


def _recount(own: _libcore.Run, sums: _libcore.Sums) -> _libcore.Sums:
    """What the run's files hold, where processes could not report: without /proc they do not find
    the run that they belong to."""
    from dftracer.trace.summary import summarise

    found = [summarise(path, sample_lines=0) for path in _files_of(own)]
    ours = [one for one in found if one.run in ("", own.id)]
    return sums._replace(
        processes=max(sums.processes, sum(len(one.processes) for one in ours)),
        events=max(sums.events, sum(one.events for one in ours)),
        files=max(sums.files, sum(one.metadata["FH"] for one in ours)),
    )


def _files_of(own: _libcore.Run) -> list[Path]:
    """This run's files. Only the first process's name may be without the key."""
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
    if own.untraced and sums.events != 0:
        extent = "partly traced" if own.untraced == own.GO else "not traced"
        notes.append(f"{extent}: {printable(command[0])} ({own.why_untraced})")
    if sums.lost:
        notes.append(f"{counted(sums.lost, 'event')} lost; the trace says when")
    if sums.recovered:
        dead = counted(sums.recovered, "process", "processes")
        notes.append(
            f"{dead} ended without libc's exit (killed, crashed, or a raw exit system call); "
            "what was recorded is complete"
        )
    if sums.alive and rank < 0:
        living = counted(sums.alive, "process", "processes")
        verb = "runs" if sums.alive == 1 else "run"
        notes.append(f"{living} of it still {verb}, and will be in the trace")
    if sums.broken:
        notes.append(f"{counted(sums.broken, 'spool')} could not be read: dftracer recover {where}")
    notes = [prefix + note for note in notes]
    # One rank speaks for all, as long as there is nothing to tell of the others.
    if rank > 0:
        return notes
    if sums.events == 0:
        return [*notes, f"next: dftracer doctor {_quoted(where)}"]
    then = f"next: dftracer report {_quoted(where)} (or info, or view for the timeline)"
    return [first, *notes, then]


def _why_empty(own: _libcore.Run, sums: _libcore.Sums, command: Sequence[str]) -> str:
    if own.untraced:
        return f"{printable(command[0])} is {own.why_untraced}"
    if os.environ.get("DFTRACER_DISABLE_IO", "0").lower() in ("1", "true", "yes", "on"):
        return "I/O calls were left out, and the program has no regions of its own"
    if sums.calls == 0:
        return "no call was intercepted and no region recorded"
    calls = counted(sums.calls, "call")
    data = os.environ.get("DFTRACER_DATA_DIR")
    if data:
        return f"{calls}, all outside {printable(data)}"
    return (
        f"{calls}, all about /proc, /sys, /dev, shared libraries or Python's own files; "
        "--data-dir all records those, too"
    )


def _ansi_c(char: str) -> str:
    """As it stands between $' and '."""
    if char.isprintable() and char not in "\\'":
        return char
    return "".join(f"\\{byte:03o}" for byte in os.fsencode(char))


def _quoted(path: str) -> str:
    """For a shell; in one line, whatever the name holds."""
    import shlex

    if path.isprintable():
        return shlex.quote(path)
    plain = "".join(map(_ansi_c, path))
    return f"$'{plain}'"


def _say(lines: Sequence[str]) -> None:
    if os.environ.get("DFTRACER_SUMMARY", "1").lower() in ("0", "false", "no", "off", ""):
        return
    text = "".join(f"dftracer: {line}\n" for line in lines)
    with contextlib.suppress(AttributeError, OSError, ValueError):
        # One write, so that the lines of several ranks do not mix.
        sys.stderr.write(text)
        sys.stderr.flush()

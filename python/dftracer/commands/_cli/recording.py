"""Options of the verbs that record, the variables that they set, and where the traces go."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

from dftracer import _cleanup, _libcore
from dftracer.errors import DFTracerError

# Exit status of our own failures, as in env, nohup and timeout.
OWN_FAILURE = 125

# Flags, and their arguments to add_argument.
OPTIONS: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
    (
        ("-o", "--output"),
        {
            "metavar": "DIR",
            "help": "directory for the traces (DFTRACER_LOG_FILE; default: a new directory "
            "dftracer-NAME-TIME); PATH.pfw.gz names the file of the first process",
        },
    ),
    (
        ("--name",),
        {"metavar": "N", "help": "prefix of the file names (default: the program's name)"},
    ),
    (
        ("--data-dir",),
        {
            "metavar": "P",
            "action": "append",
            "default": [],
            "help": "record only files below P; may be repeated; `all` also records system files "
            "(DFTRACER_DATA_DIR)",
        },
    ),
    (
        ("--no-io",),
        {
            "action": "store_true",
            "help": "record only the program's own regions, no I/O calls (DFTRACER_DISABLE_IO=1)",
        },
    ),
    (
        ("--no-net",),
        {
            "action": "store_true",
            "help": "do not record calls on sockets: connect, send, recv, ... "
            "(DFTRACER_DISABLE_NET=1)",
        },
    ),
    (
        ("--no-metadata",),
        {
            "action": "store_true",
            "help": "do not record the arguments of calls (DFTRACER_INC_METADATA=0)",
        },
    ),
    (
        ("--no-call-sites",),
        {
            "action": "store_true",
            "help": "do not record the line of code of each call (DFTRACER_CALL_SITES=0)",
        },
    ),
    (
        ("--no-page-faults",),
        {
            "action": "store_true",
            "help": "do not record accesses to mapped files (DFTRACER_PAGE_FAULTS=0)",
        },
    ),
    (
        ("--torch",),
        {
            "action": "store_true",
            "help": "record regions of PyTorch training loops (DFTRACER_TORCH=1)",
        },
    ),
    (
        ("--no-stores",),
        {
            "action": "store_true",
            "help": "do not record the requests of Python programs to object stores "
            "(DFTRACER_STORES=0)",
        },
    ),
    (
        ("--functions",),
        {
            "metavar": "PATTERN",
            "action": "append",
            "default": [],
            "help": "record the calls of functions by name: a module, `module.function`, or a "
            "pattern such as `package.*`; may be repeated (DFTRACER_FUNCTIONS)",
        },
    ),
    (
        ("-q", "--quiet"),
        {"action": "store_true", "help": "print no summary (DFTRACER_SUMMARY=0)"},
    ),
)


# Annotations for other tools: the switch, and the variable that names the library of the tool.
INJECTED = {"DFTRACER_NVTX": "NVTX_INJECTION64_PATH", "DFTRACER_ITT": "INTEL_LIBITTNOTIFY64"}


def _is_off(name: str) -> bool:
    return os.environ.get(name, "1").strip().lower() in ("", "0", "false", "no", "off")


def add_options(parser: argparse.ArgumentParser, **helps: str) -> None:
    """`helps` replaces the help of an option, by its name."""
    for flags, how in OPTIONS:
        own = helps.get(flags[-1].lstrip("-"))
        parser.add_argument(*flags, **({**how, "help": own} if own else how))


def require_library() -> None:
    try:
        _libcore.load()
    except DFTracerError as error:
        raise DFTracerError(str(error), OWN_FAILURE) from None
    if not _libcore.PRELOAD.exists():
        raise DFTracerError(
            f"{_libcore.PRELOAD} is missing: this package was built for a platform without "
            "interception; programs must start tracing themselves",
            OWN_FAILURE,
        )


def settings(
    args: argparse.Namespace, command: Sequence[str], *, create: bool = True
) -> dict[str, str]:
    """The environment variables that trace the program.

    `create` reserves a new directory by making it; otherwise the first traced process makes it.
    """
    made = {"DFTRACER_ENABLE": "1", "DFTRACER_INIT": "PRELOAD"}
    for name in ("DFTRACER_STORES", "DFTRACER_OTEL"):
        made[name] = os.environ.get(name, "1")
    for name, variable in INJECTED.items():
        # A tool that the user chose gets the annotations.
        if not _is_off(name) and not os.environ.get(variable):
            made[variable] = str(_libcore.INJECT)
    log_file = _log_file(args, command, os.environ, create)
    if log_file is not None:
        made["DFTRACER_LOG_FILE"] = log_file
    place = os.path.dirname(log_file) if log_file is not None else os.getcwd()
    made["LD_PRELOAD"] = _preload(os.environ.get("LD_PRELOAD", ""), place)
    if args.data_dir:
        made["DFTRACER_DATA_DIR"] = ":".join(_data_directory(path) for path in args.data_dir)
    if args.functions:
        made["DFTRACER_FUNCTIONS"] = ",".join(args.functions)
    for given, name, value in (
        (args.no_io, "DFTRACER_DISABLE_IO", "1"),
        (args.no_net, "DFTRACER_DISABLE_NET", "1"),
        (args.no_metadata, "DFTRACER_INC_METADATA", "0"),
        (args.no_call_sites, "DFTRACER_CALL_SITES", "0"),
        (args.no_page_faults, "DFTRACER_PAGE_FAULTS", "0"),
        (args.torch, "DFTRACER_TORCH", "1"),
        (args.no_stores, "DFTRACER_STORES", "0"),
        (args.quiet, "DFTRACER_SUMMARY", "0"),
    ):
        if given:
            made[name] = value
    return made


def _data_directory(path: str) -> str:
    if ":" in path:
        raise DFTracerError(f"--data-dir {path}: the name must not contain ':'")
    if path == "":
        raise DFTracerError("--data-dir needs a directory")
    return path if path == "all" else os.path.abspath(path)


def _log_file(
    args: argparse.Namespace,
    command: Sequence[str],
    environment: Mapping[str, str],
    create: bool,
) -> str | None:
    """Directory and prefix of the file names; None if the user's YAML file sets them."""
    given = environment.get("DFTRACER_LOG_FILE", "")
    if args.name is not None and (not args.name or "/" in args.name or len(args.name) > 150):
        raise DFTracerError(f"--name {args.name!r} cannot be the prefix of a file name")
    if args.output is None and given:
        # Set by a job script, or by an enclosing run.
        base = os.path.abspath(given)
        return os.path.join(os.path.dirname(base), args.name) if args.name else base
    if args.output is None and args.name is None and environment.get("DFTRACER_CONFIGURATION"):
        return None
    name = args.name or _name_of(command)
    if args.output is None:
        return os.path.join(_new_directory(name, create), name)
    if args.output == "":
        raise DFTracerError("-o needs a directory")
    output: str = os.path.abspath(args.output)
    if output.endswith((".pfw", ".pfw.gz")) and not os.path.isdir(output):
        return output
    if os.path.exists(output) and not os.path.isdir(output):
        raise DFTracerError(f"-o {args.output}: is not a directory", OWN_FAILURE)
    return os.path.join(output, name)


def _name_of(command: Sequence[str]) -> str:
    """The name a person would use: of `python -m pkg.tool` and `python train.py`, the last word."""
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


def _new_directory(name: str, create: bool) -> str:
    """Its name sorts by time. All ranks of a job must choose the same one."""
    job = _libcore.job()
    if job == 0 and _libcore.rank() >= 0:
        # A launcher without a job id: its processes on this node have the same parent.
        job = hash((os.getppid(), _start_of(os.getppid()))) & (1 << 64) - 1
    if job != 0:
        return os.path.abspath(f"dftracer-{name}-{job >> 32:08x}")
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for number in range(1, 1000):
        path = os.path.abspath(f"dftracer-{name}-{stamp}" + (f"-{number}" if number > 1 else ""))
        try:
            if create:
                _cleanup.make_output(path)
            elif os.path.lexists(path):
                continue
        except FileExistsError:
            continue
        except OSError as error:
            raise DFTracerError(
                f"cannot create {path}: {error.strerror}; choose another directory with -o",
                OWN_FAILURE,
            ) from None
        return path
    raise DFTracerError("too many traces with this name in this directory", OWN_FAILURE)


def _start_of(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0


def _preload(given: str, place: str) -> str:
    path = str(_libcore.PRELOAD)
    if any(char in path for char in " :$"):
        # The loader would split or expand the path. Link to it from the traces' directory.
        link = os.path.join(place, ".dftracer-lib")
        if any(char in link for char in " :$"):
            raise DFTracerError(
                f"LD_PRELOAD cannot contain {path} (blanks, colons or dollar signs); "
                "choose a directory without them with -o",
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

"""Files that commands write. A trace tells what a program did and with which arguments, so they
are readable by their owner alone unless the user says otherwise."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
from collections.abc import Iterator
from typing import IO, Any

from dftracer.errors import DFTracerError

PRIVATE = 0o600
VARIABLE = "DFTRACER_FILE_MODE"


def parse_mode(text: str) -> int:
    mode = int(text, 8) if re.fullmatch(r"[0-7]+", text) else -1
    if not 0 <= mode <= 0o777:
        raise ValueError(f"invalid file mode {text!r} (e.g. 0600, 0640, 0644)")
    return mode


def file_mode(given: int | None = None) -> int:
    """Of --mode, else of the environment, else 0600; less the umask, as open() takes it."""
    if given is not None:
        return given
    text = os.environ.get(VARIABLE, "")
    try:
        return parse_mode(text) if text else PRIVATE
    except ValueError as error:
        raise DFTracerError(f"{VARIABLE}: {error}") from None


def add_mode(parser: argparse.ArgumentParser) -> None:
    def mode(text: str) -> int:
        try:
            return parse_mode(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    parser.add_argument(
        "--mode",
        type=mode,
        metavar="OCTAL",
        help=f"permissions of what is written, less the umask (default: {VARIABLE}, else 0600)",
    )


def create(path: str | os.PathLike[str], how: str, mode: int, **options: Any) -> IO[Any]:
    """open(path, how) that creates the file with this mode. A file that is there keeps its own."""
    return open(path, how, opener=lambda name, flags: os.open(name, flags, mode), **options)


def directory_mode(mode: int) -> int:
    """Who may read the files may enter."""
    return mode | (mode & 0o444) >> 2


def grant(path: str | os.PathLike[str], mode: int) -> None:
    """Gives a file that was made private, or a directory and the files in it, this mode."""
    if mode == PRIVATE:
        return
    mode &= ~_umask()
    if os.path.isdir(path):
        for place, _, names in os.walk(path):
            os.chmod(place, directory_mode(mode))
            for name in names:
                os.chmod(os.path.join(place, name), mode)
    elif os.path.isfile(path):  # and not a pipe or a device
        os.chmod(path, mode)


def _umask() -> int:
    # Reading it means setting it; in between, files are private rather than open to all.
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


@contextlib.contextmanager
def private_umask() -> Iterator[None]:
    """For libraries that create files themselves. It holds for the whole process: commands only."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)

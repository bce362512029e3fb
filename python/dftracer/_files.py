"""Files that commands write. A trace shows what a program did and with which arguments, so they
are readable only by their owner unless the user chooses another mode."""

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
        raise ValueError(f"invalid file mode {text!r} (for example 0600, 0640, 0644)")
    return mode


def file_mode(given: int | None = None) -> int:
    """From --mode, else the environment, else 0600; the umask applies, as in open()."""
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
        help=f"mode of output files, less the umask (default: {VARIABLE}, else 0600)",
    )


def create(path: str | os.PathLike[str], how: str, mode: int, **options: Any) -> IO[Any]:
    """open(path, how) that creates a file with this mode. An existing file keeps its own."""
    return open(path, how, opener=lambda name, flags: os.open(name, flags, mode), **options)


def directory_mode(mode: int) -> int:
    """Readers of the files may also enter the directory."""
    return mode | (mode & 0o444) >> 2


def grant(path: str | os.PathLike[str], mode: int) -> None:
    """Sets the mode of a file that was created private, or of a directory and its files."""
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
    # It can only be read by setting it; meanwhile, new files are private.
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


@contextlib.contextmanager
def private_umask() -> Iterator[None]:
    """For libraries that create files themselves. Process-wide, so only for commands."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)

"""What must not outlive a command: temporary directories, unfinished files, child processes.

Each user removes its own when it is done. What an interruption leaves behind is on the list here,
and the command removes it at its end. Without a command, as in a notebook, the list does nothing.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

# Name of threads that a command does not wait for at its end.
LEFT_ALONE = "dftracer-left-alone"

_paths: dict[str, bool] = {}  # and whether it may contain something that must stay
_numbers = itertools.count(1)
_children: dict[int, subprocess.Popen[bytes]] = {}


class Gate:
    """Delays the exception of a signal while something is created and put on the list."""

    depth = 0
    pending: BaseException | None = None


@contextlib.contextmanager
def whole() -> Iterator[None]:
    """Runs the block to its end; an interruption is raised after it."""
    Gate.depth += 1
    try:
        yield
    finally:
        Gate.depth -= 1
        if Gate.depth == 0 and Gate.pending is not None:
            error, Gate.pending = Gate.pending, None
            raise error


def make_directory(prefix: str, parent: str | None = None) -> str:
    """Accessible to this user only."""
    import tempfile

    with whole():
        place = os.path.abspath(tempfile.mkdtemp(prefix=prefix, dir=parent))
        _paths[place] = False
    return place


def make_output(path: str) -> None:
    """A directory that stays if something was written to it; see `keep`."""
    with whole():
        os.mkdir(path)
        _paths[path] = True


def keep(path: str) -> None:
    _paths.pop(path, None)


def remove(path: str) -> None:
    with contextlib.suppress(OSError):
        if _paths.get(path):
            os.rmdir(path)
        elif os.path.isdir(path) and not os.path.islink(path):
            import shutil

            shutil.rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)
    _paths.pop(path, None)


@contextlib.contextmanager
def directory(prefix: str) -> Iterator[str]:
    place = make_directory(prefix)
    try:
        yield place
    finally:
        remove(place)


@contextlib.contextmanager
def unfinished(path: str | os.PathLike[str]) -> Iterator[str]:
    """A file or directory that is removed after the block, unless it was renamed in it."""
    name = os.path.abspath(path)
    _paths[name] = False
    try:
        yield os.fspath(path)
    finally:
        remove(name)


def part_name() -> str:
    """Name of an unfinished file: short and plain, whatever its final name."""
    return f".dftracer-{os.getpid()}-{next(_numbers)}.part"


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[str]:
    """A temporary path that replaces `path` when the block is complete."""
    target = os.path.realpath(path)  # a symbolic link stays one
    try:
        facts = os.stat(target)
    except OSError:
        facts = None
    if facts is not None and not stat.S_ISREG(facts.st_mode):
        yield os.fspath(
            path
        )  # a pipe or a device is written directly; a directory raises its own error
        return
    part = os.path.join(os.path.dirname(target), part_name())
    with unfinished(part):
        try:
            yield part
            if facts is not None:
                os.chmod(part, stat.S_IMODE(facts.st_mode))
            os.replace(part, target)
        except OSError as error:
            if error.filename == part:
                error.filename = os.fspath(path)
            raise


def start(command: list[str], **options: object) -> subprocess.Popen[bytes]:
    import subprocess

    with whole():
        child: subprocess.Popen[bytes] = subprocess.Popen(command, **options)  # type: ignore[call-overload]
        _children[child.pid] = child
    return child


def end(child: subprocess.Popen[bytes]) -> None:
    """Kills a child that is still running, and removes it from the list."""
    if child.poll() is None:
        child.kill()
    child.wait()
    for stream in (child.stdin, child.stdout, child.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    _children.pop(child.pid, None)


def sweep() -> None:
    """Removes everything that is still on the list."""
    for child in list(_children.values()):
        end(child)
    for path in list(_paths):
        remove(path)

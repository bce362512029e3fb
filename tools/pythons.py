"""The supported interpreters of this machine, among pyenv's and on PATH."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

VERSIONS = ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14", "3.15")
# Where the machine lacks one of these, this suite of Debian has it.
FROM_DEBIAN = {"3.14": "sid", "3.15": "sid"}
# The first versions of pip do not know dependency groups; this one runs on every Python here.
PIP_VERSION = "25.3"


@dataclass(frozen=True)
class Python:
    version: str
    interpreter: Path


def _candidates(version: str) -> Iterator[Path]:
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    found = pyenv.glob(f"versions/{version}.*/bin/python")
    yield from sorted(found, key=lambda path: _int_or_zero(path.parts[-3].split(".")[2]))[::-1]
    for directory in os.get_exec_path():
        yield Path(directory) / f"python{version}"


def _int_or_zero(text: str) -> int:
    return int(text) if text.isdigit() else 0


def works(interpreter: Path, version: str) -> bool:
    """A name on PATH may be a shim that leads nowhere."""
    ask = "import sys, ensurepip, venv; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run(
            [interpreter, "-c", ask], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0 and done.stdout.strip() == version


def find(version: str) -> Python | None:
    for interpreter in _candidates(version):
        if interpreter.exists() and works(interpreter, version):
            return Python(version, interpreter)
    return None

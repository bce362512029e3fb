"""Fixtures of the slower programs."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that other users may enter, with a name short enough for a socket's."""
    made = Path(tempfile.mkdtemp(prefix="dft-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)

"""Paths and marks that the tests of the documents need, whether they run alone or not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path[:0] = [str(TOOLS), str(TOOLS / "docs")]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: not part of `make test`, part of `make test-all`")

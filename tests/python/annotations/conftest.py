"""Runs each program of checks once, however many tests ask what came of it: see themes.py."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from themes import Theme, run_theme

Themes = Callable[..., Theme]


@pytest.fixture(scope="session")
def themes(tmp_path_factory: pytest.TempPathFactory) -> Themes:
    known: dict[tuple[Any, ...], Theme] = {}
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent  # shared by all workers of this run

    def theme(program: str, *flags: str, enable: bool = True) -> Theme:
        key = (program, flags, enable)
        if key not in known:
            name = "".join(char for char in f"theme-{program}{flags}" if char.isalnum())
            directory = base / f"{name}-{'on' if enable else 'off'}"
            known[key] = run_theme(program, directory, *flags, enable=enable)
        return known[key]

    return theme

"""Every kind of callable is, recorded, what it was: value, exception, traceback, and what it says
of itself. The checks are in programs/{callables,objects,identity}.py."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.run import run
from themes import names_of

if TYPE_CHECKING:
    from conftest import Themes

HERE = Path(__file__).parent
PROGRAMS = ("callables", "objects", "identity")
CHECKS = [(program, name) for program in PROGRAMS for name in names_of(program)]


@pytest.mark.parametrize(("program", "name"), CHECKS)
def test_recorded(themes: Themes, program: str, name: str) -> None:
    themes(program).verify(name)


@pytest.mark.parametrize("program", PROGRAMS)
def test_switched_off_the_same_holds(themes: Themes, program: str) -> None:
    """Which also says that the checks ask no more than undecorated code gives."""
    off = themes(program, enable=False)
    off.verify(*names_of(program))
    assert off.stderr == ""


def test_nothing_leaks(tmp_path: Path) -> None:
    done = run(sys.executable, HERE / "programs" / "leaks.py", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert list(found) == ["calls", "suspended", "regions", "nodes", "graphs", "objects", "tasks"]
    assert not any(found.values()), found


@pytest.mark.parametrize("program", PROGRAMS)
def test_in_development_mode(themes: Themes, program: str) -> None:
    """With checks in the allocator, and warnings for what is left open."""
    done = themes(program, "-X", "dev")
    done.verify(*names_of(program))
    assert done.stderr == ""

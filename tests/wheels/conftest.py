"""Wheels of dist/, each in an empty venv of its Python, without a compiler on PATH."""

from __future__ import annotations

import functools
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from pythons import FROM_DEBIAN, VERSIONS, find  # noqa: E402

DIST = Path(os.environ.get("DFTRACER_DIST") or ROOT / "dist")
# All that a program here may run: no compiler, no CMake, nothing of the checkout.
COMMANDS = ("sh", "cat", "cp", "dd", "env", "gzip", "ls", "sleep", "sort", "true", "uname")
SECONDS = 900


@dataclass(frozen=True)
class Installed:
    """A wheel in a venv of its own."""

    version: str
    wheel: Path
    home: Path

    @property
    def python(self) -> Path:
        return self.home / "bin" / "python"

    def run(
        self, *words: str | Path, cwd: Path, check: bool = True, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": f"{self.home / 'bin'}:{self.home / 'commands'}",
            "HOME": str(cwd),
            "LANG": "C.UTF-8",
            **variables,
        }
        done = subprocess.run(
            [str(word) for word in words],
            cwd=cwd,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert not check or done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        return done

    def dftracer(self, *words: str | Path, cwd: Path) -> str:
        """Runs the command; both of its outputs."""
        done = self.run(self.home / "bin" / "dftracer", *words, cwd=cwd)
        return done.stdout + done.stderr


def wheel_for(version: str) -> Path | None:
    tag = f"cp{version.replace('.', '')}"
    found = sorted(DIST.glob(f"pydftracer-*-{tag}-{tag}-manylinux*_{platform.machine()}.whl"))
    return found[-1] if found else None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--release",
        action="store_true",
        help="a Python, a compiler or a system that is missing is a failure, not a skip",
    )


@pytest.fixture(scope="session")
def missing(pytestconfig: pytest.Config) -> Callable[[str], NoReturn]:
    """What a test calls that lacks what it needs."""
    return pytest.fail if pytestconfig.getoption("release", False) else pytest.skip


@pytest.fixture(scope="session")
def install(
    tmp_path_factory: pytest.TempPathFactory, missing: Callable[[str], NoReturn]
) -> Callable[[str], Installed]:
    """Installs the wheel of a version of Python, once."""

    @functools.cache
    def make(version: str) -> Installed:
        python, wheel = find(version), wheel_for(version)
        if python is None:
            if version in FROM_DEBIAN:
                pytest.skip(f"no Python {version} on this machine: test_other_systems.py has one")
            missing(f"no Python {version} on this machine")
        assert wheel is not None, f"no wheel for Python {version} in {DIST}: run `make wheels`"
        home = tmp_path_factory.mktemp(f"python{version}")
        subprocess.run([python.interpreter, "-m", "venv", home], check=True, timeout=SECONDS)
        (home / "commands").mkdir()
        for name in COMMANDS:
            where = shutil.which(name, path="/usr/bin:/bin")
            assert where is not None, name
            (home / "commands" / name).symlink_to(where)
        installed = Installed(version, wheel, home)
        pip = (installed.python, "-m", "pip", "install", "-q", "--disable-pip-version-check")
        keep = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        # The wheel by itself first: it needs nothing from an index.
        installed.run(*pip, "--no-index", wheel, cwd=home)
        installed.run(*pip, f"{wheel}[report]", cwd=home, **keep)
        return installed

    return make


@pytest.fixture(params=VERSIONS)
def installed(request: pytest.FixtureRequest, install: Callable[[str], Installed]) -> Installed:
    return install(request.param)

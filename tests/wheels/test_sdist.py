"""The source distribution builds with the oldest compilers that it promises, and works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
from conftest import DIST, SECONDS
from test_installed import events


@pytest.mark.parametrize("compiler", ["g++-11", "clang++-15"])
def test_it_builds_and_records(
    compiler: str, tmp_path: Path, missing: Callable[[str], NoReturn]
) -> None:
    if shutil.which(compiler) is None:
        missing(f"{compiler} is not installed")
    (sdist,) = DIST.glob("pydftracer-*.tar.gz")
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--disable-pip-version-check"]
    command += ["--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path), str(sdist)]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "CXX": compiler, "PATH": path}
    built = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "package")
    (tmp_path / "input").write_bytes(b"s" * 10_000)
    code = "from dftracer._entry import main; raise SystemExit(main())"
    run = [sys.executable, "-c", code, "run", "-o", "trace", "--"]
    subprocess.run(
        [*run, "dd", "if=input", "of=copy", "bs=100"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "package")},
        timeout=SECONDS,
        check=True,
    )
    names = [event["name"] for event in events(tmp_path / "trace")]
    assert names.count("read") >= 100
    (start,) = (event for event in events(tmp_path / "trace") if event["name"] == "start")
    assert start["cat"] == "dftracer"

#!/usr/bin/env python3
"""Builds the package for every supported Python on the machine, and tests its Python face there.

`make test-pythons` runs it. Interpreters are looked for among pyenv's and on PATH; each has a venv
and a build directory of its own below build/pythons. A warning of the compiler is an error here.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from pythons import PIP_VERSION, VERSIONS, Python, find, works

ROOT = Path(__file__).resolve().parent.parent
TESTS = ("tests/python/annotations", "tests/python/guides")
PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")


class Failed(Exception):
    """A step went wrong; its output says how."""


def home(python: Python) -> Path:
    return ROOT / "build" / "pythons" / python.version


def own(python: Python) -> Path:
    return home(python) / "bin" / "python"


def run(command: Sequence[str | Path], path: Path | None = None) -> None:
    environment = dict(os.environ)
    if path is not None:  # the build looks for cmake and ninja
        environment["PATH"] = f"{path}{os.pathsep}{environment['PATH']}"
    if subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode != 0:
        raise Failed(shlex.join(map(str, command)))


def prepare(python: Python) -> None:
    groups = (ROOT / "pyproject.toml").read_text().partition("\n[dependency-groups]\n")[2]
    wanted = PIP_VERSION + groups.partition("\n[project")[0]
    stamp = home(python) / ".ready"
    if stamp.exists() and stamp.read_text() == wanted and works(own(python), python.version):
        return
    run([python.interpreter, "-m", "venv", "--clear", home(python)])
    run([own(python), *PIP, f"pip=={PIP_VERSION}"])
    run([own(python), *PIP, "--group", "pythons"])
    stamp.write_text(wanted)


def install(python: Python) -> None:
    settings = {
        "build-dir": home(python) / "build",
        "cmake.define.DFTRACER_WERROR": "ON",
    }
    words = [f"--config-settings={key}={value}" for key, value in settings.items()]
    how = ["--no-build-isolation", "--no-deps", "--force-reinstall"]
    run([own(python), *PIP, *how, *words, "."], path=own(python).parent)


def test(python: Python, workers: int, more: Sequence[str]) -> None:
    tests = [path for path in TESTS if (ROOT / path).is_dir()]
    run([own(python), "-m", "pytest", "-q", "-n", str(workers), *(more or tests)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="such versions, with commas between them")
    parser.add_argument("-n", "--workers", type=int, default=2, help="of pytest")
    parser.add_argument("--build", action="store_true", help="build and install, without testing")
    parser.add_argument("pytest", nargs="*", help="arguments of pytest, in place of the usual")
    options = parser.parse_args()
    chosen = options.only.split(",") if options.only else VERSIONS
    results: dict[str, str] = {}
    for version in chosen:
        python = find(version)
        if python is None:
            results[version] = "not on this machine"
            continue
        began = time.monotonic()
        print(f"\n== Python {version}: {python.interpreter}", flush=True)
        try:
            prepare(python)
            install(python)
            if not options.build:
                test(python, options.workers, options.pytest)
        except Failed as failed:
            results[version] = f"FAILED: {failed}"
        else:
            results[version] = f"passed, {time.monotonic() - began:.0f} s"
    print()
    for version, result in results.items():
        print(f"Python {version:4}  {result}")
    if all(result.startswith("not ") for result in results.values()):
        print("no supported Python was found", file=sys.stderr)
        return 1
    return int(any(result.startswith("FAILED") for result in results.values()))


if __name__ == "__main__":
    sys.exit(main())

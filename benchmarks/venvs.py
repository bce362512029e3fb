"""Environments for peers, each its own: nothing of ours finds them, nor one of them another."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def install(venv: Path, *packages: str) -> str:
    """Empty if the packages, given as name==version, are there; otherwise why they are not."""
    if all(_there(venv, package) for package in packages):
        return ""
    make = [sys.executable, "-m", "venv", str(venv)]
    pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", *packages]
    try:
        if not (venv / "bin" / "python").exists():
            subprocess.run(make, check=True, capture_output=True, text=True)
        subprocess.run(pip, check=True, capture_output=True, text=True, timeout=300)
    except subprocess.CalledProcessError as error:
        return last_line(error.stderr or error.stdout)
    except (OSError, subprocess.SubprocessError) as error:
        return last_line(str(error))
    return "" if all(_there(venv, package) for package in packages) else "pip left them out"


def _there(venv: Path, package: str) -> bool:
    name, _, version = package.partition("==")
    file = f"{name.replace('-', '_')}-{version}.dist-info"
    return any(venv.glob(f"lib/python3*/site-packages/{file}"))


def last_line(text: str, longest: int = 120) -> str:
    """What a program said last, fit for a cell of a table."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].replace("|", "/")[:longest] if lines else "without a word"

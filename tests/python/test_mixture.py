"""DFTracer's own package in the same directory: recognized, with the commands that repair it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dftracer
from dftracer import _mixture

INSTALLED = Path(dftracer.__file__).parent
# As DFTracer 2.2.0 has it: no name of ours.
THEIR_INIT = '__version__ = "2.2.0"\n'
FOREIGN_LIBRARY = "int dftracer_foreign;"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the installed package, and of what pip notes of it."""
    place = tmp_path / "site" / "dftracer"
    shutil.copytree(INSTALLED, place, ignore=shutil.ignore_patterns("__pycache__"))
    (notes,) = INSTALLED.parent.glob("pydftracer-*.dist-info")
    shutil.copytree(notes, place.parent / notes.name)
    return place


def run(package: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {name: text for name, text in os.environ.items() if not name.startswith("DFTRACER_")}
    return subprocess.run(
        [sys.executable, "-S", *words],  # without the installed package
        cwd=package.parent.parent,
        env={**clean, "PYTHONPATH": str(package.parent), **env},
        capture_output=True,
        text=True,
        check=False,
    )


def put(package: Path, how: str) -> None:
    """What pip leaves behind."""
    if how == "ours over theirs":
        (package / "_version.py").touch()
        (package / "lib64" / "libgotcha.so").touch()
    elif how == "theirs over ours":
        (package / "_version.py").touch()
        (package / "__init__.py").write_text(THEIR_INIT)
        source = package.parent / "foreign.c"
        source.write_text(FOREIGN_LIBRARY)
        for name in ("libdftracer_core.so", "libdftracer_preload.so"):
            library = package / "lib64" / name
            library.unlink()
            subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    elif how == "their Python part":
        (package / "python" / "_version.py").touch()
    elif how == "theirs removed":
        for name in _mixture.OURS:
            (package / name).unlink()


MIXTURES = ["ours over theirs", "theirs over ours", "their Python part", "theirs removed"]
BROKEN = ["theirs over ours", "theirs removed"]


def lines(package: Path, text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(f"dftracer: {package} ")]


def test_a_healthy_package_is_silent(package: Path) -> None:
    done = run(package, "-c", "import dftracer.python; print(dftracer.__file__)")
    assert (done.stdout.strip(), done.stderr) == (str(package / "__init__.py"), "")
    assert not [name for name in _mixture.THEIRS if (INSTALLED / name).exists()]


@pytest.mark.parametrize("how", MIXTURES)
def test_the_import_says_it_in_one_line(how: str, package: Path) -> None:
    put(package, how)
    done = run(package, "-c", "import dftracer.python, dftracer.logger; print('goes on')")
    assert done.stdout == "goes on\n", done.stderr
    (line,) = lines(package, done.stderr)
    assert line.endswith(_mixture.REPAIR)
    assert ("lacks __init__.py" in line) == (how == "theirs removed")


@pytest.mark.parametrize("how", MIXTURES)
def test_doctor(how: str, package: Path) -> None:
    put(package, how)
    done = run(package, "-m", "dftracer", "doctor", "--json")
    assert done.returncode == 1, done.stderr
    texts = [
        check["text"] for check in json.loads(done.stdout)["checks"] if check["name"] == "package"
    ]
    assert [text.endswith(_mixture.REPAIR) for text in texts] == [True]


@pytest.mark.parametrize("how", MIXTURES)
def test_run(how: str, package: Path) -> None:
    put(package, how)
    done = run(package, "-m", "dftracer", "run", "-o", "traces", "--", "echo", "text")
    assert len(lines(package, done.stderr)) == 1, done.stderr
    assert "Traceback" not in done.stderr
    if how in BROKEN:
        assert (done.returncode, done.stdout) == (125, "")
        assert "libdftracer_core.so" in done.stderr.splitlines()[1]
    else:
        assert (done.returncode, done.stdout) == (0, "text\n")


def test_a_lost_file_that_is_no_mixture(package: Path) -> None:
    """A package built for another platform has no preload library."""
    (package / "lib64" / "libdftracer_preload.so").unlink()
    done = run(package, "-m", "dftracer", "run", "--", "true")
    assert lines(package, done.stderr) == []
    assert "libdftracer_preload.so is missing" in done.stderr


def test_doctor_names_a_file_that_pip_installed_and_is_gone(package: Path) -> None:
    (notes,) = package.parent.glob("pydftracer-*.dist-info")
    (notes / "RECORD").write_text("dftracer/errors.py,,\ndftracer/lost.py,,\n")
    done = run(package, "-m", "dftracer", "doctor")
    text = "1 file missing, such as dftracer/lost.py: install pydftracer again"
    assert f"warn  package       {text}\n" in done.stdout


def test_doctor_finds_their_distribution_beside_ours(package: Path) -> None:
    """Its files are gone or renamed; uninstalling it would still delete ours."""
    (notes,) = package.parent.glob("pydftracer-*.dist-info")
    (notes / "RECORD").write_text("")
    other = package.parent / "dftracer-2.9.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: dftracer\nVersion: 2.9.0\n")
    done = run(package, "-m", "dftracer", "doctor")
    assert done.returncode == 1
    (line,) = [one for one in done.stdout.splitlines() if one.startswith("fail  package")]
    assert "dftracer 2.9.0 is installed beside pydftracer" in line
    other.rename(package.parent / f"dftracer-{dftracer.__version__}.dist-info")
    companion = package.parent / f"dftracer-{dftracer.__version__}.dist-info" / "METADATA"
    companion.write_text(companion.read_text().replace("2.9.0", dftracer.__version__))
    assert "fail  package" not in run(package, "-m", "dftracer", "doctor").stdout

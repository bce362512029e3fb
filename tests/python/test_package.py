"""The wheel holds what a user needs, and the installed command works."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VERSION = (ROOT / "VERSION").read_text().strip()


def python(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, words)], cwd=cwd, capture_output=True, text=True, check=False
    )


def test_version_is_that_of_the_tree(tmp_path: Path) -> None:
    done = python("-c", "import dftracer; print(dftracer.__version__)", cwd=tmp_path)
    assert done.stdout.strip() == VERSION, done.stderr


def test_import_does_not_load_the_library(tmp_path: Path) -> None:
    code = (
        "import sys, dftracer; print('ctypes' in sys.modules, 'importlib.metadata' in sys.modules)"
    )
    done = python(
        "-S",
        "-c",
        f"sys_path = {sys.path!r}; import sys; sys.path[:] = sys_path; {code}",
        cwd=tmp_path,
    )
    assert done.stdout.split() == ["False", "False"], done.stderr


@pytest.mark.parametrize("words", [["--help"], ["info", "--help"], ["recover", "--help"]])
def test_help(words: list[str], tmp_path: Path) -> None:
    done = python("-m", "dftracer", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "usage: dftracer" in done.stdout


def test_console_script(tmp_path: Path) -> None:
    script = Path(sys.executable).with_name("dftracer")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == f"dftracer {VERSION}", done.stderr


def test_the_companion_is_empty_and_requires_this_version(tmp_path: Path) -> None:
    done = python(
        *["-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", "--no-index"],
        *["--disable-pip-version-check", "--wheel-dir", tmp_path, ROOT / "packaging" / "dftracer"],
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(tmp_path / f"dftracer-{VERSION}-py3-none-any.whl") as archive:
        notes = f"dftracer-{VERSION}.dist-info"
        assert {Path(name).parent.name for name in archive.namelist()} == {notes}
        metadata = archive.read(f"{notes}/METADATA").decode().splitlines()
    required = [line for line in metadata if line.startswith("Requires-Dist:")]
    assert required == [f"Requires-Dist: pydftracer=={VERSION}"]


@pytest.mark.long
def test_wheel_holds_libraries_headers_and_build_files(tmp_path: Path) -> None:
    # A build directory of its own: another test run, or `make`, may be using the shared one.
    done = python(
        *["-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps"],
        *["--config-settings", f"build-dir={tmp_path / 'build'}", "--wheel-dir", tmp_path, ROOT],
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("pydftracer-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    for name in (
        "dftracer/__init__.py",
        "dftracer/py.typed",
        "dftracer/reports/render/template/page.html",
        "dftracer/reports/render/template/page.css",
        "dftracer/reports/render/template/page.js",
        "dftracer/lib64/libdftracer_core.so",
        "dftracer/include/dftracer/dftracer.h",
        "dftracer/lib64/cmake/dftracer/dftracer-config.cmake",
        "dftracer/lib64/pkgconfig/dftracer.pc",
    ):
        assert name in names
    assert [name for name in names if name.startswith("dftracer/lib64/libisal.so.")]
    # Copies of one library under several names would give a process several tracers.
    assert len([name for name in names if "libdftracer_core" in name]) == 1

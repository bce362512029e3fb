"""Module files of an installed prefix, loaded by Lmod and by Environment Modules."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support import traces
from support.command import environment
from support.limits import HANG

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "release"
VERSION = (ROOT / "VERSION").read_text().strip()

PROGRAM = r"""
#include <dftracer/dftracer.h>
#include <stddef.h>
int main(void) {
  DFTRACER_C_INIT("out/t.pfw", NULL, NULL);
  DFTRACER_C_REGION_START(work);
  DFTRACER_C_REGION_END(work);
  DFTRACER_C_FINI();
  return 0;
}
"""
PATHS = {
    "CMAKE_PREFIX_PATH": "",
    "PKG_CONFIG_PATH": "/lib/pkgconfig",
    "CPATH": "/include",
    "LIBRARY_PATH": "/lib",
    "LD_RUN_PATH": "/lib",
}


def first(*patterns: str | None) -> str | None:
    """The first program that exists."""
    for pattern in patterns:
        for path in sorted(glob.glob(pattern)) if pattern else []:
            return path
    return None


# The variables are those of an initialized shell.
COMMANDS = {
    "lmod": first(os.environ.get("LMOD_CMD"), "/usr/share/lmod/lmod/libexec/lmod"),
    "tcl": first(
        os.environ.get("MODULES_CMD"),
        "/usr/lib/*/modulecmd.tcl",
        "/usr/share/Modules/libexec/modulecmd.tcl",
    ),
}


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not (BUILD / "build.ninja").exists():
        pytest.fail("nothing is built: run `make build` first")
    before = tmp_path_factory.mktemp("modules") / "before"
    subprocess.run(
        ["cmake", "--install", BUILD, "--prefix", before], check=True, stdout=subprocess.DEVNULL
    )
    return before.rename(before.with_name("it's moved"))


@pytest.fixture(params=COMMANDS)
def command(request: pytest.FixtureRequest) -> str:
    found = COMMANDS[request.param]
    if found is None:
        pytest.skip(f"{request.param}: no module command is installed")
    return found


def shell(script: str, command: str, path: Path, cwd: Path) -> dict[str, str]:
    """The environment after a script that calls `module`."""
    module = 'module() { local out; out="$("$CMD" bash "$@")" || return; eval "$out"; }'
    done = subprocess.run(
        ["bash", "-c", f"set -e; CMD=$1; {module}; {script}; env -0", "bash", command],
        cwd=cwd,
        env=environment({"MODULEPATH": str(path), "HOME": str(cwd)}),
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    pairs = (one.partition("=") for one in done.stdout.split("\0") if one)
    return {name: text for name, _, text in pairs} | {"stderr": done.stderr}


def modules(prefix: Path) -> Path:
    return prefix / "share" / "modulefiles"


def test_the_files_know_their_version_and_no_place(prefix: Path) -> None:
    names = sorted(path.name for path in (modules(prefix) / "dftracer").iterdir())
    assert names == [VERSION, f"{VERSION}.lua"]
    for name in names:
        text = (modules(prefix) / "dftracer" / name).read_text()
        assert VERSION in text
        assert "@" not in text
        assert str(prefix.parent) not in text
        assert str(ROOT) not in text


@pytest.mark.parametrize("how", ["in place", "directory linked", "file linked"])
def test_load_and_unload(how: str, command: str, prefix: Path, tmp_path: Path) -> None:
    place = modules(prefix)
    if how == "directory linked":
        place = tmp_path / "site"
        place.mkdir()
        (place / "dftracer").symlink_to(modules(prefix) / "dftracer")
    elif how == "file linked":
        place = tmp_path / "site"
        (place / "dftracer").mkdir(parents=True)
        for file in (modules(prefix) / "dftracer").iterdir():
            (place / "dftracer" / file.name).symlink_to(file)
    loaded = shell("module load dftracer", command, place, tmp_path)
    assert {name: loaded.get(name) for name in PATHS} == {
        name: f"{prefix}{below}" for name, below in PATHS.items()
    }
    assert loaded["DFTRACER_ROOT"] == str(prefix)
    assert "LD_LIBRARY_PATH" not in loaded
    assert str(prefix) not in loaded["PATH"]  # it has no bin
    script = "module load dftracer; module unload dftracer"
    unloaded = shell(script, command, place, tmp_path)
    assert [name for name in (*PATHS, "DFTRACER_ROOT", "DFTRACER_DIR") if name in unloaded] == []


def test_a_prefix_with_commands_is_in_the_path(command: str, prefix: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(prefix, other, symlinks=True)
    (other / "bin").mkdir()
    loaded = shell("module load dftracer", command, modules(other), tmp_path)
    assert loaded["PATH"].split(":")[0] == str(other / "bin")


def test_a_program_built_and_run_with_the_module(
    command: str, prefix: Path, tmp_path: Path
) -> None:
    (tmp_path / "main.c").write_text(PROGRAM)
    script = (
        "module load dftracer; cc main.c -ldftracer_core -o main; module unload dftracer;"
        "DFTRACER_ENABLE=1 ./main"
    )
    shell(script, command, modules(prefix), tmp_path)
    assert [event["name"] for event in traces.read_one(tmp_path / "out").recorded] == ["work"]


def test_a_copy_of_the_file_is_refused(command: str, prefix: Path, tmp_path: Path) -> None:
    shutil.copytree(modules(prefix), tmp_path / "site")
    script = "module load dftracer || true"
    loaded = shell(script, command, tmp_path / "site", tmp_path)
    assert "link to this file, do not copy it" in " ".join(loaded["stderr"].split())
    assert "DFTRACER_ROOT" not in loaded

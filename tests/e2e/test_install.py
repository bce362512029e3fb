"""An installed tree serves a C project elsewhere: plain cc, pkg-config, CMake, no C++ run-time."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "release"

PROGRAM = r"""
#include <dftracer/dftracer.h>
#include <stddef.h>

int main(void) {
  DFTRACER_C_INIT("out/t.pfw", NULL, NULL);
  DFTRACER_C_REGION_START(work);
  DFTRACER_C_REGION_UPDATE_INT(work, "n", 3);
  DFTRACER_C_REGION_END(work);
  DFTRACER_C_FINI();
  return 0;
}
"""

PROJECT = """
cmake_minimum_required(VERSION 3.20)
project(outside LANGUAGES C)
# As a project written for DFTracer 2.x has it.
find_package(dftracer 2.0 REQUIRED)
foreach(variable DFTRACER_INCLUDE_DIRS DFTRACER_LIBRARY_DIRS)
  if(NOT IS_DIRECTORY "${${variable}}")
    message(FATAL_ERROR "${variable} is '${${variable}}'")
  endif()
endforeach()
add_executable(by_namespace main.c)
target_link_libraries(by_namespace PRIVATE dftracer::dftracer_core)
add_executable(by_alias main.c)
target_link_libraries(by_alias PRIVATE dftracer)
add_executable(by_debug_name main.c)
target_link_libraries(by_debug_name PRIVATE dftracer_dbg dftracer::dftracer_core_dbg)
if(NOT DFTRACER_VERSION VERSION_EQUAL dftracer_VERSION OR NOT DFTRACER_VERSION)
  message(FATAL_ERROR "DFTRACER_VERSION is '${DFTRACER_VERSION}', not '${dftracer_VERSION}'")
endif()
add_executable(by_variables main.c)
target_include_directories(by_variables PRIVATE ${DFTRACER_INCLUDE_DIRS})
target_link_directories(by_variables PRIVATE ${DFTRACER_LIBRARY_DIRS})
target_link_libraries(by_variables PRIVATE dftracer_core)
"""


def run(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DFTRACER_")}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**clean, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not (BUILD / "build.ninja").exists():
        pytest.fail("nothing is built: run `make build` first")
    first = tmp_path_factory.mktemp("install") / "first"
    run("cmake", "--install", BUILD, "--prefix", first, cwd=ROOT)
    # A tree that was moved after its installation must work as well.
    moved = first.with_name("prefix")
    first.rename(moved)
    return moved


def traced_event(directory: Path, program: Path, env: dict[str, str] | None = None) -> dict:
    run(program, cwd=directory, env={"DFTRACER_ENABLE": "1", **(env or {})})
    with gzip.open(directory / "out" / "t.pfw.gz", "rt") as file:
        records = [json.loads(line) for line in file if line.strip() != "["]
    events = [record for record in records if record["name"] == "work"]
    assert len(events) == 1
    return events[0]


def check_event(event: dict) -> None:
    assert event["cat"] == "C_APP"
    assert event["ph"] == "X"
    assert event["args"]["n"] == 3


def test_plain_cc_with_pkg_config(prefix: Path, tmp_path: Path) -> None:
    if shutil.which("pkg-config") is None:
        pytest.skip("pkg-config is not installed")
    (tmp_path / "main.c").write_text(PROGRAM)
    flags = run(
        "pkg-config",
        "--cflags",
        "--libs",
        "dftracer",
        cwd=tmp_path,
        env={"PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")},
    ).split()
    assert "-lstdc++" not in flags
    warnings = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    run("cc", *warnings, "main.c", "-o", "program", *flags, cwd=tmp_path)
    event = traced_event(tmp_path, tmp_path / "program", {"LD_LIBRARY_PATH": str(prefix / "lib")})
    check_event(event)


def test_cmake_package(prefix: Path, tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(PROGRAM)
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    run("cmake", "-S", ".", "-B", "b", f"-DCMAKE_PREFIX_PATH={prefix}", cwd=tmp_path)
    run("cmake", "--build", "b", cwd=tmp_path)
    for name in ("by_namespace", "by_alias", "by_debug_name", "by_variables"):
        where = tmp_path / name
        where.mkdir()
        check_event(traced_event(where, tmp_path / "b" / name))


def test_the_libraries_are_also_below_lib64(prefix: Path, tmp_path: Path) -> None:
    """Where job scripts and build files of existing releases look for them."""
    (tmp_path / "main.c").write_text(PROGRAM)
    place = [f"-I{prefix}/include", f"-L{prefix}/lib64", f"-Wl,-rpath,{prefix}/lib64"]
    run("cc", "main.c", "-o", "program", *place, "-ldftracer_core", cwd=tmp_path)
    check_event(traced_event(tmp_path, tmp_path / "program"))
    preload = prefix / "lib64" / "libdftracer_preload.so"
    env = {"LD_PRELOAD": str(preload), "DFTRACER_ENABLE": "1", "DFTRACER_LOG_FILE": "preloaded"}
    run("cat", "main.c", cwd=tmp_path, env=env)
    assert len(list(tmp_path.glob("preloaded-*.pfw.gz"))) == 1


def test_disabled_leaves_nothing(prefix: Path, tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(PROGRAM)
    place = [f"-I{prefix}/include", f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib"]
    run("cc", "main.c", "-o", "program", *place, "-ldftracer_core", cwd=tmp_path)
    run(tmp_path / "program", cwd=tmp_path)
    assert not (tmp_path / "out").exists()


def test_needs_only_libc_and_the_compressor(prefix: Path) -> None:
    library = prefix / "lib" / "libdftracer_core.so"
    dynamic = run("readelf", "-d", library, cwd=prefix)
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic))
    allowed = re.compile(
        r"lib(c|m|pthread|dl|rt)\.so\.\d+|ld-linux[\w-]*\.so\.\d+|libisal\.so\.\d+"
    )
    assert {name for name in needed if not allowed.fullmatch(name)} == set()
    # The copy beside the library is loaded, not one that happens to be installed.
    resolved = dict(re.findall(r"(\S+) => (\S+)", run("ldd", library, cwd=prefix)))
    for name, place in resolved.items():
        if name.startswith("libisal"):
            assert Path(place).parent.resolve() == library.parent.resolve()


def test_exports_only_its_own_names(prefix: Path) -> None:
    table = run("nm", "-D", "--defined-only", prefix / "lib" / "libdftracer_core.so", cwd=prefix)
    names = [line.split()[-1] for line in table.splitlines()]
    assert names
    # The names that compilers give to their function hooks are the only others.
    others = [name.partition("@")[0] for name in names if not name.startswith("dftracer_")]
    assert others == ["__cyg_profile_func_enter", "__cyg_profile_func_exit"]

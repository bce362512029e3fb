#!/usr/bin/env python3
"""Builds the wheels and the source distribution of a release into dist/. `make wheels` runs it.

The wheels are for glibc 2.17 and later (manylinux2014), for x86-64 and AArch64, one for every
supported Python on the machine, and for newer ones whose headers Debian has. ziglang brings a clang
with the headers and symbol tables of every glibc, so neither a container nor an old system is
needed. ISA-L comes from the source distribution of `isal`, libyaml from Debian's source package;
both are linked statically.

A wheel for AArch64 is compiled with the Python headers of this machine: CPython's public headers
are the same for 64-bit Linux machines, and pyconfig.h differs only in what public headers ignore.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import check_wheels
from debian import Apt, NoPackages
from pythons import FROM_DEBIAN, VERSIONS, find

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "wheels"
ARCHITECTURES = ("x86_64", "aarch64")
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}
GLIBC = "2.17"
TOOLCHAIN = ROOT / "cmake" / "toolchains" / "manylinux.cmake"
# name: (file, SHA-256, directory of the sources in it, licence, CMake options)
ISAL = "isal==1.9.1"
SOURCES = {
    "isal": (
        "isal-1.9.1.tar.gz",
        "d210dca02a689ef2af709d2c62d2daac2e36b5d2fa06e6dc0d023c83fee77e91",
        "isal-1.9.1/src/isal/isa-l",
        "LICENSE",
        (
            "-DISAL_BUILD_TESTS=OFF",
            "-DISAL_BUILD_PERF_TESTS=OFF",
            "-DISAL_BUILD_ISAL_SHIM=OFF",
        ),
    ),
    "libyaml": (
        "libyaml_0.2.5.orig.tar.gz",
        "fa240dbf262be053f3898006d502d514936c818e422afdcf33921c63bed9bf2e",
        "libyaml-0.2.5",
        "License",
        # Its CMake file names a version that today's CMake has dropped.
        ("-DBUILD_TESTING=OFF", "-DCMAKE_POLICY_VERSION_MINIMUM=3.5"),
    ),
}


class Failed(Exception):
    """A step went wrong; the message says which."""


def run(
    command: Sequence[str | Path],
    cwd: Path = ROOT,
    environment: Mapping[str, str] | None = None,
    log: Path | None = None,
) -> None:
    """Runs a command; its output goes to `log`, and to the terminal only if it fails."""
    words = [str(word) for word in command]
    log = log or WORK / "log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as output:
        status = subprocess.run(
            words, cwd=cwd, env=environment, stdout=output, stderr=subprocess.STDOUT, check=False
        ).returncode
    if status != 0:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-40:])
        raise Failed(f"{tail}\n{' '.join(words)}: exit {status}")


# ---- Sources -----------------------------------------------------------------------------------


def fetch_isal(into: Path) -> None:
    pip = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-deps"]
    run([*pip, "--no-binary=isal", "--dest", into, ISAL])


def fetch_libyaml(into: Path) -> None:
    try:
        Apt(WORK / "apt", "deb-src").source("libyaml", into)
    except NoPackages as error:
        file = SOURCES["libyaml"][0]
        raise Failed(f"{error}\nput {file} of Debian's package libyaml into {into}") from None


def source(name: str) -> Path:
    """The unpacked sources of a dependency, of the pinned version."""
    file, digest, directory, _, _ = SOURCES[name]
    downloads = WORK / "downloads"
    downloads.mkdir(parents=True, exist_ok=True)
    archive = downloads / file
    if not archive.exists():
        {"isal": fetch_isal, "libyaml": fetch_libyaml}[name](downloads)
    if not archive.exists():
        raise Failed(f"{name}: expected {file}, got {sorted(p.name for p in downloads.iterdir())}")
    if hashlib.sha256(archive.read_bytes()).hexdigest() != digest:
        raise Failed(f"{archive} is not the pinned one: remove it, and try again")
    unpacked = WORK / "sources" / directory
    if not unpacked.exists():
        with tarfile.open(archive) as tar:
            tar.extractall(WORK / "sources", filter="data")
    return unpacked


# ---- Compiler and dependencies -----------------------------------------------------------------


def zig() -> Path:
    found = importlib.util.find_spec("ziglang")
    if found is None or found.origin is None:
        raise Failed("ziglang is missing: run this through `make wheels`")
    return Path(found.origin).parent / "zig"


def write_tools(architecture: str) -> Path:
    """CMake wants one program per tool; zig is all of them."""
    tools = WORK / architecture / "tools"
    tools.mkdir(parents=True, exist_ok=True)
    target = f"-target {architecture}-linux-gnu.{GLIBC}"
    words = {"cc": f"cc {target}", "c++": f"c++ {target}", "ar": "ar", "ranlib": "ranlib"}
    for name, arguments in words.items():
        text = f'#!/bin/sh\nexec "{zig()}" {arguments} "$@"\n'
        path = tools / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
        path.chmod(0o755)
    return tools


def environment_for(architecture: str) -> dict[str, str]:
    return {
        **os.environ,
        "DFTRACER_WHEEL_ARCH": architecture,
        "DFTRACER_WHEEL_TOOLS": str(write_tools(architecture)),
        "DFTRACER_WHEEL_DEPENDENCIES": str(WORK / architecture / "dependencies"),
        "CMAKE_C_COMPILER_LAUNCHER": os.environ.get("CMAKE_CXX_COMPILER_LAUNCHER", ""),
        # The wrapper is not the compiler: ccache must see what it calls.
        "CCACHE_COMPILERTYPE": "clang",
        "CCACHE_COMPILERCHECK": f"string:{zig()} {GLIBC} {architecture}",
    }


def build_dependencies(architecture: str) -> None:
    prefix = WORK / architecture / "dependencies"
    environment = environment_for(architecture)
    for name, (_, digest, _, licence, options) in SOURCES.items():
        stamp = prefix / f".{name}"
        if stamp.exists() and stamp.read_text() == digest:
            continue
        sources = source(name)
        build = WORK / architecture / name
        shutil.rmtree(build, ignore_errors=True)
        log = WORK / architecture / f"{name}.log"
        command = [
            *("cmake", "-S", sources, "-B", build, "-G", "Ninja"),
            f"-DCMAKE_TOOLCHAIN_FILE={TOOLCHAIN}",
            f"-DCMAKE_INSTALL_PREFIX={prefix}",
            "-DCMAKE_BUILD_TYPE=Release",
            "-DCMAKE_POSITION_INDEPENDENT_CODE=ON",
            "-DBUILD_SHARED_LIBS=OFF",
            *options,
        ]
        run(command, environment=environment, log=log)
        run(["cmake", "--build", build], environment=environment, log=log)
        run(["cmake", "--install", build], environment=environment, log=log)
        licences = prefix / "licenses"
        licences.mkdir(exist_ok=True)
        shutil.copy(sources / licence, licences / f"LICENSE.{name}")
        stamp.write_text(digest)


# ---- Wheels --------------------------------------------------------------------------------------


def headers(version: str, architecture: str) -> list[Path]:
    """Where the headers of a Python are. It need not run here; its version decides the wheel."""
    python = find(version)
    if python is None:  # the headers are enough
        return debian_headers(version, architecture) if version in FROM_DEBIAN else []
    ask = "import sysconfig; print(sysconfig.get_path('include'))"
    said = subprocess.run(
        [python.interpreter, "-c", ask], capture_output=True, text=True, check=True
    )
    directory = Path(said.stdout.strip())
    if not (directory / "Python.h").exists():
        return []
    if "linux-gnu/" not in (directory / "pyconfig.h").read_text():
        return [directory]
    # Debian's pyconfig.h includes the one of the machine, from a directory full of other headers.
    alone = WORK / "headers" / version
    shutil.rmtree(alone, ignore_errors=True)
    for machine in ARCHITECTURES:
        own = Path("/usr/include") / f"{os.uname().machine}-linux-gnu" / directory.name
        (alone / f"{machine}-linux-gnu").mkdir(parents=True)
        (alone / f"{machine}-linux-gnu" / directory.name).symlink_to(own)
    return [directory, alone]


def debian_headers(version: str, architecture: str) -> list[Path]:
    home = WORK / "headers" / f"{version}-{architecture}"
    include = home / "root/usr/include"
    if not include.exists():
        try:
            apt = Apt(home / "apt", "deb", FROM_DEBIAN[version], DEBIAN[architecture])
            apt.unpack_alone(f"libpython{version}-dev", home / "root")
        except NoPackages:
            return []
    return [include / f"python{version}", include]


def build_wheel(version: str, architecture: str, include: list[Path], into: Path) -> Path:
    tag = f"cp{version.replace('.', '')}"
    suffix = f".cpython-{version.replace('.', '')}-{architecture}-linux-gnu.so"
    environment = {
        **environment_for(architecture),
        "_PYTHON_HOST_PLATFORM": f"linux-{architecture}",
        "SETUPTOOLS_EXT_SUFFIX": suffix,
    }
    build = WORK / architecture / version
    shutil.rmtree(build, ignore_errors=True)  # options of an earlier build stay in its cache
    settings = {
        "build-dir": build,
        "cmake.build-type": "Release",
        "cmake.define.CMAKE_TOOLCHAIN_FILE": TOOLCHAIN,
        "cmake.define.DFTRACER_PYTHON_INCLUDE_DIRS": ";".join(map(str, include)),
        "install.strip": "false",
    }
    work = WORK / architecture / "wheel"
    shutil.rmtree(work, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "wheel", "--disable-pip-version-check", "--no-deps"]
    command += ["--no-build-isolation", "--no-cache-dir", "--wheel-dir", work]
    command += [f"--config-settings={key}={value}" for key, value in settings.items()]
    log = WORK / architecture / f"{version}.log"
    run([*command, ROOT], environment=environment, log=log)
    (built,) = work.glob("*.whl")
    platforms = ".".join(f"{name}_{architecture}" for name in check_wheels.PLATFORMS)
    tags = [sys.executable, "-m", "wheel", "tags", "--remove", "--platform-tag", platforms]
    tags += ["--python-tag", tag, "--abi-tag", tag]
    run([*tags, built], log=log)
    (wheel,) = work.glob("*.whl")
    into.mkdir(parents=True, exist_ok=True)
    return Path(shutil.move(wheel, into / wheel.name))


def build_sdist(into: Path) -> Path:
    into.mkdir(parents=True, exist_ok=True)
    code = "import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])"
    run([sys.executable, "-c", code, into])
    return max(into.glob("*.tar.gz"), key=lambda path: path.stat().st_mtime)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", action="append", help="such a version (3.11), repeatable")
    parser.add_argument("--arch", action="append", choices=ARCHITECTURES, help="repeatable")
    parser.add_argument("--into", type=Path, default=ROOT / "dist", help="directory (dist)")
    parser.add_argument("--all", action="store_true", help="fail if a supported Python is missing")
    parser.add_argument("--no-sdist", action="store_true", help="wheels alone")
    options = parser.parse_args()
    wanted = options.python or VERSIONS
    missing: set[str] = set()
    made: list[Path] = []
    try:
        if not options.no_sdist:
            made.append(build_sdist(options.into))
        for architecture in options.arch or ARCHITECTURES:
            build_dependencies(architecture)
            for version in wanted:
                include = headers(version, architecture)
                if not include:
                    missing.add(version)
                    continue
                print(f"{architecture}, Python {version}", flush=True)
                made.append(build_wheel(version, architecture, include, options.into))
        if missing and (options.all or options.python):
            raise Failed(f"no headers of Python {', '.join(sorted(missing))} on this machine")
    except Failed as failed:
        print(failed, file=sys.stderr)
        return 1
    if missing:
        print(f"no wheels for Python {', '.join(sorted(missing))}: not on this machine")
    for path in made:
        print(f"{path.stat().st_size / 1e6:6.2f} MB  {path.name}")
    return check_wheels.check([path for path in made if path.suffix == ".whl"])


if __name__ == "__main__":
    sys.exit(main())

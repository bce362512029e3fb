#!/usr/bin/env python3
"""Checks wheels: they load where they promise to, and carry what they must.

Fails on a symbol of a newer glibc than the promise, on a library that a system need not have, on a
wheel that auditwheel would not accept, on one that is too large, and on a missing licence.
"""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

# One promise under two names; old versions of pip know the second alone.
PLATFORMS = ("manylinux_2_17", "manylinux2014")
MACHINES = {"x86_64": "x64", "aarch64": "AArch64"}
OWN_SYMBOLS = "dftracer_"
PROMISE = (2, 17)
LARGEST = 3_000_000
LICENCES = ("LICENSE", "LICENSE.isal", "LICENSE.libyaml")
LIBRARIES = tuple(f"lib64/libdftracer_{name}.so" for name in ("core", "preload", "inject"))
# Of glibc itself, and of ours.
ALLOWED = {
    *("libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1"),
    *("ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "libdftracer_core.so"),
}


def version(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in name.removeprefix("GLIBC_").split("."))


def new_symbols(elf: ELFFile) -> Iterator[str]:
    """The versions of glibc that the file needs and the promise does not cover."""
    for section in elf.iter_sections():
        if not isinstance(section, GNUVerNeedSection):
            continue
        for library, versions in section.iter_versions():
            for needed in versions:
                if needed.name.startswith(OWN_SYMBOLS):
                    continue
                if not needed.name.startswith("GLIBC_"):
                    yield f"{needed.name} of {library.name}"
                elif version(needed.name) > PROMISE:
                    yield needed.name


def strange_libraries(elf: ELFFile) -> Iterator[str]:
    for section in elf.iter_sections():
        if isinstance(section, DynamicSection):
            for tag in section.iter_tags("DT_NEEDED"):
                if tag.needed not in ALLOWED:
                    yield tag.needed


def complaints(wheel: Path) -> Iterator[str]:
    if wheel.stat().st_size >= LARGEST:
        yield f"{wheel.stat().st_size:,} bytes; at most {LARGEST:,}"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        for licence in LICENCES:
            if not any(name.endswith(f".dist-info/licenses/{licence}") for name in names):
                yield f"no {licence}"
        for library in LIBRARIES:
            if f"dftracer/{library}" not in names:
                yield f"no {library}"
        machine = next(name for name in MACHINES if wheel.stem.endswith(name))
        for name in names:
            if not name.endswith(".so"):
                continue
            elf = ELFFile(io.BytesIO(archive.read(name)))
            if elf.get_machine_arch() != MACHINES[machine]:
                yield f"{name} is for {elf.get_machine_arch()}"
            for symbol in new_symbols(elf):
                yield f"{name} needs {symbol}; the promise is GLIBC_{'.'.join(map(str, PROMISE))}"
            for library in strange_libraries(elf):
                yield f"{name} needs {library}, which no wheel may expect"
    shown = subprocess.run(
        [sys.executable, "-m", "auditwheel", "show", wheel],
        capture_output=True,
        text=True,
        check=False,
    )
    said = " ".join((shown.stdout + shown.stderr).split())
    if shown.returncode != 0 or f'"{PLATFORMS[0]}_{machine}"' not in said:
        yield f"auditwheel: {said}"


def check(wheels: Sequence[Path]) -> int:
    failed = False
    for wheel in wheels:
        for complaint in complaints(wheel):
            failed = True
            print(f"{wheel.name}: {complaint}", file=sys.stderr)
    if not failed:
        promise = ".".join(map(str, PROMISE))
        print(f"{len(wheels)} wheels for glibc {promise} and later: symbols, licences, sizes")
    return int(failed or not wheels)


if __name__ == "__main__":
    sys.exit(check([Path(word) for word in sys.argv[1:]]))

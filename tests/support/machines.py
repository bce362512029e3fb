"""The two machines of tests/aarch64: this one, and aarch64 under qemu-user. Each has an installed
tree, a compiler and a Python; either one's traces and spools are files to the other."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from support.build import CACHE, ROOT, command
from support.run import Result, run

SYSROOT = ROOT / "build" / "aarch64-sysroot"
SITE = ROOT / "build" / "aarch64-site"
PROGRAMS = ROOT / "tests" / "aarch64" / "programs"


@dataclass(frozen=True)
class Machine:
    name: str
    compiler: tuple[str, ...]
    prefix: Path
    starts: tuple[str, ...]  # words before a program
    interpreter: tuple[str, ...]
    packages: str  # where Python finds ours; nothing where it is installed

    def __str__(self) -> str:
        return self.name

    def program(self, source: Path, *flags: str) -> Path:
        """Compiled and linked with our library, so that C API programs work as well."""
        CACHE.mkdir(parents=True, exist_ok=True)
        made = CACHE / f"{self.name}-{source.stem}-{os.getpid()}"
        lib = self.prefix / "lib"
        command(
            *self.compiler,
            *("-O2", "-D_GNU_SOURCE", f"-I{self.prefix}/include", *flags, source, "-o", made),
            *(f"-L{lib}", "-Wl,--as-needed", "-ldftracer_core", f"-Wl,-rpath,{lib}"),
        )
        return made

    def traced(
        self,
        out: Path,
        program: Path,
        *args: str | Path | int,
        expect: int = 0,
        env: Mapping[str, str] | None = None,
    ) -> Result:
        """Runs a program by preload; its traces go into a directory."""
        return self.run(program, *args, expect=expect, env={**self.settings(out), **(env or {})})

    def run(
        self,
        program: Path,
        *args: str | Path | int,
        expect: int = 0,
        env: Mapping[str, str] | None = None,
    ) -> Result:
        words = (*self.starts, program, *args)
        return run(words[0], *words[1:], env=env, expect=expect)

    def settings(self, out: Path) -> dict[str, str]:
        return {
            "DFTRACER_LOG_FILE": f"{out}/t",
            "DFTRACER_DATA_DIR": "all",
            "DFTRACER_DISABLE_IO": "0",
            "DFTRACER_SUMMARY": "0",
            "DFTRACER_INIT": "PRELOAD",
            "LD_PRELOAD": str(self.prefix / "lib" / "libdftracer_preload.so"),
        }

    def python(
        self, *args: str | Path | int, expect: int | None = 0, env: Mapping[str, str] | None = None
    ) -> Result:
        words = (*self.interpreter, *args)
        found = {"PYTHONPATH": self.packages} if self.packages else {}
        return run(words[0], *words[1:], env={**found, **(env or {})}, expect=expect, stderr=None)

    def command(self, *words: str | Path, expect: int | None = 0) -> Result:
        """The `dftracer` command."""
        return self.python("-m", "dftracer", *words, expect=expect, env={"DFTRACER_ENABLE": "0"})


X86_64 = Machine("x86-64", ("/usr/bin/cc",), ROOT / "build" / "stage", (), (sys.executable,), "")
EMULATED = (str(ROOT / "build" / "aarch64-qemu" / "qemu-aarch64"), "-L", str(SYSROOT))
AARCH64 = Machine(
    "aarch64",
    ("aarch64-linux-gnu-gcc", f"--sysroot={SYSROOT}"),
    SITE / "dftracer",
    EMULATED,
    (*EMULATED, str(SYSROOT / "usr" / "bin" / "python3.11")),
    str(SITE),
)
BOTH = (X86_64, AARCH64)

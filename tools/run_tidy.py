#!/usr/bin/env python3
"""Runs clang-tidy over a compile database, one process a core.

A file whose text, headers and settings passed before is skipped: clang-tidy takes seconds a file,
and what did not change cannot have got worse.
"""

import hashlib
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TIDY = Path(sys.executable).parent / "clang-tidy"
# Hundreds of wrappers from a few macros: following every path of each takes many minutes and finds
# in all what it finds in one.
UNFOLLOWED = {
    "mpi_calls.cpp",
    "wrap_aio.cpp",
    "wrap_descriptors.cpp",
    "wrap_memory.cpp",
    "wrap_net.cpp",
    "wrap_printf.cpp",
    "wrap_syscall.cpp",
    "wrap_table.cpp",
}


def digest_of_settings() -> bytes:
    total = hashlib.sha256((ROOT / ".clang-tidy").read_bytes())
    total.update(subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout)
    # Any header may be included anywhere: a changed header asks for everything again.
    for folder in ("src", "include"):
        for path in sorted((ROOT / folder).rglob("*.h*")):
            total.update(path.read_bytes())
    return total.digest()


def main() -> int:
    build = Path(sys.argv[1]).resolve()
    entries = json.loads((build / "compile_commands.json").read_text())
    # Tests are left to the compiler's warnings: doctest's macros cost clang-tidy too much time.
    commands = {
        entry["file"]: entry["command"]
        for entry in entries
        if Path(entry["file"]).is_relative_to(ROOT / "src")
    }
    stamps = build / "tidy"
    stamps.mkdir(exist_ok=True)
    settings = digest_of_settings()

    def stamp_of(file: str) -> Path:
        key = hashlib.sha256(settings + commands[file].encode() + Path(file).read_bytes())
        return stamps / key.hexdigest()

    def tidy(file: str) -> tuple[bool, str]:
        checks = ["--checks=-clang-analyzer-*"] if Path(file).name in UNFOLLOWED else []
        done = subprocess.run(
            [TIDY, "--quiet", *checks, "-p", build, file],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            stamp_of(file).touch()
            return True, ""
        return False, done.stdout or done.stderr

    wanted = sorted(file for file in commands if not stamp_of(file).exists())
    failed = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for passed, text in pool.map(tidy, wanted):
            if not passed:
                failed += 1
                print(text.strip())
    print(f"{len(wanted)} of {len(commands)} files looked at, {failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

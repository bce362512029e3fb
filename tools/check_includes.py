#!/usr/bin/env python3
"""Checks the include arrows: a room of src/ includes only rooms that stand left of it."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src"

CHAIN = ["record", "buffer", "sink", "recovery", "session"]
ALLOWED = {room: set(CHAIN[: index + 1]) for index, room in enumerate(CHAIN)}
ALLOWED["intercept"] = {*CHAIN, "intercept"}
ALLOWED["preload"] = {"intercept"}
ALLOWED["bind"] = {*CHAIN, "intercept", "bind"}
ALLOWED["reader"] = {"record", "reader"}

QUOTED = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def problems(path: Path) -> list[str]:
    room = path.relative_to(SRC).parts[0]
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        match = QUOTED.match(line)
        if not match:
            continue
        name = match.group(1)
        where = f"{path.relative_to(ROOT)}:{number}"
        target = name.split("/")[0]
        if target == "dftracer":
            # The public headers are includes of their own, written with angle brackets.
            found.append(f"{where}: write <{name}>, the public header is not a room")
        elif "/" not in name or target not in ALLOWED:
            found.append(f'{where}: write "{name}" relative to src/, beginning with its room')
        elif not (SRC / name).is_file():
            found.append(f'{where}: "{name}" is not below src/')
        elif target not in ALLOWED[room]:
            found.append(f"{where}: {room} must not include {target}")
    return found


def main() -> int:
    files = sorted(path for end in ("*.hpp", "*.cpp", "*.h") for path in SRC.rglob(end))
    found = []
    for path in files:
        room = path.relative_to(SRC).parts[0]
        if room in ALLOWED:
            found += problems(path)
        else:
            found.append(f"{path.relative_to(ROOT)}: {room} is no room of src/")
    for line in found:
        print(line, file=sys.stderr)
    if not found:
        print(f"{len(files)} files keep the arrows")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

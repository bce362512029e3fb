#!/usr/bin/env python3
"""Checks the include arrows: a room of src/ includes only rooms that stand left of it."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src"

# Each room may include itself and every room before it.
CORE = [
    "base",
    "format",
    "record",
    "buffer",
    "sink",
    "recovery",
    "session",
    "hooks",
    "intercept",
    "api",
]
# The reader's sub-rooms, in their own order.
READER = ["parse", "input", "stats", "arrow", "intervals", "write", "merge", "export", "python"]

ALLOWED = {room: set(CORE[: index + 1]) for index, room in enumerate(CORE)}
# Leaves: what a trace file is, and how to talk to the kernel, know nothing of each other.
ALLOWED["format"] = {"format"}
ALLOWED["inject"] = set()
# The preload library is a table of jumps, and the extension goes through the core's private ABI.
ALLOWED["preload"] = {"format"}
ALLOWED["python"] = {"python", "python/support", "api", "format", "record"}
ALLOWED["python/support"] = {"python/support"}
# The reader is never loaded into a traced program: it shares the leaf room and nothing else.
for index, room in enumerate(READER):
    ALLOWED[f"reader/{room}"] = {"format", *(f"reader/{left}" for left in READER[: index + 1])}
ALLOWED["reader/python"].add("python/support")

QUOTED = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def room_of(path: str) -> str:
    """The room of a file below src/: its folder, relative to src/."""
    return path.rpartition("/")[0]


def problems(path: Path, src: Path = SRC) -> list[str]:
    relative = path.relative_to(src).as_posix()
    room = room_of(relative)
    if room not in ALLOWED:
        return [f"src/{relative}: {room or 'src'} is not a room of src/"]
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        match = QUOTED.match(line)
        if not match:
            continue
        name = match.group(1)
        where = f"src/{relative}:{number}"
        target = room_of(name)
        if name.split("/")[0] == "dftracer":
            # The public headers are includes of their own, written with angle brackets.
            found.append(f"{where}: write <{name}>, the public header is not a room")
        elif target not in ALLOWED:
            found.append(f'{where}: write "{name}" relative to src/, beginning with its room')
        elif not (src / name).is_file():
            found.append(f'{where}: "{name}" is not below src/')
        elif target not in ALLOWED[room]:
            found.append(f"{where}: {room} must not include {target}")
    return found


def main() -> int:
    files = sorted(path for end in ("*.hpp", "*.cpp", "*.h", "*.def") for path in SRC.rglob(end))
    found = [problem for path in files for problem in problems(path)]
    for line in found:
        print(line, file=sys.stderr)
    if not found:
        print(f"{len(files)} files keep the arrows")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

"""Libraries that bring their own compiled code (wheels): the bytes that they move to and from each
file are those that the kernel sees, whichever way the calls are intercepted."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

import pytest
from support import intercept
from support.foreign import SCRIPTS
from support.run import run

LIBRARIES = ["numpy", "h5py", "pyarrow", "pillow", "safetensors", "polars", "duckdb", "sqlite"]
CALLS = {"read": "read", "pread64": "read", "readv": "read", "preadv": "read"}
CALLS |= {"write": "write", "pwrite64": "write", "writev": "write", "pwritev": "write"}
BEGUN = re.compile(r"^(\d+) +(\w+)\(\d+<([^>]*)>")
ENDED = re.compile(r"^(\d+) .*= (\d+)$")
RESUMED = re.compile(r"^(\d+) +<\.\.\. \w+ resumed>")
# Named anew in every run.
TEMPORARY = re.compile(r"\.tmp\w+")

Bytes = Counter[tuple[str, str]]  # by file and by read or write


def name_of(path: str) -> str:
    return TEMPORARY.sub(".tmp", path.rpartition("/")[2])


def kernel_saw(place: Path, library: str) -> Bytes:
    intercept.need_strace()
    log = place.parent / "strace.log"
    chosen = ("-f", "-y", "-s", "0", "-e", f"trace={','.join(CALLS)}", "-e", "signal=none")
    words = (sys.executable, SCRIPTS / "wheels.py", library)
    run("strace", "-qq", *chosen, "-o", log, *words, cwd=place, enable=False, stderr=None)
    found: Bytes = Counter()
    begun: dict[str, tuple[str, str]] = {}  # by thread: calls of several overlap
    for line in log.read_text(errors="replace").splitlines():
        if match := BEGUN.match(line):
            begun[match[1]] = (match[2], match[3])
        elif not RESUMED.match(line):
            continue
        ended = ENDED.match(line)
        if ended and ended[1] in begun:
            call, path = begun.pop(ended[1])
            if path.startswith(f"{place}/"):
                found[name_of(path), CALLS[call]] += int(ended[2])
    return +found


MOVES = {"read", "pread", "readv", "preadv", "write", "pwrite", "writev", "pwritev"}
STREAM_MOVES = {"fread": "read", "fwrite": "write"}


def we_saw(run: intercept.Run, place: Path) -> tuple[Bytes, set[tuple[str, str]]]:
    """The bytes, and what of them went through streams."""
    found: Bytes = Counter()
    streams = set()
    for event in (one for process in run.processes for one in process.below(place)):
        count = event.args.get("ret", 0)
        call = event.name.removesuffix("64")
        if event.path is None or count <= 0:
            continue
        if call in STREAM_MOVES:
            key = (name_of(event.path), STREAM_MOVES[call])
            streams.add(key)
            found[key] += count * event.args["size"]
        elif call in MOVES:
            found[name_of(event.path), "read" if "read" in call else "write"] += count
    return +found, streams


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("library", LIBRARIES)
def test_bytes_of_a_library(tmp_path: Path, library: str) -> None:
    places = [tmp_path / name for name in ("strace", *intercept.MODES)]
    for place in places:
        place.mkdir()
    expected = kernel_saw(places[0], library)
    assert sum(expected.values()) > 50_000
    for mode, place in zip(intercept.MODES, places[1:]):
        env = {"START": "1"} if mode == intercept.FUNCTION else {}
        words = (sys.executable, SCRIPTS / "wheels.py", library)
        run = intercept.traced(*words, mode=mode, cwd=place, env=env, stderr=None)
        seen, streams = we_saw(run, place)
        assert seen.keys() == expected.keys()
        for key, count in seen.items():
            # A stream reads whole blocks, of which the program asked for a part.
            ahead = 4096 if key in streams and key[1] == "read" else 0
            assert 0 <= expected[key] - count <= ahead, (mode, key)
        assert sum(process.end.get("lost", 0) for process in run.processes) == 0

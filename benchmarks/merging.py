#!/usr/bin/env python3
"""Measures `dftracer merge`: eight files, ten million events, two cores.

python benchmarks/merging.py [--events N] [--files N] [--repeats N] [--perf]
The bars: a million events per second, 300 MB at most.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

BAR_EVENTS = 1_000_000
BAR_MEMORY = 300 << 20
A_MEMBER = 5000


def member(text: bytes, lines: int) -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, -15)
    data = packer.compress(text) + packer.flush()
    head = b"\x1f\x8b\x08\x04\0\0\0\0\0\x03\x0c\0DF\x08\0"
    head += struct.pack("<II", 24 + len(data) + 8, lines)
    return head + data + struct.pack("<II", zlib.crc32(text), len(text))


def make_rank(path: Path, rank: int, events: int) -> None:
    """A rank that reads a file over and over, every rank with the same pid."""
    hhash = f"{rank % 2:016x}"
    stamp = f'"cat":"dftracer","pid":4711,"tid":4711,"ph":"M","args":{{"hhash":"{hhash}",'
    head = [
        f'{{"id":1,"name":"HH",{stamp}"name":"node{rank % 2}","value":"{hhash}"}}}}',
        f'{{"id":2,"name":"FH",{stamp}"name":"/data/{rank}.bin","value":"{rank:015x}f"}}}}',
        '{"id":3,"name":"start","cat":"dftracer","pid":4711,"tid":4711,"ts":1790000000000000,"dur":0,'
        f'"ph":"X","args":{{"hhash":"{hhash}","p_idx":-1,"level":1,"run":"r","proc":"{rank:016x}"}}}}',
        f'{{"id":4,"name":"PR",{stamp}"name":"rank","value":"{rank}"}}}}',
    ]
    names = ("read", "lseek64", "open64", "close", "write", "fstat")
    with path.open("wb") as file:
        file.write(member(("[\n" + "\n".join(head) + "\n").encode(), len(head)))
        for first in range(0, events, A_MEMBER):
            rows = []
            for index in range(first, min(first + A_MEMBER, events)):
                when = 1790000000000000 + index * 12 + index % 7
                rows.append(
                    f'{{"id":{index + 5},"name":"{names[index % 6]}","cat":"POSIX","pid":4711,'
                    f'"tid":{4711 + index % 3},"ts":{when},"dur":{index % 11},"ph":"X","args":'
                    f'{{"hhash":"{hhash}","p_idx":{index % 100},"level":2,"fhash":"{rank:015x}f",'
                    f'"count":{index * 37 % 65536},"ret":{index * 37 % 65536}}}}}'
                )
            file.write(member(("\n".join(rows) + "\n").encode(), len(rows)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000_000, help="in all files together")
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--perf", action="store_true", help="also count instructions (perf)")
    options = parser.parse_args()
    place = Path(
        tempfile.mkdtemp(prefix="dftracer-merging-", dir=os.environ.get("TMPDIR", "/var/tmp"))
    )
    try:
        each = options.events // options.files
        inputs = [place / f"rank{rank}.pfw.gz" for rank in range(options.files)]
        for rank, path in enumerate(inputs):
            make_rank(path, rank, each)
        events = each * options.files
        size = sum(path.stat().st_size for path in inputs)
        print(f"{events:,} events in {options.files} files, {size / 1e6:.0f} MB")
        best = float("inf")
        for _ in range(options.repeats):
            words = [sys.executable, "-m", "dftracer", "merge", *map(str, inputs)]
            words += ["-o", str(place / "all.pfw.gz"), "--threads", str(options.threads)]
            if options.perf:
                words = ["perf", "stat", "-e", "instructions:u", *words]
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            start = time.monotonic()
            subprocess.run(words, check=True)
            took = time.monotonic() - start
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            best = min(best, took)
            print(f"{took:.2f} s, {cpu:.2f} s of processor, {cpu / events * 1e9:.0f} ns per event")
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        rate = events / best
        print(f"{rate / 1e6:.2f} M events per second (bar: {BAR_EVENTS / 1e6:g} M)")
        print(f"{peak / 2**20:.0f} MB at most (bar: {BAR_MEMORY >> 20} MB)")
        return 0 if rate >= BAR_EVENTS and peak <= BAR_MEMORY else 1
    finally:
        shutil.rmtree(place)


if __name__ == "__main__":
    sys.exit(main())

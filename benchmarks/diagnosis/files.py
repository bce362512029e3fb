"""Programs that use files, each slow in one way or in none: python files.py CASE [--prepare].

With --prepare, a case makes the data that it reads; that is not traced.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

MIB = 1 << 20


def _make(path: str, mib: int) -> None:
    with open(path, "wb") as file:
        for _ in range(mib):
            file.write(os.urandom(MIB))


def tiny_reads(prepare: bool) -> None:
    if prepare:
        return _make("table.bin", 8)
    file = os.open("table.bin", os.O_RDONLY)
    total = 0
    while data := os.read(file, 16):
        total += data[0]


def random_reads(prepare: bool) -> None:
    if prepare:
        return _make("records.bin", 256)
    file = os.open("records.bin", os.O_RDONLY)
    places = list(range(4 * 256 * 4))
    random.Random(1).shuffle(places)
    for _ in range(3):
        for place in places:
            os.pread(file, 64 << 10, place * (64 << 10))


def reopened_file(prepare: bool) -> None:
    if prepare:
        Path("settings.json").write_text('{"rate": 1}')
        return
    for _ in range(30_000):
        file = os.open("settings.json", os.O_RDONLY)
        os.read(file, 100)
        os.close(file)


def metadata_storm(prepare: bool) -> None:
    if prepare:
        for folder in range(20):
            os.mkdir(f"images-{folder}")
            for number in range(200):
                Path(f"images-{folder}/{number}.jpg").write_bytes(b"x")
        return
    for _ in range(25):
        for folder in range(20):
            for entry in os.listdir(f"images-{folder}"):
                os.stat(f"images-{folder}/{entry}")


def missing_files(prepare: bool) -> None:
    for number in range(100_000 if not prepare else 0):
        os.path.exists(f"cache/{number % 50}/entry.bin")


def reread_file(prepare: bool) -> None:
    if prepare:
        return _make("weights.bin", 64)
    for _ in range(40):
        file = os.open("weights.bin", os.O_RDONLY)
        while os.read(file, MIB):
            pass
        os.close(file)


def slow_reads(prepare: bool) -> None:
    """From a file that another process fills slowly."""
    if prepare:
        return
    file = os.open("pipe.bin", os.O_RDONLY)
    left = 40 << 16
    while left:
        left -= len(os.read(file, min(left, 1 << 16)))


def small_writes(prepare: bool) -> None:
    if prepare:
        return
    file = os.open("results.csv", os.O_WRONLY | os.O_CREAT)
    for number in range(300_000):
        os.write(file, b"%d,%d\n" % (number, number * number % 97))


def fsync_per_write(prepare: bool) -> None:
    if prepare:
        return
    file = os.open("journal.bin", os.O_WRONLY | os.O_CREAT)
    for _ in range(800):
        os.write(file, bytes(1 << 16))
        os.fsync(file)


def copies_a_file(prepare: bool) -> None:
    if prepare:
        return _make("source.bin", 400)
    with open("source.bin", "rb", buffering=0) as source, open("copy.bin", "wb", 0) as target:
        while data := source.read(4 * MIB):
            target.write(data)


def buffered_writer(prepare: bool) -> None:
    if prepare:
        return
    with open("rows.csv", "w") as file:
        for number in range(1_500_000):
            file.write(f"{number},{number * number % 97}\n")


def computes(prepare: bool) -> None:
    if prepare:
        return
    total = 0
    for number in range(25_000_000):
        total ^= number * 31
    print(total, file=sys.stderr)


def parts(prepare: bool) -> None:
    """The files that trainings read."""
    assert prepare
    for part in range(4):
        Path(f"part-{part}.bin").write_bytes(bytes(1 << 16))


def compiles(prepare: bool) -> None:
    """The sources; `make` compiles them."""
    assert prepare
    names = [f"part{number}" for number in range(6)]
    for name in names:
        lines = [f"int {name}_{n}(int x) {{ return x * {n} + {n % 7}; }}\n" for n in range(800)]
        Path(f"{name}.c").write_text("".join(lines))
    Path("main.c").write_text("int main(void) { return 0; }\n")
    objects = " ".join(f"{name}.o" for name in [*names, "main"])
    Path("Makefile").write_text(f"CFLAGS = -O1\nall: {objects}\n\t$(CC) -o all {objects}\n")


def main() -> int:
    case = globals()[sys.argv[1].replace("-", "_")]
    case("--prepare" in sys.argv)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Creates the demo's data: images of four kinds, one small file each, one directory per kind.

python make_data.py DIRECTORY [PICTURES]
"""

import os
import random
import sys
import zlib

SIDE = 64
KINDS = ("stripes", "columns", "checks", "rings")


def value(kind, x, y, step):
    if kind == "stripes":
        return y // step % 2
    if kind == "columns":
        return x // step % 2
    if kind == "checks":
        return (x // step + y // step) % 2
    return int(((x - SIDE / 2) ** 2 + (y - SIDE / 2) ** 2) ** 0.5) // step % 2


def picture(kind, chance):
    """SIDE x SIDE pixels of three bytes, with noise, compressed."""
    step = chance.randint(4, 12)
    colours = [[chance.randrange(40, 216) for _ in range(3)] for _ in range(2)]
    rows = []
    for y in range(SIDE):
        for x in range(SIDE):
            rows += colours[value(kind, x, y, step)]
    noise = chance.randbytes(len(rows))
    return zlib.compress(bytes(v ^ n & 31 for v, n in zip(rows, noise)), 1)


def main():
    directory = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 800
    chance = random.Random(0)
    for kind in KINDS:
        os.makedirs(os.path.join(directory, kind), exist_ok=True)
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        with open(os.path.join(directory, kind, f"{number:05}.bin"), "wb") as file:
            file.write(picture(kind, chance))
    print(f"{count} pictures in {directory}")


if __name__ == "__main__":
    main()

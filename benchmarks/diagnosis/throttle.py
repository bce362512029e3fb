"""The slow side of a file: a named pipe that is filled, or emptied, a piece at a time.

python throttle.py fill|empty PATH SECONDS: until it is ended. It is not traced; to the traced
program, PATH is a file each of whose pieces takes so long.
"""

from __future__ import annotations

import os
import sys
import time

PIECE = 1 << 16


def main() -> int:
    way, path, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    # Open at both ends: the pipe outlives each program that opens and closes it.
    pipe = os.open(path, os.O_RDWR)
    while True:
        time.sleep(seconds)
        if way == "fill":
            os.write(pipe, bytes(PIECE))
        else:
            os.read(pipe, PIECE)


if __name__ == "__main__":
    sys.exit(main())

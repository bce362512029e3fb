"""annotated.py DIRECTORY: annotated functions, their I/O, threads and a forked child."""

import os
import sys
import threading
from pathlib import Path

from dftracer.python import ai, dft_fn, dftracer

place = Path(sys.argv[1])
log = dftracer.initialize_log(None, None, -1)
reader = dft_fn("reader")


class Loader:
    @reader.log_init
    def __init__(self, count):
        self.count = count

    @reader.log
    def load(self, index):
        with (place / str(index)).open("wb") as file:
            file.write(b"x" * (index + 1))
        return index

    def batches(self):
        with dft_fn("reader", name="batches") as region:
            region.update(args={"count": self.count})
            for index in range(self.count):
                yield self.load(index)


@ai.compute
def train(batches):
    return sum(batches)


def work():
    with dft_fn("app", name="in a thread"):
        pass


loader = Loader(5)
assert train(loader.batches()) == 10
thread = threading.Thread(target=work)
thread.start()
thread.join()
child = os.fork()
if child == 0:
    with dft_fn("app", name="in a child"):
        (place / "child").write_bytes(b"child")
    os._exit(0)
os.waitpid(child, 0)
log.finalize()

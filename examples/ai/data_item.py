"""One method that reads a sample is recorded; the one beside it is not."""

from pathlib import Path

import numpy as np

from dftracer.python import ai, dftracer

dftracer.initialize_log("data_item.pfw", "data")
Path("data").mkdir(exist_ok=True)


class IOHandler:
    @ai.data.item
    def read(self, filename: str):
        return np.load(filename)

    def write(self, filename: str, data):
        with open(filename, "wb") as f:
            np.save(f, data)


io = IOHandler()
io.write("data/data.npy", np.arange(16.0))
data = io.read("data/data.npy")
print(data.sum())

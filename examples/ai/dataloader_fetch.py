"""A generator of batches, and the loop that waits for them.

The generator is one event from its first item to its end. The loop records two events per
item: the wait for the item, and the body.
"""

from pathlib import Path

import numpy as np

from dftracer.python import ai, dftracer

dftracer.initialize_log("fetch.pfw", "data")
Path("data").mkdir(exist_ok=True)
for i in range(3):
    np.save(f"data/{i}.npy", np.full(4, float(i)))


@ai.data.item
def read(filename: str):
    return np.load(filename)


@ai.dataloader.fetch
def read_batch(data_dir: str, num_files: int):
    for i in range(num_files):
        yield read(f"{data_dir}/{i}.npy")


for step, batch in ai.dataloader.fetch.iter(enumerate(read_batch("data", 3))):
    print(step, batch.sum())

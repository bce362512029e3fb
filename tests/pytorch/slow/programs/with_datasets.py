"""Loaders over datasets of other packages; prints the samples of each batch.

python with_datasets.py webdataset|datasets DIRECTORY
"""

from __future__ import annotations

import io
import json
import sys
import tarfile
from pathlib import Path
from typing import Any

from torch.utils.data import DataLoader

SHARDS = 4
SAMPLES = 6  # of a shard


def tell(kind: str, keys: Any) -> None:
    print(json.dumps({"kind": kind, "keys": list(keys)}))


def web(directory: Path) -> None:
    import webdataset as wds

    shards = []
    for shard in range(SHARDS):
        shards.append(str(directory / f"shard-{shard}.tar"))
        with tarfile.open(shards[-1], "w") as archive:
            for sample in range(SAMPLES):
                entry = tarfile.TarInfo(f"{shard}-{sample}.txt")
                entry.size = 1
                archive.addfile(entry, io.BytesIO(b"x"))
    samples = wds.WebDataset(shards, shardshuffle=False)
    for batch in DataLoader(samples, batch_size=4, num_workers=2, collate_fn=list):
        tell("samples", (sample["__key__"] for sample in batch))
    batches = wds.WebDataset(shards, shardshuffle=False).batched(3)
    for batch in DataLoader(batches, batch_size=None, num_workers=2):
        tell("batches", batch["__key__"])


def hugging_face(directory: Path) -> None:
    import datasets

    lines = directory / "numbers.jsonl"
    lines.write_text("".join(f'{{"number": {number}}}\n' for number in range(20)))
    table = datasets.load_dataset("json", data_files=str(lines), split="train")
    for batch in DataLoader(table.with_format("torch"), batch_size=4, shuffle=True, num_workers=2):
        tell("table", batch["number"].tolist())
    for batch in DataLoader(table.to_iterable_dataset(2), batch_size=4, num_workers=2):
        tell("stream", batch["number"].tolist())


if __name__ == "__main__":
    {"webdataset": web, "datasets": hugging_face}[sys.argv[1]](Path(sys.argv[2]))

"""training.py ENDPOINT WORKERS: a loader whose samples are ranges of an object."""

from __future__ import annotations

import sys

import boto3
import torch
from torch.utils.data import DataLoader, Dataset

ENDPOINT, WORKERS = sys.argv[1], int(sys.argv[2])
KEY = "train/shard-0.bin"


class Ranges(Dataset):
    def __init__(self):
        self.client = None

    def __len__(self):
        return 12

    def __getitem__(self, index):
        if self.client is None:
            keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
            self.client = boto3.client("s3", endpoint_url=ENDPOINT, region_name="us-east-1", **keys)
        asked = f"bytes={index * 4}-{index * 4 + 3}"
        data = self.client.get_object(Bucket="data", Key=KEY, Range=asked)["Body"].read()
        return torch.tensor(list(data), dtype=torch.float32)


if __name__ == "__main__":
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in DataLoader(Ranges(), batch_size=3, num_workers=WORKERS):
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()

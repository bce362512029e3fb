"""Two ranks train one model; one of them is late in the way that is asked for.

late_rank.py ddp|fsdp sleep|fetch|compute|nobody STEPS
"""

import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

LATE = 0.03  # seconds a step


class Numbers(Dataset):
    def __init__(self, length, late):
        self.length, self.late = length, late

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if self.late and index % 4 == 0:
            time.sleep(LATE)
        return torch.full((16,), index / self.length), index % 4


def sharded(model):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in (model[0], model[2]):
        fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def main(kind, how, steps):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    plain = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
    model = DistributedDataParallel(plain) if kind == "ddp" else sharded(plain)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    other = nn.Linear(16, 16)
    loader = DataLoader(Numbers(4 * steps, how == "fetch" and rank == 1), batch_size=4)
    for x, y in loader:
        if how == "sleep" and rank == 1:
            time.sleep(LATE)
        if how == "compute" and rank == 0:
            until = time.monotonic() + LATE
            while time.monotonic() < until:
                other(x)
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.9e}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))

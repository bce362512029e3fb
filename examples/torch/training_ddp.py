"""Two or more ranks train one model; nothing here refers to dftracer.

DFTRACER_ENABLE=1 DFTRACER_TORCH=1 torchrun --nproc-per-node 2 training_ddp.py
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main():
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    data = TensorDataset(torch.randn(32, 6), torch.randint(0, 3, (32,)))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler, num_workers=2)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total)
        dist.barrier()
    everybody = [None] * dist.get_world_size()
    dist.all_gather_object(everybody, rank)
    if rank == 0:
        dist.send(total, dst=1)
    elif rank == 1:
        dist.recv(total, src=0)
    print(f"rank {rank} of {len(everybody)}: {total.item()}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

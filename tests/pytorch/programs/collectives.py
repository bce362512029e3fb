"""Three ranks call the collectives of torch.distributed, and train models of every kind."""

import hashlib
import warnings

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

warnings.simplefilter("ignore")


def explicit(rank, size):
    pair = dist.new_group([0, 2])
    ones = torch.ones(1000)
    dist.all_reduce(ones)
    work = dist.all_reduce(ones, dist.ReduceOp.SUM, None, True)
    assert work.wait()
    assert work.wait()
    if rank != 1:
        dist.broadcast(ones, 0, group=pair)
        dist.all_reduce(ones, dist.ReduceOp.SUM, pair)
    dist.all_gather_object([None] * size, {"rank": rank})
    parts = [torch.zeros(1000) for _ in range(size)]
    dist.all_gather(parts, ones)
    dist.reduce_scatter(torch.zeros(1000), parts)
    dist.broadcast_object_list([rank], src=0)
    dist.barrier()
    if rank < 2:
        if rank:
            dist.irecv(ones, src=0).wait()
        else:
            dist.send(ones, dst=1)
    return float(ones.sum())


def train(model, steps, sync=None):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        x = torch.linspace(0, 1, 32).reshape(4, 8) * (1 + dist.get_rank())
        if sync is not None and step == 0:
            with sync():
                model(x).square().sum().backward()
        model(x).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return model


class Two(nn.Module):
    """Its output is a dict, and one of its layers is not used."""

    def __init__(self):
        super().__init__()
        self.used, self.unused = nn.Linear(8, 4), nn.Linear(8, 4)
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x):
        return {"a": [self.norm(self.used(x))]}


class Sum(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x)["a"][0]


def digest(model):
    found = hashlib.md5()
    for weight in model.state_dict().values():
        value = weight.to_local() if hasattr(weight, "to_local") else weight
        found.update(value.detach().contiguous().numpy().tobytes())
    return found.hexdigest()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    said = [explicit(rank, size)]
    plain = DistributedDataParallel(nn.Linear(8, 4))
    said.append(digest(train(plain, 3, plain.no_sync)))
    with torch.no_grad():
        plain(torch.ones(4, 8))
    two = Sum(DistributedDataParallel(Two(), find_unused_parameters=True))
    said.append(digest(train(two, 2)))
    fixed = DistributedDataParallel(nn.Linear(8, 4), static_graph=True)
    said.append(digest(train(fixed, 2)))
    from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard

    said.append(digest(train(fully_shard(nn.Linear(8, 4)), 2)))
    old = FullyShardedDataParallel(nn.Linear(8, 4), device_id=torch.device("cpu"))
    train(old, 2)
    print(rank, *said)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

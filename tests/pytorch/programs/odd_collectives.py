"""Collectives of one rank that fail, that are called inside others, and that nobody waits for."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as inner

WORKS = 300


def start() -> None:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)


def reduce_inside(output: Any, input: Any, group: Any = None, async_op: bool = False) -> None:
    """In place of all_to_all_single: a collective that calls another."""
    dist.all_reduce(input)


def main() -> None:
    tensor = torch.ones(10)
    try:
        dist.all_reduce(tensor)
    except ValueError:
        print("no group yet")
    start()
    try:
        dist.all_reduce("not a tensor")  # type: ignore[arg-type]
    except TypeError:
        print("no tensor")
    dist.all_to_all_single(tensor, tensor)
    for _ in range(WORKS):
        dist.all_reduce(tensor, async_op=True)
    dist.all_reduce(tensor, group=dist.group.WORLD, async_op=True).wait()
    dist.destroy_process_group()
    start()
    dist.all_reduce(tensor)
    dist.destroy_process_group()
    print("done")


if __name__ == "__main__":
    inner.all_to_all_single = dist.all_to_all_single = reduce_inside
    from dftracer.python.torch import auto

    auto.install()
    main()

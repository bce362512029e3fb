"""One rank of two: profiles an all-reduce, and says what the profiler saw."""

import os

import torch
import torch.distributed as dist

from dftracer.python.torch import profile

dist.init_process_group("gloo")
x = torch.ones(8)
with profile(record_shapes=True) as prof:
    dist.all_reduce(x)
    (x @ x).item()
seen = len(prof.profiler.kineto_results.events())
# In one write: the other rank says the same to the same pipe.
os.write(1, f"SEEN {os.environ['RANK']} {os.getpid()} {seen}\n".encode())
dist.destroy_process_group()

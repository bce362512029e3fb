"""Inductor's graphs and kernels as they run: create_backend(inner="inductor")."""

import torch
import torch.nn as nn

from dftracer.python import create_backend, dftracer

df_logger = dftracer.initialize_log("inductor.pfw", "/tmp/data", -1)

model = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 8))
compiled = torch.compile(model, backend=create_backend(name="mlp", inner="inductor"))
for _ in range(3):
    compiled(torch.randn(16, 64)).sum().backward()

df_logger.finalize()

"""A Dynamo tracer of your own: its arguments appear on its events."""

import torch

from dftracer.python import Dynamo, dftracer

df_logger = dftracer.initialize_log("custom.pfw", "/tmp/data", -1)

# Create a custom Dynamo tracer
dynamo_tracer = Dynamo(
    name="resnet50", epoch=1, step=100, image_idx=42, image_size=(224, 224), enable=True
)


# Use with the compile decorator
@dynamo_tracer.compile
def forward(x):
    return torch.relu(x * 2 + 1)


with dynamo_tracer:
    forward(torch.randn(4))

# State, not identity: the next call carries the new step, and compiles nothing
dynamo_tracer.update(step=101)
forward(torch.randn(4))

df_logger.finalize()

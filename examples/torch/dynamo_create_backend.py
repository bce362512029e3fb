"""A backend with a name and arguments of its own: create_backend."""

import torch

from dftracer.python import dftracer
from dftracer.python.dynamo import create_backend

# Initialize logger
df_logger = dftracer.initialize_log("training.pfw", "/tmp/data", -1)

# Create a custom DFTracer backend
backend = create_backend(
    name="resnet50",
    epoch=1,
    step=100,
    enable=True,
    autograd=True,  # Enable AOT autograd (default)
)


class MyModel(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)
        )

    def forward(self, x):
        return self.layers(x)


# Use with torch.compile
model = MyModel()
compiled_model = torch.compile(model, backend=backend)

# Run your model - operations will be traced
input_tensor = torch.randn(32, 784)
output = compiled_model(input_tensor)
output.sum().backward()

# Layer by layer: the operations that the model itself calls
by_layer = torch.compile(model, backend=create_backend(name="resnet50", autograd=False))
by_layer(input_tensor)

df_logger.finalize()

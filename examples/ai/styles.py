"""One event, recorded in every supported style."""

from dftracer.python import ai, dftracer

dftracer.initialize_log("styles.pfw")


def model(x):
    return 2 * x


# A decorator, with and without arguments.
@ai.compute.forward
def forward(model, x):
    return model(x)


@ai.compute.forward(args={"arg1": "value1", "arg2": "value2"})
def forward_with_arguments(model, x):
    return model(x)


forward(model, 1)
forward_with_arguments(model, 2)

# A block, with and without arguments.
with ai.compute.forward:
    loss = model(3)

with ai.compute.forward(args={"arg1": "value1", "arg2": "value2"}):
    loss = model(4)

with ai.compute.forward(epoch=1, step=2, image_idx=3, image_size=224.0):
    loss = model(5)

# What was given in parentheses stays there.
with ai.compute.forward:
    loss = model(6)

# A loop.
dataloader = [[1, 2], [3, 4]]
for batch in ai.dataloader.fetch.iter(dataloader):
    print(sum(batch))

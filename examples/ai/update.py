"""update(): arguments set on a node appear on its later events and on those below it."""

from dftracer.python import ai, dftracer

dftracer.initialize_log("update.pfw")
num_epochs = 2
dataloader = ["a", "b"]


@ai.compute.forward
def forward(x):
    return x


@ai.compute.backward
def backward():
    pass


# On one node: only forward has them.
for epoch in ai.pipeline.epoch.iter(range(num_epochs)):
    for step, batch in ai.dataloader.fetch.iter(enumerate(dataloader)):
        ai.compute.forward.update(epoch=epoch, step=step)
        forward(batch)

# On a category: all its events. `args` takes keys of one's own.
ai.compute.update(args={"model": "resnet50", "batch_size": 32, "lr": 0.1, "amp": True})
forward("c")
backward()

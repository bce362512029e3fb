"""Epochs as events, recorded when they end, and as marks, recorded at once."""

from dftracer.python import ai, dftracer

dftracer.initialize_log("streaming.pfw")
num_epochs, num_steps = 2, 2

# As events: epoch.iter and epoch.block, one of each an epoch.
for _epoch in ai.pipeline.epoch.iter(range(num_epochs)):
    for _step in range(num_steps):
        with ai.compute.step:
            pass

# As marks: epoch.start and epoch.end, with the time at which they were made.
for epoch in range(num_epochs):
    ai.pipeline.epoch.start(metadata=True)

    for step in range(num_steps):
        ai.update(step=step, epoch=epoch)
        with ai.compute.step:
            pass

    ai.pipeline.epoch.stop(metadata=True)

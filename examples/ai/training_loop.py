"""A whole training loop, with the epoch and the step on everything that happens in them."""

from dftracer.python import ai, dftracer

df_logger = dftracer.initialize_log("training.pfw", "data", -1)


@ai.data.item
def load_batch(step):
    return [float(step)] * 8


@ai.device.transfer
def transfer(batch):
    return tuple(batch)


@ai.compute.forward
def forward(batch):
    return sum(batch)


@ai.compute.backward
def backward(loss):
    return -loss


@ai.pipeline.train
def train(num_epochs, num_batches):
    for epoch in ai.pipeline.epoch.iter(range(num_epochs)):
        for step, _ in ai.dataloader.fetch.iter(enumerate(range(num_batches))):
            ai.update(step=step, epoch=epoch)
            batch = transfer(load_batch(step))
            backward(forward(batch))


train(num_epochs=2, num_batches=3)
df_logger.finalize()

"""The parts of a training step: to the device, forward, backward, optimizer."""

from dftracer.python import ai, dftracer

dftracer.initialize_log("compute.pfw")


class Loss:
    def __init__(self, value: float) -> None:
        self.value = value

    def backward(self) -> None:
        self.value /= 2


def model(batch):
    return [2 * value for value in batch]


def criterion(output, labels):
    return Loss(sum(abs(a - b) for a, b in zip(output, labels)))


@ai.device.transfer
def transfer_to_gpu(data):
    return list(data)


@ai.compute.forward
def forward(model, data):
    return model(data)


@ai.compute.backward
def backward(loss):
    loss.backward()


class Hook:
    """For frameworks that call before and after a step."""

    def before_step(self):
        ai.compute.step.start()

    def after_step(self):
        ai.compute.step.stop()


hook = Hook()
hook.before_step()
batch = transfer_to_gpu((1.0, 2.0))
output = forward(model, batch)
loss = criterion(output, [0.0, 0.0])
backward(loss)
hook.after_step()

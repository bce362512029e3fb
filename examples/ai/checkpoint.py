"""Checkpoints: setting up, capturing, restarting."""

from dftracer.python import ai, dftracer

dftracer.initialize_log("checkpoint.pfw")


class Checkpoint:
    @ai.checkpoint.init
    def __init__(self):
        self.states = []

    @ai.checkpoint.capture
    def save(self, state):
        self.states.append(state)
        return state

    @ai.checkpoint.restart
    def load(self, checkpoint_path):
        return {"path": checkpoint_path}


class MyDataset:
    @ai.data.item.init  # every node has such an event of its own
    def __init__(self, size):
        self.items = list(range(size))


checkpoint = Checkpoint()
checkpoint.load("checkpoint.pt")
dataset = MyDataset(4)
checkpoint.save({"items": dataset.items})

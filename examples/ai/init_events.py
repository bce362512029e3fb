"""Initialization, which happens once before the work: NAME.init."""

from dftracer.python import ai, dftracer

dftracer.initialize_log("init.pfw")


class Checkpoint:
    @ai.checkpoint.init
    def __init__(self):
        self.ready = True


Checkpoint()

with ai.checkpoint.init:
    ready = True

with ai.checkpoint.init():
    ready = True

"""Switching parts of the vocabulary off and on while the program runs."""

from dftracer.python import ai, dftracer

dftracer.initialize_log("switches.pfw")


@ai.compute.forward
def forward():
    pass


@ai.data.item
def read():
    pass


def round_of(number):
    ai.update(round=number)
    forward()
    read()
    with ai.comm.barrier:
        pass


round_of(1)

# A category, with all that is below it. Decorated functions follow.
ai.compute.disable()
round_of(2)

# Everything; then one category alone.
ai.disable()
round_of(3)
ai.data.enable()
round_of(4)

ai.enable()
round_of(5)

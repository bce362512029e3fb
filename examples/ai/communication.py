"""Collective operations, inside the step that waits for them."""

from dftracer.python import ai, dftracer

dftracer.initialize_log("communication.pfw")


def all_reduce(gradients):
    return [sum(gradients)] * len(gradients)


@ai.compute.backward
def backward_with_sync(gradients):
    with ai.comm.all_reduce():
        return all_reduce(gradients)


backward_with_sync([1.0, 2.0, 3.0])

# One use that is not to be seen.
with ai.comm.all_reduce(enable=False):
    all_reduce([1.0])

for operation in (
    ai.comm.send,
    ai.comm.receive,
    ai.comm.barrier,
    ai.comm.bcast,
    ai.comm.reduce,
    ai.comm.gather,
    ai.comm.all_gather,
    ai.comm.scatter,
    ai.comm.reduce_scatter,
    ai.comm.all_to_all,
):
    with operation:
        pass

"""Every event of the vocabulary, once."""

from dftracer.python import ai, dftracer

dftracer.initialize_log("vocabulary.pfw")

with ai.compute, ai.compute.forward, ai.compute.backward, ai.compute.step:
    pass
with ai.data, ai.data.preprocess, ai.data.item:
    pass
with ai.dataloader, ai.dataloader.fetch:
    pass
with ai.comm, ai.comm.send, ai.comm.receive, ai.comm.barrier, ai.comm.bcast, ai.comm.reduce:
    pass
with ai.comm.all_reduce, ai.comm.gather, ai.comm.all_gather, ai.comm.scatter:
    pass
with ai.comm.reduce_scatter, ai.comm.all_to_all:
    pass
with ai.device, ai.device.transfer:
    pass
with ai.checkpoint, ai.checkpoint.capture, ai.checkpoint.restart:
    pass
with ai.pipeline, ai.pipeline.epoch, ai.pipeline.train, ai.pipeline.evaluate, ai.pipeline.test:
    pass

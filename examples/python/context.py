"""Where an update applies: the first context sets values for all, others for themselves."""

import threading

from dftracer.python import ai, dftracer

dftracer.initialize_log("context.pfw")
ai.update(step=1)  # the main thread is first: it speaks for all


def evaluate():
    with ai.pipeline.evaluate:  # step 1, as everywhere
        pass


def prefetch():
    ai.update(step=2)  # holds in this thread alone
    with ai.dataloader.fetch:
        pass


for target in (evaluate, prefetch):
    thread = threading.Thread(target=target)
    thread.start()
    thread.join()

with ai.compute.step:  # still step 1
    pass

"""Profiles some work on two threads, and says what the profiler saw."""

import json
import os
import sys
import threading
import time

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from dftracer.python import ai, dft_fn, dftracer
from dftracer.python.torch import TraceHandler

log = dftracer.initialize_log("t.pfw")
torch.set_num_threads(1)
mine = dft_fn("mine")
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))


@mine.log
def infer(x):
    return model(x)


def work():
    x = torch.ones(3)
    for _ in range(5):
        x = x.add(1)


every_thread = "threads" in sys.argv
config = torch._C._profiler._ExperimentalConfig(profile_all_threads=every_thread)
with profile(
    activities=[ProfilerActivity.CPU],
    record_shapes=True,
    profile_memory=True,
    on_trace_ready=TraceHandler(table=True),
    experimental_config=config,
) as prof:
    with record_function("model_inference"), ai.compute.forward:
        for _ in range(20):
            infer(torch.randn(2, 8)).sum().backward()
    kept = torch.empty(100)
    # The same moments by both clocks.
    with mine, record_function("both"):
        time.sleep(0.002)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

seen = [
    {
        "name": event.key,
        "tid": event.device_resource_id,
        "shapes": event.input_shapes,
        "memory": event.cpu_memory_usage,
        "children": len(event.cpu_children),
    }
    for event in prof.events()
]
log.finalize()
print(json.dumps({"pid": os.getpid(), "worker": thread.native_id, "events": seen}))

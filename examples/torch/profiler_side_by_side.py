"""torch.profiler and dftracer side by side: operations and I/O on one timeline.

DFTRACER_ENABLE=1 python profiler_side_by_side.py [DIRECTORY]
"""

import os
import sys

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from dftracer.logger import dft_fn as Profile
from dftracer.logger import dftracer as PerfTrace
from dftracer.python.torch import trace_handler

directory = sys.argv[1] if len(sys.argv) > 1 else "side_by_side"
rank, world_size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
data = os.path.join(directory, "data")
os.makedirs(data, exist_ok=True)
for i in range(8):
    torch.save(torch.randn(16), os.path.join(data, f"{i}.pt"))

log = PerfTrace.initialize_log(
    logfile=f"{directory}/trace-{rank}-of-{world_size}.pfw", data_dir=data, process_id=rank
)
dlp_data = Profile("DataLoader")


class Images(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    @dlp_data.log
    def preprocess(self, sample):
        return sample - sample.mean()

    @dlp_data.log
    def read_data(self, index):
        return torch.load(os.path.join(data, f"{index}.pt"))

    @dlp_data.log
    def __getitem__(self, index):
        return self.preprocess(self.read_data(index))


model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
inputs = next(iter(torch.utils.data.DataLoader(Images(), batch_size=8)))

with (
    profile(
        activities=[ProfilerActivity.CPU], record_shapes=True, on_trace_ready=trace_handler
    ) as prof,
    record_function("model_inference"),
):
    model(inputs)

# The profiler's own outputs stay what they were.
prof.export_chrome_trace(f"{directory}/torch-trace-{rank}-of-{world_size}.json")
print(prof.key_averages().table(sort_by="cpu_time_total", row_limit=10))
log.finalize()

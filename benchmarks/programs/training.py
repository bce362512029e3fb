"""A small training run: convolutions, a loader with two workers that read files, compiled with
aot_eager. Prints what its steps took, as JSON.

training.py MODE DIRECTORY STEPS BLOCK
    MODE: bare, annotated, traced, auto, profiler, viztracer, peer

It says TURN before each block of steps, and waits for a line: several runs can take turns.
"""

import contextlib
import json
import os
import resource
import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

MODE, DIRECTORY, STEPS, BLOCK = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
WARM_UP = 20
BATCH = 16
ANNOTATED = MODE in ("annotated", "traced", "peer")


def nothing(target):
    return target


class _Nothing:
    """Stands for the annotations where there are none."""

    def __getattr__(self, name):
        return self

    def __call__(self, target=None, **_):
        return target

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def iter(self, items):
        return items

    def update(self, **_):
        return self


ai = _Nothing()
if ANNOTATED:
    from dftracer.python import ai


class Files(Dataset):
    def __init__(self, count):
        self.paths = [os.path.join(DIRECTORY, "data", f"{i % 64}.bin") for i in range(count)]

    def __len__(self):
        return len(self.paths)

    @ai.data.item
    def __getitem__(self, index):
        with open(self.paths[index], "rb", buffering=0) as file:
            image = torch.frombuffer(bytearray(file.read()), dtype=torch.float32)
        return image.reshape(3, 32, 32), index % 10


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.head = nn.Linear(32 * 8 * 8, 10)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


def make_data():
    os.makedirs(os.path.join(DIRECTORY, "data"), exist_ok=True)
    for i in range(64):
        path = os.path.join(DIRECTORY, "data", f"{i}.bin")
        if not os.path.exists(path):
            torch.randn(3 * 32 * 32).numpy().tofile(path)


@contextlib.contextmanager
def profiled():
    if MODE == "profiler":
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
            yield
        prof.export_chrome_trace(os.path.join(DIRECTORY, "profile.json"))
    elif MODE == "viztracer":
        from viztracer import VizTracer

        with VizTracer(output_file=os.path.join(DIRECTORY, "viz.json"), verbose=0):
            yield
    else:
        yield


def cpu():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def backend():
    if MODE != "traced":
        return "aot_eager"
    from dftracer.python.dynamo import create_backend

    return create_backend(name="training", inner="aot_eager")


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    make_data()
    log = None
    if ANNOTATED:
        from dftracer.python import dftracer

        log = dftracer.initialize_log(
            os.path.join(DIRECTORY, "trace", "t.pfw"), os.path.join(DIRECTORY, "data"), -1
        )
    model, loss_of = Net(), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    compiled = torch.compile(model, backend=backend())
    loader = DataLoader(Files(BATCH * (WARM_UP + STEPS)), batch_size=BATCH, num_workers=2)
    times, blocks = [], []
    began = block_began = 0.0
    with profiled():
        for step, (images, labels) in enumerate(ai.dataloader.fetch.iter(loader)):
            at = time.perf_counter()
            ai.update(epoch=0, step=step)
            optimizer.zero_grad()
            with ai.compute.forward:
                loss = loss_of(compiled(images), labels)
            with ai.compute.backward:
                loss.backward()
            with ai.compute.step:
                optimizer.step()
            now = time.perf_counter()
            times.append(now - at)
            done = step + 1 - WARM_UP
            if done >= 0 and done % BLOCK == 0:
                if done == 0:
                    began = cpu()
                else:
                    blocks.append(now - block_began)
                if done < STEPS:
                    print("TURN", flush=True)
                    sys.stdin.readline()
                    block_began = time.perf_counter()
        del loader
        used = cpu() - began
    if log is not None:
        log.finalize()
    figures = {"steps": times[WARM_UP:], "blocks": blocks, "cpu": used, "loss": loss.item()}
    print("FIGURES", json.dumps(figures))


if __name__ == "__main__":
    main()

"""What torch looks like while it is instrumented, and afterwards; and what torch.compile makes of
it, if asked.

untouched.py [on] [compile]
"""

import inspect
import json
import os
import pickle
import sys

import torch
import torch.distributed
from torch import nn
from torch.optim.optimizer import _global_optimizer_pre_hooks
from torch.utils.data import DataLoader, TensorDataset, dataloader
from torch.utils.data._utils import fetch

from dftracer.python import dftracer

PLACES = [
    (nn.Module, "__call__"),
    (torch.autograd, "backward"),
    (torch, "save"),
    (torch, "load"),
    (torch.serialization, "save"),
    (torch.distributed, "all_reduce"),
    (torch.distributed.distributed_c10d, "all_reduce"),
    (DataLoader, "__iter__"),
    (dataloader._BaseDataLoaderIter, "__next__"),
    (fetch._MapDatasetFetcher, "__init__"),
    (torch.Tensor, "to"),
    (torch.Tensor, "cpu"),
]


def places():
    return [vars(owner).get(name) for owner, name in PLACES]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4)
        self.head = nn.Sequential(nn.Linear(4 * 36, 8), nn.ReLU(), nn.Linear(8, 2))

    def forward(self, x):
        return self.head(self.norm(self.conv(x.to(torch.float32))).relu().flatten(1))


def compiled_model():
    model, x = torch.compile(Net(), backend="aot_eager"), torch.randn(2, 1, 8, 8)
    for _ in range(2):
        loss = model(x).sum()
        loss.backward()
    return loss


def compiled_loop():
    model, x = Net(), torch.randn(2, 1, 8, 8)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)

    @torch.compile(backend="aot_eager")
    def step(x):
        loss = model(x.to("cpu")).sum()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(2):
        loss = step(x)
    return loss


def one_graph():
    model = Net()
    return torch.compile(lambda x: model(x), backend="aot_eager", fullgraph=True)(
        torch.ones(2, 1, 8, 8)
    ).sum()


def compile_all():
    out = []
    if "compile" not in sys.argv:
        return out
    import torch._dynamo
    from torch._dynamo.utils import counters

    for program in (compiled_model, compiled_loop, one_graph):
        torch._dynamo.reset()
        counters.clear()
        torch.manual_seed(0)
        value = program().detach().item().hex()
        breaks = {reason.splitlines()[0]: n for reason, n in counters["graph_break"].items()}
        out.append([program.__name__, value, breaks, dict(counters["stats"])])
    return out


before = places()
bare = compile_all()
# Set in the environment from the start, it would be instrumented by now.
if "on" in sys.argv:
    os.environ["DFTRACER_TORCH"] = "1"
log = dftracer.initialize_log("t.pfw")
during = places()
module = Net()
looks = {
    "signatures": all(
        str(inspect.signature(new)) == str(inspect.signature(old))
        for old, new in zip(before, during)
        if inspect.isfunction(old)
    ),
    "pickled": pickle.loads(pickle.dumps(torch.save)) is torch.save,
    "module": isinstance(pickle.loads(pickle.dumps(module)), Net),
    "iterator": type(iter(DataLoader(TensorDataset(torch.ones(4))))).__name__,
    "names": [getattr(new, "__qualname__", None) for new in during],
}
traced = compile_all()
log.finalize()
after = places()
print(
    json.dumps(
        {
            "replaced": [old is not new for old, new in zip(before, during)],
            "restored": [old is new for old, new in zip(before, after)],
            "hooks": len(_global_optimizer_pre_hooks),
            "looks": looks,
            "bare": bare,
            "traced": traced,
            "imported": "dftracer.python.torch.auto" in sys.modules,
        }
    )
)

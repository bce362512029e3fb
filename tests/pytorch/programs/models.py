"""Small models, each with something that a compiler can get wrong. `MODELS` maps a name to a maker
of what is called, and of its inputs, run by run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

Inputs = list[tuple[Any, ...]]
Maker = Callable[[], tuple[Callable[..., Any], Inputs]]
MODELS: dict[str, Maker] = {}


def model(maker: Maker) -> Maker:
    MODELS[maker.__name__] = maker
    return maker


def leaf(*shape: int) -> Tensor:
    return torch.randn(*shape, requires_grad=True)


class Calls(nn.Module):
    """A module around a function and the modules that it uses."""

    def __init__(self, function: Callable[..., Any], **parts: nn.Module) -> None:
        super().__init__()
        self.function = function
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *inputs: Any) -> Any:
        return self.function(self, *inputs)


@model
def convolution() -> tuple[Any, Inputs]:
    def run(m: Any, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(m.conv1(x)), 2)
        return m.fc(torch.flatten(m.conv2(x), 1))

    parts = {
        "conv1": nn.Conv2d(1, 4, 3),
        "conv2": nn.Conv2d(4, 4, 3),
        "fc": nn.Linear(4 * 3 * 3, 3),
    }
    return Calls(run, **parts), [(leaf(2, 1, 12, 12),), (torch.randn(2, 1, 12, 12),)]


@model
def attention() -> tuple[Any, Inputs]:
    def run(m: Any, x: Tensor) -> Tensor:
        q, k, v = m.qkv(x).chunk(3, dim=-1)
        return m.out(F.scaled_dot_product_attention(q, k, v, is_causal=True))

    return Calls(run, qkv=nn.Linear(8, 24), out=nn.Linear(8, 8)), [(leaf(2, 5, 8),)]


@model
def multihead_attention() -> tuple[Any, Inputs]:
    def run(m: Any, x: Tensor) -> Tensor:
        return m.attend(x, x, x, need_weights=False)[0]

    return Calls(run, attend=nn.MultiheadAttention(8, 2, batch_first=True)), [(leaf(2, 4, 8),)]


@model
def embeddings() -> tuple[Any, Inputs]:
    def run(m: Any, ids: Tensor, places: Tensor) -> Tensor:
        return (m.words(ids) + m.places(places)).mean(1)

    parts = {"words": nn.Embedding(11, 6, padding_idx=0), "places": nn.Embedding(4, 6)}
    ids = torch.tensor([[0, 3, 3, 10], [1, 2, 0, 5]])
    return Calls(run, **parts), [(ids, torch.arange(4).expand(2, 4))]


@model
def batch_norm() -> tuple[Any, Inputs]:
    net = nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
    return net, [(leaf(3, 2, 6, 6),), (leaf(3, 2, 6, 6),)]


@model
def batch_norm_evaluated() -> tuple[Any, Inputs]:
    return nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)).eval(), [(leaf(3, 4),)]


@model
def dropout() -> tuple[Any, Inputs]:
    return nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.5), nn.Linear(6, 2)), [(leaf(9, 6),)] * 3


@model
def random_numbers() -> tuple[Any, Inputs]:
    def run(x: Tensor) -> Tensor:
        return x * torch.rand_like(x) + torch.randn(x.shape[0], 1)

    return run, [(leaf(4, 3),), (leaf(4, 3),)]


@model
def in_place() -> tuple[Any, Inputs]:
    def run(x: Tensor, y: Tensor) -> Tensor:
        z = x.clone()
        z += y
        z.mul_(2)
        z[0] = 1.5
        y.add_(1)
        return z.relu_()

    return run, [(leaf(3, 3), torch.randn(3, 3)), (leaf(3, 3), torch.randn(3, 3))]


@model
def views() -> tuple[Any, Inputs]:
    def run(x: Tensor) -> tuple[Tensor, ...]:
        y = x.view(2, 6).t().contiguous()
        return y[1:, :], y.unsqueeze(0).expand(3, -1, -1), x.transpose(0, 1)[::2]

    return run, [(leaf(3, 4),)]


@model
def aliasing() -> tuple[Any, Inputs]:
    def run(x: Tensor) -> tuple[Tensor, ...]:
        y = x * 2
        return y, y.view(-1), x, y

    return run, [(leaf(2, 3),)]


@model
def aliased_inputs() -> tuple[Any, Inputs]:
    def run(x: Tensor, y: Tensor) -> Tensor:
        x.mul_(2)
        return x + y

    base = torch.randn(6)
    return run, [(base[:4], base[2:])]


@model
def mutated_buffer() -> tuple[Any, Inputs]:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(3))

        def forward(self, x: Tensor) -> Tensor:
            self.seen += x.detach().sum(0)
            return x * self.seen

    return Counting(), [(leaf(2, 3),), (leaf(2, 3),)]


@model
def dynamic_shapes() -> tuple[Any, Inputs]:
    def run(m: Any, x: Tensor) -> Tensor:
        return m.fc(x).view(x.shape[0] * 2, -1).sum(0) / x.size(0)

    return Calls(run, fc=nn.Linear(4, 6)), [(leaf(n, 4),) for n in (3, 5, 8, 13)]


@model
def checkpointing() -> tuple[Any, Inputs]:
    def run(m: Any, x: Tensor) -> Tensor:
        return m.last(checkpoint(m.block, x, use_reentrant=False))

    block = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 4))
    return Calls(run, block=block, last=nn.Linear(4, 2)), [(leaf(3, 4),)]


@model
def autocast() -> tuple[Any, Inputs]:
    def run(m: Any, x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = m.a(x)
        return m.b(y.float())

    return Calls(run, a=nn.Linear(4, 8), b=nn.Linear(8, 2)), [(leaf(3, 4),)]


@model
def no_grad_inside() -> tuple[Any, Inputs]:
    def run(m: Any, x: Tensor) -> Tensor:
        y = m.fc(x)
        with torch.no_grad():
            scale = y.abs().max() + 1
        return y / scale

    return Calls(run, fc=nn.Linear(4, 4)), [(leaf(3, 4),)]


@model
def inputs_and_outputs() -> tuple[Any, Inputs]:
    def run(x: Tensor, pair: tuple[Tensor, Tensor], *, table: dict[str, Tensor]) -> Any:
        a, b = pair
        return {"sum": x + a, "rest": [b * table["k"], (x.sum(), 3)]}

    class Keyword:
        def __call__(self, x: Tensor, a: Tensor, b: Tensor, k: Tensor) -> Any:
            return run(x, (a, b), table={"k": k})

    return Keyword().__call__, [tuple(leaf(2, 2) for _ in range(4))]


@model
def tied_weights() -> tuple[Any, Inputs]:
    words = nn.Embedding(9, 4)
    back = nn.Linear(4, 9, bias=False)
    back.weight = words.weight
    return nn.Sequential(words, nn.Tanh(), back), [(torch.tensor([[1, 2, 2, 8]]),)]


@model
def graph_break() -> tuple[Any, Inputs]:
    def run(m: Any, x: Tensor) -> Tensor:
        x = m.a(x)
        torch._dynamo.graph_break()
        return m.b(torch.relu(x))

    return Calls(run, a=nn.Linear(4, 4), b=nn.Linear(4, 1)), [(leaf(3, 4),)]


@model
def branches_on_data() -> tuple[Any, Inputs]:
    def run(x: Tensor) -> Tensor:
        return x * 2 if x.sum() > 0 else x.exp()

    return run, [(torch.ones(3, requires_grad=True),), (leaf(3) - 9,)]


@model
def recurrent() -> tuple[Any, Inputs]:
    def run(m: Any, xs: Tensor) -> Tensor:
        h = xs.new_zeros(2, 4)
        for x in xs:
            h = m.cell(x, h)
        return h

    return Calls(run, cell=nn.GRUCell(3, 4)), [(leaf(4, 2, 3),)]


@model
def numbers() -> tuple[Any, Inputs]:
    def run(x: Tensor, n: int, s: float) -> Tensor:
        return (x * s).repeat(n, 1) ** 2

    return run, [(leaf(2, 2), 2, 0.5), (leaf(2, 2), 3, 0.5)]


@model
def losses() -> tuple[Any, Inputs]:
    def run(m: Any, x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(m.fc(F.layer_norm(x, (4,))), y)

    return Calls(run, fc=nn.Linear(4, 3)), [(leaf(5, 4), torch.tensor([0, 1, 2, 1, 0]))]


@model
def half_precision_and_integers() -> tuple[Any, Inputs]:
    def run(x: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        return x.to(torch.bfloat16).cumsum(0).float(), torch.bincount(ids) // 2

    return run, [(leaf(4, 3), torch.tensor([1, 1, 3, 0, 1, 1]))]


@model
def nothing_to_do() -> tuple[Any, Inputs]:
    return nn.Identity(), [(leaf(2),)]


def parameters(target: Any) -> Iterator[tuple[str, Tensor]]:
    module = target if isinstance(target, nn.Module) else None
    if module is not None:
        yield from module.named_parameters()
        yield from module.named_buffers()

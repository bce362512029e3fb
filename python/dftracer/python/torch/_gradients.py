"""The all-reduce of gradients that DistributedDataParallel does inside `backward`, in C++.

Its buckets are reduced while gradients are computed; what is left when the last gradient is there
is waited for at the end of `backward`. That wait is the event. It begins in a callback of autograd
that is queued when the gradient reaches the output of the model: callbacks run in order after the
last gradient, and the one that waits is queued behind ours. A communication hook would see every
bucket, but it replaces the division and the stream of the default one, and a model can have only
one.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.compiler import is_dynamo_compiling

from dftracer import _core
from dftracer._core import Collectives
from dftracer.python.torch._collectives import bytes_of
from dftracer.python.torch._patch import Patches
from dftracer.python.torch._progress import Progress

__all__ = ["Gradients", "instrument_gradients"]

Call = Callable[..., Any]
FUNCTION = "DistributedDataParallel"
# Tensors of an output that are watched, and how deep it is searched for them.
_MOST_TENSORS = 16
_DEEPEST = 4


class Gradients:
    """The backward passes in progress, and which models have all their gradients since when."""

    def __init__(self, progress: Progress, collectives: Collectives | None) -> None:
        self._progress = progress
        self._collectives = collectives
        self._passes: list[list[tuple[Any, int]]] = []
        self._sizes: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

    def enter(self) -> None:
        """A backward pass begins."""
        self._passes.append([])

    def begin(self, model: Any) -> None:
        if self._passes:
            self._passes[-1].append((model, _core.time()))

    def leave(self, failed: bool = False) -> None:
        """It ends: the wait of a model ends where that of the next one begins, or here."""
        begun = self._passes.pop() if self._passes else []
        if not begun or failed:
            return
        ends = [start for _, start in begun[1:]] + [_core.time()]
        for (model, start), end in zip(begun, ends):
            group = self._collectives.find(model.process_group) if self._collectives else None
            if group is not None:
                node = self._progress.nodes.comm.all_reduce
                group.complete(node, FUNCTION, start, end - start, self._size(model))

    def _size(self, model: Any) -> int:
        size = self._sizes.get(model)
        if size is None:
            size = bytes_of([weight for weight in model.parameters() if weight.requires_grad])
            self._sizes[model] = size
        return size


def _tensors(value: Any, depth: int = 0) -> Iterator[Any]:
    """Those of an output that a gradient can reach."""
    if isinstance(value, torch.Tensor):
        if value.grad_fn is not None:
            yield value
    elif depth < _DEEPEST:
        if isinstance(value, dict):
            value = value.values()
        elif not isinstance(value, (list, tuple)):
            value = vars(value).values() if hasattr(value, "__dataclass_fields__") else ()
        for one in value:
            yield from _tensors(one, depth + 1)


def _compiles_backward() -> bool:
    """Whether backward passes are compiled as well: a hook would become part of the graph."""
    module = sys.modules.get("torch._dynamo.compiled_autograd")
    return bool(getattr(module, "compiled_autograd_enabled", False))


def instrument_gradients(
    patches: Patches, progress: Progress, collectives: Collectives | None
) -> Gradients:
    gradients = Gradients(progress, collectives)
    models: Any = getattr(torch.nn.parallel, FUNCTION, None)
    queue: Any = getattr(torch.autograd.Variable._execution_engine, "queue_callback", None)
    task: Any = getattr(torch._C, "_current_graph_task_id", None)
    if models is None or queue is None or task is None or collectives is None:
        return gradients

    def watch(model: Any, output: Any) -> None:
        seen = -1

        def reached(_: Any) -> None:
            nonlocal seen
            now = task()
            if now != seen:  # once in each pass, whichever tensor comes first
                seen = now
                queue(lambda: gradients.begin(model))

        for at, tensor in enumerate(_tensors(output)):
            if at == _MOST_TENSORS:
                break
            tensor.grad_fn.register_prehook(reached)

    def make(original: Call) -> Call:
        def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
            output = original(self, *args, **kwargs)
            if is_dynamo_compiling() or not torch.is_grad_enabled() or _compiles_backward():
                return output
            if self.require_backward_grad_sync:
                watch(self, output)
            return output

        return forward

    patches.replace((models,), "forward", make)
    return gradients

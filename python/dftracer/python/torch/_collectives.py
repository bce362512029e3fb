"""Collectives of torch.distributed as events that other ranks' events can be matched with.

Each has the name of its process group, the ranks in it, and its number among the collectives of
that group, which all ranks call in the same order. One that is started with async_op=True is over
when the program has waited for it: `wait` has the same number. The path of a call is in C++
(src/python/collectives.cpp); here is what happens once per function and per group.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch.compiler import is_dynamo_compiling

from dftracer._core import Collective, Collectives, Group
from dftracer.python.torch._patch import Patches
from dftracer.python.torch._progress import Progress

__all__ = ["bytes_of", "instrument_collectives"]

Call = Callable[..., Any]
# The event of each collective, by the name of the function.
_COLLECTIVES = {
    "all_gather": "all_gather",
    "all_gather_coalesced": "all_gather",
    "all_gather_into_tensor": "all_gather",
    "all_gather_object": "all_gather",
    "all_gather_single": "all_gather",
    "all_reduce": "all_reduce",
    "all_reduce_coalesced": "all_reduce",
    "all_to_all": "all_to_all",
    "all_to_all_single": "all_to_all",
    "barrier": "barrier",
    "monitored_barrier": "barrier",
    "broadcast": "bcast",
    "broadcast_object_list": "bcast",
    # Buffers of a model, which DistributedDataParallel takes from rank 0 in `forward`.
    "_broadcast_coalesced": "bcast",
    "gather": "gather",
    "gather_object": "gather",
    "reduce": "reduce",
    "reduce_scatter": "reduce_scatter",
    "reduce_scatter_single": "reduce_scatter",
    "reduce_scatter_tensor": "reduce_scatter",
    "scatter": "scatter",
    "scatter_object_list": "scatter",
}
# Between two ranks: the others have no such call to match.
_PAIRS = {
    "send": "send",
    "isend": "send",
    "send_object_list": "send",
    "recv": "receive",
    "irecv": "receive",
    "recv_object_list": "receive",
}


def bytes_of(value: Any) -> int:
    """Bytes of a tensor, or of the tensors in a list; 0 for anything else."""
    if isinstance(value, torch.Tensor):
        return int(value.numel() * value.element_size())
    if isinstance(value, (list, tuple)):
        return sum(map(bytes_of, value))
    return 0


def _first_bytes(args: Sequence[Any], kwargs: dict[str, Any]) -> int:
    """Of the first tensors among the arguments."""
    sizes = map(bytes_of, (*args, *kwargs.values()))
    return next((size for size in sizes if size), 0)


def ranks_text(ranks: Iterable[int]) -> str:
    """As in "0-3,8": the same on every rank, and short for any number of them."""
    parts: list[list[int]] = []
    for rank in sorted(ranks):
        if parts and parts[-1][1] == rank - 1:
            parts[-1][1] = rank
        else:
            parts.append([rank, rank])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


class _Groups:
    """Process groups. One that was destroyed and made again by the same name goes on counting."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._member = getattr(inner, "GroupMember", None) or inner.group
        self._named: dict[str, Group] = {}
        # torchrun starts all ranks anew after a failure: their collectives are others.
        again = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        self._suffix = "" if again == "0" else f"#{again}"

    def enter(self, group: Any) -> Group | None:
        """None where this rank is not in the group, or this version of torch has no names."""
        if group is None:
            group = self._member.WORLD
        try:
            name = group.group_name
            facts = {
                "group": f"{name}{self._suffix}",
                "ranks": ranks_text(self._inner.get_process_group_ranks(group)),
                "rank": self._inner.get_rank(),
            }
        except (AttributeError, KeyError, RuntimeError, ValueError):
            return None
        known = self._named.get(name)
        if known is None or known.facts != facts:
            known = self._named[name] = Group(facts)
        return known


def _place_of(function: Call, name: str) -> int:
    """The position of an argument; of functions of C++, the first."""
    try:
        known = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return 0
    return known.index(name) if name in known else sys.maxsize


def instrument_collectives(
    patches: Patches, progress: Progress, start_once: Callable[[], None]
) -> Collectives | None:
    import torch.distributed as distributed

    if not distributed.is_available():
        return None
    inner: Any = importlib.import_module("torch.distributed.distributed_c10d")
    work_type: Any = getattr(inner, "Work", None)
    collectives = Collectives(
        progress,
        vars(inner),
        _Groups(inner).enter,
        start_once,
        _first_bytes,
        torch.Tensor,
        work_type,
    )

    def maker(name: str, event: str) -> Callable[[Call], Call]:
        def make(original: Call) -> Call:
            place = _place_of(original, "group")
            matched = name not in _PAIRS
            record = Collective(collectives, original, name, event, place, matched).call

            def collective(*args: Any, **kwargs: Any) -> Any:
                if is_dynamo_compiling():
                    return original(*args, **kwargs)
                return record(args, kwargs)

            return collective

        return make

    def make_wait(original: Call) -> Call:
        record = collectives.wait

        def wait(self: Any, *args: Any, **kwargs: Any) -> Any:
            if is_dynamo_compiling():
                return original(self, *args, **kwargs)
            return record(original, self, args, kwargs)

        return wait

    for name, event in {**_COLLECTIVES, **_PAIRS}.items():
        owners = (inner, distributed) if hasattr(inner, name) else (distributed,)
        if hasattr(owners[0], name):
            patches.replace(owners, name, maker(name, event))
    if work_type is not None:
        patches.replace((work_type,), "wait", make_wait)
    return collectives

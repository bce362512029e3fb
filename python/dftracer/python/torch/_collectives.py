"""Collectives of torch.distributed as events that other ranks' events can be matched with.

Each has the name of its process group, the ranks in it, and its number among the collectives of
that group, which all ranks call in the same order. One that is started with async_op=True is over
when the program has waited for it: `wait` has the same number.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch.compiler import is_dynamo_compiling

from dftracer._core import Region
from dftracer.python.torch._patch import Patches
from dftracer.python.torch._progress import Progress

__all__ = ["Groups", "bytes_of", "instrument_collectives"]

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


class _Inside(threading.local):
    """Whether a collective is in progress in this thread: only the outermost call is an event."""

    collective = False


_inside = _Inside()


def bytes_of(value: Any) -> int:
    """Bytes of a tensor, or of the tensors in a list; 0 for anything else."""
    if isinstance(value, torch.Tensor):
        return int(value.numel() * value.element_size())
    if isinstance(value, (list, tuple)):
        return sum(map(bytes_of, value))
    return 0


def _first_bytes(args: Sequence[Any], kwargs: dict[str, Any]) -> int:
    """Of the first tensors among the arguments."""
    if args and type(args[0]) is torch.Tensor:
        return int(args[0].nbytes)
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


class _Group:
    """A process group: what its events say, and how many there were."""

    __slots__ = ("count", "facts", "reference")

    def __init__(self, facts: dict[str, Any]) -> None:
        self.facts = facts
        self.count = 0
        self.reference: Callable[[], Any] = lambda: None  # does not keep it alive

    def next(self, function: str) -> dict[str, Any]:
        """The arguments of the next collective."""
        number = self.count
        self.count = number + 1
        return {"function": function, **self.facts, "seq": number}


class Groups:
    """Process groups. One that was destroyed and made again by the same name goes on counting."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._member = getattr(inner, "GroupMember", None) or inner.group
        self._known: dict[int, _Group] = {}
        self._named: dict[str, _Group] = {}
        # torchrun starts all ranks anew after a failure: their collectives are others.
        again = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        self._suffix = "" if again == "0" else f"#{again}"

    def find(self, group: Any) -> _Group | None:
        """None where this rank is not in the group, or this version of torch has no names."""
        if group is None:
            group = self._member.WORLD
        known = self._known.get(id(group))
        if known is not None and known.reference() is group:
            return known
        return self._enter(group)

    def _enter(self, group: Any) -> _Group | None:
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
            known = self._named[name] = _Group(facts)
        known.reference = weakref.ref(group)
        self._known = {at: one for at, one in self._known.items() if one.reference() is not None}
        self._known[id(group)] = known
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
) -> Groups | None:
    import torch.distributed as distributed

    if not distributed.is_available():
        return None
    inner: Any = importlib.import_module("torch.distributed.distributed_c10d")
    groups = Groups(inner)
    inside = _inside
    work_type: Any = getattr(inner, "Work", ())
    # What was started and not yet waited for, without keeping it alive.
    started: weakref.WeakKeyDictionary[Any, dict[str, Any]] = weakref.WeakKeyDictionary()

    def maker(name: str, event: str) -> Callable[[Call], Call]:
        def make(original: Call) -> Call:
            find = groups.find if name not in _PAIRS else None
            place = _place_of(original, "group")

            def collective(*args: Any, **kwargs: Any) -> Any:
                if is_dynamo_compiling() or inside.collective:
                    return original(*args, **kwargs)
                start_once()
                group = None
                if find is not None:
                    group = find(args[place] if len(args) > place else kwargs.get("group"))
                says: dict[str, Any] = {"function": name} if group is None else group.next(name)
                inside.collective = True
                region = Region(getattr(progress.nodes.comm, event))
                try:
                    result = original(*args, **kwargs)
                    if result is not None and isinstance(result, work_type):
                        started[result] = dict(says)
                        says["async"] = True
                    return result
                finally:
                    inside.collective = False
                    says["bytes"] = _first_bytes(args, kwargs)
                    region.end(says)

            return collective

        return make

    def make_wait(original: Call) -> Call:
        def wait(self: Any, *args: Any, **kwargs: Any) -> Any:
            if is_dynamo_compiling() or inside.collective:
                return original(self, *args, **kwargs)
            says = started.get(self)
            if says is None:
                return original(self, *args, **kwargs)
            region = Region(progress.nodes.wait)
            try:
                return original(self, *args, **kwargs)
            finally:
                region.end(says)

        return wait

    for name, event in {**_COLLECTIVES, **_PAIRS}.items():
        owners = (inner, distributed) if hasattr(inner, name) else (distributed,)
        if hasattr(owners[0], name):
            patches.replace(owners, name, maker(name, event))
    if work_type:
        patches.replace((work_type,), "wait", make_wait)
    return groups

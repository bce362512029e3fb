"""Writes the raw events of one torch.profiler profile to the trace.

Kineto's list is walked once, and each event is recorded when its successor shows that it has ended.
The profiler's own objects (FunctionEvent) are not created: they take ten times the time, and as
much memory as the profile itself.
"""

from __future__ import annotations

from operator import methodcaller
from typing import Any

from dftracer import _core

__all__ = ["CATEGORY", "record"]

CATEGORY = "PP"
# Suffixes of lanes beside a thread, after its number.
_LABEL = "torch.profiler"
_CPU = 0  # torch's DeviceType.CPU
# Device types of memory that programs see as the CPU's.
_HOST_MEMORY = ("CPU", "MKLDNN", "IDEEP")
_MEMORY = "[memory]"
_STEP = "ProfilerStep#"
_MOST_STACK = 32


def _hidden_names() -> frozenset[str]:
    """Events of the profiler itself; its own tables leave them out as well."""
    try:
        from torch.autograd import profiler_util
    except ImportError:
        return frozenset()
    names = ("profiler::_record_function_enter", "profiler::_record_function_enter_new")
    more = (
        "profiler::_record_function_exit",
        "aten::is_leaf",
        "aten::output_nr",
        "aten::_version",
    )
    hidden = getattr(profiler_util, "_filter_name", None)
    if hidden is None:
        return frozenset(names + more)
    return frozenset(name for name in names + more if hidden(name))


class _Reader:
    """What is read from each event, decided once per profile."""

    def __init__(self, prof: Any, batch: _core.Batch) -> None:
        self.batch = batch
        self.shapes = bool(getattr(prof, "record_shapes", False))
        self.flops = bool(getattr(prof, "with_flops", False))
        self.stack = bool(getattr(prof, "with_stack", False))
        self.with_device = bool(getattr(getattr(prof, "profiler", prof), "use_device", None))
        self.hidden = _hidden_names()
        self.threads: dict[int, int] = {}
        self.devices: dict[tuple[int, int, int], tuple[int, dict[str, Any]]] = {}

    def thread(self, tid: int) -> int:
        group = self.threads.get(tid)
        if group is None:
            group = self.threads[tid] = self.batch.thread(tid)
        return group

    def device(self, event: Any, kind: int) -> tuple[int, dict[str, Any]]:
        """The lane of a device queue, and the arguments that describe the device."""
        key = (kind, event.device_index(), event.device_resource_id())
        found = self.devices.get(key)
        if found is None:
            name = str(event.device_type()).rpartition(".")[2].lower()
            group = self.batch.device(f"{name}:{key[1]} stream {key[2]}")
            says = {"device": key[1], "device_type": name, "stream": key[2]}
            found = self.devices[key] = (group, says)
        return found

    def memory(self, event: Any) -> None:
        group = self.thread(event.device_resource_id())
        on_host = str(event.device_type()).rpartition(".")[2] in _HOST_MEMORY
        self.batch.memory(group, event.start_ns(), event.nbytes(), not on_host)

    def arguments(self, event: Any, says: dict[str, Any]) -> dict[str, Any]:
        if self.shapes:
            shapes = event.shapes()
            if shapes:
                says["input_size"] = sum(map(len, shapes))
                says["shapes"] = shapes
        if self.flops:
            flops = event.flops()
            if flops:
                says["flops"] = flops
        if self.stack:
            stack = event.stack()
            if stack:
                says["stack"] = stack[:_MOST_STACK]
        sequence = event.sequence_nr()
        if sequence >= 0:
            says["sequence"] = sequence
        return says

    def one(self, event: Any) -> None:
        name = event.name()
        if name in self.hidden:
            return
        if name == _MEMORY:
            self.memory(event)
            return
        kind = int(event.device_type())
        if kind == _CPU:
            tid = event.device_resource_id()
            group = self.thread(tid)
            says: dict[str, Any] = {"tid": tid, "device": -1}
            if name.startswith(_STEP):
                says["step"] = int(name[len(_STEP) :] or 0)
                name = "ProfilerStep*"
            if self.with_device:
                says["correlation"] = event.correlation_id()
            self.arguments(event, says)
        else:
            group, says = self.device(event, kind)
            linked = event.linked_correlation_id()
            if linked:
                says = {**says, "correlation": linked}
        self.batch.add(group, name, event.start_ns(), event.end_ns(), says)


def record(prof: Any, results: Any) -> int:
    """Records all events of kineto's `results`; returns their number."""
    events = results.events()
    # Known releases return them sorted; then this is one comparison per event.
    events.sort(key=methodcaller("start_ns"))
    batch = _core.Batch(CATEGORY, _LABEL, bool(getattr(prof, "profile_memory", False)))
    reader = _Reader(prof, batch)
    hidden = methodcaller("is_hidden_event") if _has_hidden(events) else None
    events.reverse()
    while events:  # freed as soon as it is recorded
        event = events.pop()
        if hidden is None or not hidden(event):
            reader.one(event)
    return batch.finish()


def _has_hidden(events: list[Any]) -> bool:
    return bool(events) and hasattr(events[0], "is_hidden_event")

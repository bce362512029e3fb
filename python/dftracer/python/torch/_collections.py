"""Long collections of Python's garbage collector, which stop the thread that they happen in."""

from __future__ import annotations

import gc
from sys import is_finalizing
from time import perf_counter_ns
from typing import Any

from dftracer import _core
from dftracer._core import Region
from dftracer.python.ai import DFTracerAI
from dftracer.python.torch._patch import Patches

__all__ = ["record_collections"]

_SHORTEST_NS = 100_000


def record_collections(patches: Patches) -> None:
    """An event per collection of generation 1 or 2 that takes longer than 100 us."""
    node = DFTracerAI(cat="python", name="gc")
    region: Region | None = None
    start = 0

    def note(phase: str, info: dict[str, Any]) -> None:
        nonlocal region, start
        if info["generation"] == 0:
            return
        if phase == "start":
            # Nothing is missed before the trace begins, or when the interpreter ends.
            region = Region(node) if _core.active() and not is_finalizing() else None
            start = perf_counter_ns()
        elif region is not None:
            ended, region = region, None
            if perf_counter_ns() - start > _SHORTEST_NS:
                ended.end({"generation": info["generation"], "collected": info["collected"]})
            else:
                ended.drop()

    def forget() -> None:
        if note in gc.callbacks:
            gc.callbacks.remove(note)

    gc.callbacks.append(note)
    patches.undo_with(forget)

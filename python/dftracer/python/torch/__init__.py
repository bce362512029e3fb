"""PyTorch in the trace: events of torch.profiler, and unannotated training scripts.

`trace_handler` and `profile` write the events of torch.profiler to the trace of this run. The
modules `auto` (no code changes), `lightning` and `hf` record training loops. Nothing here imports
torch before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dftracer.python.torch.profiler import TraceHandler, profile, trace_handler

__all__ = ["TraceHandler", "profile", "trace_handler"]


# Names of dftracer.python that other releases have here as well.
_SHARED = ("TagDType", "TagType", "TagValue", "dftracer", "get_time_scale")


def _find(name: str) -> Any:
    if name in __all__:
        from dftracer.python.torch import profiler

        return getattr(profiler, name)
    if name in _SHARED:
        import dftracer.python as python

        return getattr(python, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __getattr__(name: str) -> Any:
    value = _find(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SHARED})

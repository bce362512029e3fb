"""PyTorch in the trace: torch.profiler's events, and training scripts that nobody annotated.

`trace_handler` and `profile` bring the events of torch.profiler into this run's trace. The modules
`auto` (no code at all), `lightning` and `hf` record what a training loop does. Nothing here imports
torch before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dftracer.python.torch.profiler import TraceHandler, profile, trace_handler

__all__ = ["TraceHandler", "profile", "trace_handler"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from dftracer.python.torch import profiler

    value = getattr(profiler, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

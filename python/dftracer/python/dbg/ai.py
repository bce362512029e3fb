"""See dftracer.python.dbg."""

from __future__ import annotations

import dftracer.python as _python
from dftracer.python import (
    DFTRACER_ENABLE,
    DFTracerAI,
    ai,
    dft_fn,
    dftracer,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["DFTRACER_ENABLE", "DFTracerAI", "ai", "dft_fn", "dftracer"]
__all__ += [name for name in _python.__all__ if name not in __all__]


def __getattr__(name: str) -> Any:
    return _python._find(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_python.__all__})

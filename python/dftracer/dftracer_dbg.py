"""The native module of other releases' debug build; see dftracer.dftracer."""

from __future__ import annotations

import dftracer.dftracer as _source
from dftracer.python._alias import alias_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dftracer.dftracer import *  # noqa: F403

__all__, __getattr__, __dir__ = alias_of(_source)

"""The older import path of dftracer.python, with all its names."""

from __future__ import annotations

import dftracer.python as _source
from dftracer.python._alias import alias_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dftracer.python import *  # noqa: F403

__all__, __getattr__, __dir__ = alias_of(_source)

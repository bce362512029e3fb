"""The debug names of other releases. There is one build, so they are the plain ones."""

from __future__ import annotations

from typing import Any

import dftracer.python as _python
from dftracer.python import *  # noqa: F403


def __getattr__(name: str) -> Any:
    return getattr(_python, name)

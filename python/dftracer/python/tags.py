"""Values with a role in aggregated traces."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Union

__all__ = ["TagDType", "TagType", "TagValue", "TagValueTuple"]

# (role, value), the form that dftracer.log_event takes.
TagValueTuple = tuple[int, Union[int, float, str]]


class TagDType(IntEnum):
    INT = 0
    FLOAT = 1
    STRING = 2


class TagType(IntEnum):
    """Role of a value in aggregation. A trace of single events contains all values."""

    KEY = 0
    VALUE = 1
    IGNORE = 2


_CONVERT = {TagDType.INT: int, TagDType.FLOAT: float, TagDType.STRING: str}


class TagValue:
    """A value of an argument, its type in the trace, and its role."""

    def __init__(
        self, value: Any, dtype: TagDType = TagDType.STRING, tag_type: TagType = TagType.KEY
    ) -> None:
        self.dtype = dtype
        self.tag_type = tag_type
        # The value in events: the extension looks for this name.
        try:
            self.plain: Any = _CONVERT[TagDType(dtype)](value)
        except (TypeError, ValueError):
            self.plain = value

    def value(self) -> tuple[int, Any]:
        """(role, value), the form that dftracer.log_event takes."""
        return int(self.tag_type), self.plain

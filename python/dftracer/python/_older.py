"""Attributes of annotations that programs written for other releases read."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing would take longer than all the rest
    from typing import Any

__all__ = ["Looked"]

# Always among the floats, whatever type it was given as.
_FLOAT = "image_size"


class Looked:
    """Category, name, switch and arguments of a node, as in other releases. Each access to the
    arguments returns a new dict; changing it changes no event."""

    _flush = False

    @property
    def _cat(self: Any) -> str:
        return str(self.cat)

    @property
    def _name(self: Any) -> str:
        return str(self.name)

    @property
    def _enable(self: Any) -> bool:
        return bool(self.enabled)

    @property
    def _arguments_int(self: Any) -> dict[str, tuple[int, int]]:
        found: dict[str, Any] = self._values()
        return {
            key: (0, int(value))
            for key, value in found.items()
            if isinstance(value, int) and key != _FLOAT
        }

    @property
    def _arguments_float(self: Any) -> dict[str, tuple[int, float]]:
        found: dict[str, Any] = self._values()
        return {
            key: (0, float(value))
            for key, value in found.items()
            if isinstance(value, float) or (key == _FLOAT and isinstance(value, int))
        }

    @property
    def _arguments_string(self: Any) -> dict[str, tuple[int, str]]:
        found: dict[str, Any] = self._values()
        return {key: (0, value) for key, value in found.items() if isinstance(value, str)}

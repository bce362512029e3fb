"""Replaces functions of another package, and restores them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["Patches"]

_MISSING = object()


class Patches:
    def __init__(self) -> None:
        self._done: list[tuple[Any, str, Any, Any]] = []
        self._undo: list[Callable[[], Any]] = []

    def replace(self, owners: tuple[Any, ...], name: str, make: Callable[[Any], Any]) -> None:
        """Replaces a function by make(original), wherever it is known by this name.

        The new one looks like the old one: name, module, signature, pickling.
        """
        original = getattr(owners[0], name, None)
        if original is None:
            return
        self._set(owners, name, original, functools.wraps(original)(make(original)))

    def set(self, owners: tuple[Any, ...], name: str, new: Any) -> None:
        """Replaces anything else, such as a class."""
        self._set(owners, name, getattr(owners[0], name), new)

    def _set(self, owners: tuple[Any, ...], name: str, original: Any, new: Any) -> None:
        for owner in owners:
            if getattr(owner, name, None) is original:
                self._done.append((owner, name, vars(owner).get(name, _MISSING), new))
                setattr(owner, name, new)

    def undo_with(self, action: Callable[[], Any]) -> None:
        self._undo.append(action)

    def undo(self) -> None:
        """Restores everything, except what was replaced again since."""
        for owner, name, before, new in reversed(self._done):
            if vars(owner).get(name) is not new:
                continue
            if before is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
        for action in reversed(self._undo):
            action()
        self._done.clear()
        self._undo.clear()

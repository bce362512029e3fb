"""Shared by the callbacks for trainers: phases as spans, and the trainer's counters."""

from __future__ import annotations

from typing import Any

from dftracer.python.ai import ai
from dftracer.python.torch import auto

__all__ = ["Phases"]


class Phases:
    """Spans of ai.pipeline that a trainer's hooks begin and end, over instrumented torch calls."""

    def __init__(self) -> None:
        self._open: list[str] = []
        self._installed = False

    def set_up(self) -> None:
        """Starts recording torch calls, with the epoch and step of the trainer."""
        if not self._installed:
            self._installed = auto.install()
            self._set_external(True)

    def tear_down(self) -> None:
        while self._open:
            self.end(self._open[-1])
        if self._installed:
            self._installed = False
            self._set_external(False)
            auto.remove(all_users=False)

    def begin(self, name: str) -> None:
        if self._installed and name not in self._open:
            auto.start_session()
            self._open.append(name)
            getattr(ai.pipeline, name).start()

    def end(self, name: str) -> None:
        """Ends a phase, and open phases inside it."""
        while name in self._open:
            getattr(ai.pipeline, self._open.pop()).stop()

    def set_counters(self, epoch: int | None = None, step: int | None = None) -> None:
        progress = auto.progress()
        if self._installed and progress is not None:
            progress.set_counters(epoch, step)

    def _set_external(self, external: bool) -> None:
        progress: Any = auto.progress()
        if progress is not None:
            progress.external = external

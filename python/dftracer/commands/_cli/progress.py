"""The progress bar of long-running commands."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from dftracer._format import duration, size
from dftracer.commands._cli.terminal import is_terminal, width


class Progress:
    """A progress bar on stderr; nothing if stderr is not a terminal."""

    _EVERY = 0.1  # seconds
    _AFTER = 0.5  # short tasks show no bar

    def __init__(self, label: str, total: int) -> None:
        self._label = label
        self._total = total  # bytes
        self._done = 0
        self._shown = False
        self._on = is_terminal(sys.stderr)
        self._begin = time.monotonic()
        self._next = self._begin + self._AFTER

    @classmethod
    def of_files(cls, traces: Sequence[Path], label: str = "reading", passes: int = 1) -> Progress:
        """For work that reads these files `passes` times."""
        return cls(label, passes * sum(path.stat().st_size for path in traces if path.exists()))

    @property
    def callback(self) -> Callable[[int], None] | None:
        """For work that reports its progress; None if no bar would be shown."""
        return self.reach if self._on else None

    def advance(self, amount: int) -> None:
        self.reach(self._done + amount)

    def reach(self, done: int) -> None:
        self._done = done
        if not self._on or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + self._EVERY
        self._show()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()

    def _show(self) -> None:
        share = min(1.0, self._done / self._total) if self._total > 0 else 0.0
        facts = f" {share:4.0%}  {size(self._done)} of {size(self._total)}"
        passed = time.monotonic() - self._begin
        if share > 0.02:
            facts += f", {duration(1e9 * (passed / share - passed))} left"
        room = min(40, width(sys.stderr) - len(self._label) - len(facts) - 4)
        bar = ""
        if room >= 10:
            full = int(room * share)
            bar = " " + "█" * full + "░" * (room - full)
        sys.stderr.write(f"\r\033[K{self._label}{bar}{facts}")
        sys.stderr.flush()
        self._shown = True

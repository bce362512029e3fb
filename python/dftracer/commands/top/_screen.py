"""A full-screen terminal with single-key input. No curses: it needs a terminfo entry, which
containers often lack."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
import time
import tty
from types import FrameType
from typing import Any

_ENTER = "\033[?1049h\033[?25l"  # alternate screen, hidden cursor
_LEAVE = "\033[?25h\033[?1049l"


class Screen:
    """Owns the terminal inside its block; restores it afterwards and while we are stopped."""

    def __init__(self) -> None:
        self._in = sys.stdin.fileno()
        self._before: Any = None
        self._wake = os.pipe()
        for end in self._wake:
            os.set_blocking(end, False)
        self._old: dict[int, Any] = {}

    def __enter__(self) -> Screen:
        for number, handler in (
            (signal.SIGWINCH, self._wakes),
            (signal.SIGCONT, self._continues),
            (signal.SIGTSTP, self._stops),
            (signal.SIGTERM, self._ends),
            (signal.SIGHUP, self._ends),
        ):
            self._old[number] = signal.signal(number, handler)
        self._take()
        return self

    def __exit__(self, *_: object) -> None:
        self._give_back()
        for number, handler in self._old.items():
            signal.signal(number, handler)
        for end in self._wake:
            os.close(end)

    def size(self) -> tuple[int, int]:
        try:
            columns, rows = os.get_terminal_size(sys.stdout.fileno())
        except OSError:
            return 80, 24
        return max(columns, 20), max(rows, 5)

    def wait(self, seconds: float) -> str | None:
        """A key; "" if the screen must be redrawn; None after the time."""
        end = time.monotonic() + seconds
        while True:
            left = end - time.monotonic()
            if left <= 0:
                return None
            ready, _, _ = select.select([self._in, self._wake[0]], [], [], left)
            if self._wake[0] in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake[0], 64)
                return ""
            if self._in in ready:
                # An arrow key sends several bytes, none of which is a key of ours.
                keys = os.read(self._in, 64)
                return keys.decode(errors="replace") if keys else "q"

    def draw(self, lines: list[str]) -> None:
        # Each line clears to its end, the last one to the end of the screen: no flicker.
        text = "\033[H" + "\033[K\n".join(lines) + "\033[K\033[J"
        sys.stdout.write(text)
        sys.stdout.flush()

    def _take(self) -> None:
        self._before = termios.tcgetattr(self._in)
        tty.setcbreak(self._in)
        sys.stdout.write(_ENTER)
        sys.stdout.flush()

    def _give_back(self) -> None:
        sys.stdout.write(_LEAVE)
        sys.stdout.flush()
        termios.tcsetattr(self._in, termios.TCSADRAIN, self._before)

    def _wakes(self, number: int, frame: FrameType | None) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self._wake[1], b"x")

    def _stops(self, number: int, frame: FrameType | None) -> None:
        self._give_back()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)

    def _continues(self, number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTSTP, self._stops)
        self._take()
        self._wakes(number, frame)

    def _ends(self, number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

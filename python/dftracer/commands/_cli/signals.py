"""Ctrl-C, SIGTERM and SIGHUP end a command quietly, and nothing of it stays behind."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

from dftracer import _cleanup

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ended(KeyboardInterrupt):
    """A signal ends the command; a KeyboardInterrupt, so that no code takes it for an error."""


class Signals:
    """While a command works, a signal raises Ended in the main thread. Afterwards it does nothing,
    because the command is already ending."""

    def __init__(self) -> None:
        self.number = 0  # of the signal received
        self._over = False
        self._before: dict[int, Any] = {}
        self._hooks = (sys.unraisablehook, threading.excepthook)

    def install(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        for number in _ENDING:
            before = signal.getsignal(number)
            # Under nohup and in background jobs they are ignored, and stay so.
            if before in (signal.SIG_DFL, signal.default_int_handler):
                self._before[number] = before
                signal.signal(number, self._raise)

    def restore(self) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        sys.unraisablehook, threading.excepthook = self._hooks

    def _raise(self, number: int, _: FrameType | None) -> None:
        if self._over:
            return
        self.number = number
        # An exception in a destructor cannot propagate and would be printed.
        sys.unraisablehook = self._again
        threading.excepthook = lambda _: None
        if _cleanup.Gate.depth > 0:
            _cleanup.Gate.pending = Ended()
            return
        raise Ended

    def _again(self, lost: sys.UnraisableHookArgs) -> None:
        """A destructor has swallowed the exception: send the signal again."""
        if isinstance(lost.exc_value, Ended) and not self._over:
            resend = threading.Timer(0.001, os.kill, (os.getpid(), self.number))
            resend.daemon = True
            resend.start()

    def finish(self) -> None:
        """Ignores further signals and removes what the work left behind."""
        while not self._over:
            with contextlib.suppress(Ended):
                self._over = True
        _cleanup.Gate.pending = None
        _cleanup.sweep()

    def leave(self, code: int) -> int:
        """Ends the command after a signal: 130 after Ctrl-C, else killed by the signal."""
        if self.number != signal.SIGINT:
            signal.signal(self.number, signal.SIG_DFL)
            os.kill(os.getpid(), self.number)
        for thread in threading.enumerate():
            if thread.name == _cleanup.LEFT_ALONE and thread.ident is not None:
                thread.join(1)
                if (
                    thread.is_alive()
                ):  # a statement that did not stop: finalizing Python would crash
                    os._exit(code)
        return code

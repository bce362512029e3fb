"""A headless Chromium, driven over a pipe by the DevTools protocol; that needs no library."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from support.limits import HANG

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-dev-shm-usage",
    "--password-store=basic",
    "--window-size=1280,800",
)

GONE = ("Inspected target navigated or closed", "Execution context was destroyed.")


def find() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Gone(Exception):
    """The document that was asked went before it answered."""


class Chromium:
    """One page. `evaluate` gives the value of an expression, a promise's included."""

    def __init__(self, profile: Path, *flags: str) -> None:
        program = find()
        assert program is not None
        ours, theirs = os.pipe(), os.pipe()
        # The protocol wants commands at descriptor 3 and answers at 4.
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 50) for fd in (ours[0], theirs[1])]
        place = f"import os, sys; os.dup2({high[0]}, 3); os.dup2({high[1]}, 4); "
        place += "os.execv(sys.argv[1], sys.argv[1:])"
        words = [program, *FLAGS, *flags, f"--user-data-dir={profile}", "--remote-debugging-pipe"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", place, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=high,
            start_new_session=True,
        )
        for fd in (ours[0], theirs[1], *high):
            os.close(fd)
        self._to, self._from = ours[1], theirs[0]
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self._urls: dict[str, str] = {}
        self._documents: set[str] = set()
        self.console: list[str] = []
        self.requests: list[str] = []
        self.blocked: set[str] = set()  # by the page's policy, before they went out
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Chromium:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Its helpers are in its session: all of them go, even if it hangs.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, 9)
        self._process.wait()
        os.close(self._to)
        os.close(self._from)

    def call(self, method: str, *, seconds: float = HANG, **params: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + seconds
        while True:
            got = self._receive(end, method)
            if got.get("id") == message["id"]:
                if got.get("error", {}).get("message") in GONE:
                    raise Gone(f"{method}: {got['error']}")
                assert "error" not in got, f"{method}: {got['error']}"
                result: dict[str, Any] = got["result"]
                return result
            self._note(got)

    def _receive(self, end: float, method: str) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            left = end - time.monotonic()
            assert left > 0, f"{method}: no answer"
            if select.select([self._from], [], [], left)[0]:
                piece = os.read(self._from, 1 << 20)
                assert piece, f"{method}: Chromium has ended"
                self._buffer += piece
        text, _, self._buffer = self._buffer.partition(b"\0")
        got: dict[str, Any] = json.loads(text)
        return got

    def _note(self, message: dict[str, Any]) -> None:
        params = message.get("params", {})
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
            self._urls[params["requestId"]] = params["request"]["url"]
        elif message.get("method") == "Page.frameNavigated":
            self._documents.add(params["frame"]["loaderId"])
        elif message.get("method") == "Network.loadingFailed" and params.get("blockedReason"):
            self.blocked.add(self._urls.get(params["requestId"], ""))
        elif message.get("method") == "Runtime.consoleAPICalled":
            words = [str(one.get("value", one.get("description"))) for one in params["args"]]
            self.console.append(" ".join(words))
        elif message.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
            self.console.append(json.dumps(params))

    def go(self, address: str, seconds: float = HANG) -> None:
        """Back when the new document is there: the answer to the command may come before it."""
        document = self.call("Page.navigate", url=address).get("loaderId")
        end = time.monotonic() + seconds
        while document is not None and document not in self._documents:
            self._note(self._receive(end, address))

    def evaluate(self, expression: str) -> Any:
        got = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in got, got["exceptionDetails"]
        return got["result"].get("value")

    def wait_for(self, expression: str, seconds: float = HANG) -> Any:
        """The first value of the expression that is true, in whichever document has it."""
        end = time.monotonic() + seconds
        while True:
            try:
                value = self.evaluate(expression)
                if value:
                    return value
            except Gone as gone:
                value = gone
            assert time.monotonic() < end, f"{expression}: {value!r}; console: {self.console[-20:]}"
            time.sleep(0.2)

    def screenshot(self) -> bytes:
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

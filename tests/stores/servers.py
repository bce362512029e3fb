"""Stores on this machine: moto's S3, one that turns requests away, Hugging Face and Google."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

CONTENT = bytes(range(256)) * 400  # 102,400 bytes


@contextlib.contextmanager
def s3() -> Iterator[str]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None: ...

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def content(self, **headers: str) -> None:
        """The whole of CONTENT, or the range that was asked for."""
        asked = self.headers.get("Range", "")
        if not asked.startswith("bytes="):
            return self.answer(200, CONTENT, **headers)
        first, last = asked[6:].split("-")
        begin, end = int(first), min(int(last or len(CONTENT) - 1), len(CONTENT) - 1)
        where = f"bytes {begin}-{end}/{len(CONTENT)}"
        return self.answer(206, CONTENT[begin : end + 1], Content_Range=where, **headers)


class _Busy(_Handler):
    """S3 that answers 503 to the first two requests for each object."""

    seen: dict[str, int]

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        self.seen[path] = self.seen.get(path, 0) + 1
        if self.seen[path] <= 2:
            self.answer(503, b"<Error><Code>SlowDown</Code></Error>")
        else:
            self.content()


class _Hub(_Handler):
    """Hugging Face: a file, behind a redirection with a signature in its address."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        about = {"X_Repo_Commit": "c" * 40, "ETag": '"feed"'}
        if path.startswith("/cdn/"):
            self.content()
        elif path.endswith("/data.bin"):
            # Another host: the client does not follow it to learn about the file.
            port = self.headers["Host"].rpartition(":")[2]
            place = f"http://localhost:{port}/cdn/data.bin?X-Amz-Signature=SIGNED-BY-THE-HUB"
            self.answer(302, Location=place, X_Linked_Etag='"feed"',
                        X_Linked_Size=str(len(CONTENT)), **about)  # fmt: skip
        else:
            self.answer(404, b"{}")


class _Google(_Handler):
    """Google Cloud Storage, as far as gcsfs asks."""

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        path = unquote(parts.path)
        item = {"name": "a/x", "bucket": "data", "size": str(len(CONTENT)), "generation": "1",
                "kind": "storage#object", "storageClass": "STANDARD"}  # fmt: skip
        if parse_qs(parts.query).get("alt") == ["media"] or path.startswith("/download/"):
            self.content()
        elif path.endswith("/b/data/o/a/x"):
            self.answer(200, json.dumps(item).encode(), Content_Type="application/json")
        else:
            self.answer(404, b'{"error": {"code": 404, "message": "no"}}')


@contextlib.contextmanager
def _serving(kind: type[_Handler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def busy() -> contextlib.AbstractContextManager[str]:
    return _serving(type("_Busy", (_Busy,), {"seen": {}}))


def hub() -> contextlib.AbstractContextManager[str]:
    return _serving(_Hub)


def google() -> contextlib.AbstractContextManager[str]:
    return _serving(_Google)


def plain() -> contextlib.AbstractContextManager[str]:
    return _serving(type("_Plain", (_Handler,), {"do_GET": _Handler.content,
                                                 "do_HEAD": _Handler.content}))  # fmt: skip

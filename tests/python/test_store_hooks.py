"""Hooks into libraries of object stores, with a stand-in for botocore: what `make test` can do
without these packages. tests/stores has the packages themselves."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from support import traces
from support.command import dftracer

STAND_IN = {
    "botocore/__init__.py": "",
    "botocore/endpoint.py": """
        class Answer:
            def __init__(self, status): self.status_code = status
        class Endpoint:
            def __init__(self, statuses): self.statuses = statuses
            def _send(self, request): return Answer(self.statuses.pop(0))
    """,
    "botocore/response.py": """
        import io
        class StreamingBody(io.IOBase):
            def __init__(self, data):
                self._raw_stream, self._content_length = io.BytesIO(data), len(data)
                self._amount_read = 0
            def read(self, amt=None):
                found = self._raw_stream.read(amt)
                self._amount_read += len(found)
                return found
            def readinto(self, b):
                found = self._raw_stream.readinto(b)
                self._amount_read += found
                return found
            def close(self): self._raw_stream.close()
            def __exit__(self, *error): self.close()
    """,
    "botocore/client.py": """
        from types import SimpleNamespace
        from botocore.endpoint import Endpoint
        from botocore.response import StreamingBody
        class Refused(Exception):
            def __init__(self):
                super().__init__("https://x/?X-Amz-Signature=SECRET")
                self.response = {"ResponseMetadata": {"HTTPStatusCode": 403}}
        class BaseClient:
            def __init__(self, service="s3", statuses=(200,)):
                self._service_model = SimpleNamespace(service_name=service)
                self.endpoint = Endpoint(list(statuses))
            def _make_api_call(self, operation_name, api_params):
                headers = {"Authorization": "SECRET", "Content-Length": "9"}
                method = "PUT" if operation_name == "PutObject" else "GET"
                asked = SimpleNamespace(method=method, headers=headers, url="https://x/?sig=SECRET")
                while self.endpoint.statuses and self.endpoint._send(asked).status_code == 503:
                    pass
                if api_params["Key"] == "forbidden":
                    raise Refused()
                if operation_name != "GetObject":
                    return {"ResponseMetadata": {"HTTPStatusCode": 200}}
                data = b"x" * 1000
                return {"Body": StreamingBody(data), "ContentLength": 1000,
                        "ResponseMetadata": {"HTTPStatusCode": 200}}
    """,
}
READ = """
    from botocore.client import BaseClient
    client = BaseClient()
    client._make_api_call("GetObject", {"Bucket": "b", "Key": "k/1"})["Body"].read()
"""


def run(tmp_path: Path, program: str, *options: str) -> list[traces.Record]:
    """The events of the category STORE of a program that finds the stand-in."""
    for name, text in STAND_IN.items():
        path = tmp_path / "library" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    (tmp_path / "program.py").write_text(textwrap.dedent(program), encoding="utf-8")
    done = dftracer(
        *("run", "-q", "-o", tmp_path / "traces", *options),
        *("--", sys.executable, tmp_path / "program.py"),
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "library")},
    )
    assert done.stderr == ""
    events = [
        event
        for trace in traces.read_directory(tmp_path / "traces", open_parents=True)
        for event in trace.events
        if event["cat"] == "STORE"
    ]
    for path in (tmp_path / "traces").iterdir():
        assert b"SECRET" not in path.read_bytes()
    assert "SECRET" not in str(events)
    return sorted(events, key=lambda event: event["ts"])


def told(events: list[traces.Record], *keys: str) -> list[tuple[Any, ...]]:
    return [(e["name"], *(e["args"].get(key) for key in keys)) for e in events]


def test_operations_bodies_errors_and_retries(tmp_path: Path) -> None:
    events = run(
        tmp_path,
        """
        from botocore.client import BaseClient, Refused
        from dftracer.python import ai

        client = BaseClient(statuses=(503, 503, 200))
        ai.update(step=7)
        body = client._make_api_call("GetObject", {"Bucket": "b", "Key": "k/1"})["Body"]
        assert len(body.read(400)) == 400
        target = bytearray(100)
        assert body.readinto(target) == 100
        body.close()
        BaseClient()._make_api_call("PutObject", {"Bucket": "b", "Key": "k/2"})
        try:
            BaseClient()._make_api_call("HeadObject", {"Bucket": "b", "Key": "forbidden"})
        except Refused:
            pass
        BaseClient("dynamodb")._make_api_call("GetItem", {"Key": "k"})
        """,
    )
    assert told(events, "key", "size", "bytes", "status", "retries", "throttled", "error") == [
        ("GetObject", "k/1", 1000, 500, 200, 2, 2, None),
        ("PutObject", "k/2", 9, 9, 200, 0, None, None),
        ("HeadObject", "forbidden", None, None, 403, 0, None, "Refused"),
    ]
    assert {event["args"]["step"] for event in events} == {7}
    assert events[0]["args"]["line"] == f"{tmp_path / 'program.py'}:7"


def test_a_body_that_is_read_later_is_beside_the_regions_of_the_program(tmp_path: Path) -> None:
    (get,) = run(
        tmp_path,
        """
        from botocore.client import BaseClient
        from dftracer.python import dft_fn

        with dft_fn("app", "asks"):
            body = BaseClient()._make_api_call("GetObject", {"Bucket": "b", "Key": "k"})["Body"]
            with dft_fn("app", "works"):
                body.read(10)
        with dft_fn("app", "goes on"):
            body.read()
        """,
    )
    (trace,) = traces.read_directory(tmp_path / "traces", open_parents=True)
    asks, works, goes_on = (trace.one(name) for name in ("asks", "works", "goes on"))
    assert get["args"]["p_idx"] == works["args"]["p_idx"] == asks["id"]
    assert goes_on["args"]["p_idx"] == -1
    assert get["args"]["bytes"] == 1000
    assert get["ts"] + get["dur"] >= goes_on["ts"]
    assert (get["tid"], goes_on["tid"]) == (get["pid"] + (1 << 22), get["pid"])


@pytest.mark.parametrize(
    "program",
    [
        READ,
        "import importlib.util\nassert importlib.util.find_spec('botocore')\n"
        + textwrap.dedent(READ),
        "import sys\nkept = sys.path[:]\n"
        "sys.path[:] = [p for p in kept if not p.endswith(('library', 'site-packages'))]\n"
        "try:\n    import botocore.client\n"
        "except ImportError:\n    sys.path[:] = kept\n" + textwrap.dedent(READ),
        "import threading\ndef go():\n" + textwrap.indent(textwrap.dedent(READ), "    ")
        + "\nthread = threading.Thread(target=go)\nthread.start()\nthread.join()\n",
    ],
    ids=["imported", "looked for first", "not found at first", "in a thread"],
)  # fmt: skip
def test_a_library_is_instrumented_however_it_is_imported(tmp_path: Path, program: str) -> None:
    events = run(tmp_path, program)
    assert told(events, "bucket", "key", "bytes") == [("GetObject", "b", "k/1", 1000)]


def test_no_stores(tmp_path: Path) -> None:
    assert run(tmp_path, READ, "--no-stores") == []


def test_a_program_without_such_a_library_imports_nothing(tmp_path: Path) -> None:
    events = run(
        tmp_path,
        """
        import sys
        names = [type(finder).__name__ for finder in sys.meta_path]
        assert "_Finder" in names, names
        ours = sorted(name for name in sys.modules if name.startswith("dftracer"))
        assert ours == ["dftracer", "dftracer._otel", "dftracer._stores"], ours
        assert "typing" not in sys.modules
        import json
        assert json.__spec__.loader is json.__loader__
        """,
    )
    assert events == []


def test_a_library_that_is_not_as_expected_works_untraced(tmp_path: Path) -> None:
    (tmp_path / "library" / "fsspec").mkdir(parents=True)
    (tmp_path / "library" / "fsspec" / "__init__.py").write_text("")
    (tmp_path / "library" / "fsspec" / "spec.py").write_text("VALUE = 1\n")
    (tmp_path / "program.py").write_text("import fsspec.spec\nprint(fsspec.spec.VALUE)\n")
    done = dftracer(
        *("run", "-q", "-o", tmp_path / "traces", "--", sys.executable, tmp_path / "program.py"),
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "library")},
    )
    assert done.stdout == "1\n"
    assert done.stderr.startswith("dftracer: fsspec.spec is not instrumented: AttributeError")


def test_requests_of_any_client(tmp_path: Path) -> None:
    events = run(
        tmp_path,
        """
        from dftracer.python import stores

        with stores.request("GET", "http", host="u:SECRET@h:80", key="a/b?sig=SECRET") as it:
            it.first_byte()
            it.delivered(10)
            it.delivered(5)
            it.status = 200
        try:
            with stores.request("GetObject", "s3", "b", "k", offset=5, size=6):
                raise OSError("SECRET")
        except OSError:
            pass
        """,
    )
    assert told(events, "host", "bucket", "key", "offset", "size", "bytes", "status", "error") == [
        ("GET", "h:80", None, "a/b", None, None, 15, 200, None),
        ("GetObject", None, "b", "k", 5, 6, None, None, "OSError"),
    ]

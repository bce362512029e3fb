"""Each library of object stores: its requests in the trace, with the bytes that were read."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.stores import servers
from tests.stores.conftest import KEY, PROGRAMS, Found, Run

WHOLE = len(servers.CONTENT)
SECRET = re.compile(rb"NEVERINATRACE|SIGNED-BY-THE-HUB|Signature=|X-Amz-|Bearer |AWS4-HMAC|alt=")


def line(text: str) -> int:
    """The number of the line of clients.py that contains this."""
    lines = (PROGRAMS / "clients.py").read_text(encoding="utf-8").splitlines()
    (found,) = (number for number, each in enumerate(lines, 1) if text in each)
    return found


def client(run: Run, case: str, endpoint: str, tmp_path: Path) -> Found:
    found = run("clients.py", case, endpoint, tmp_path)
    assert_no_secrets(found)
    for event in found.events:
        assert event["args"]["line"].startswith(f"{PROGRAMS / 'clients.py'}:"), event
        assert event["args"].get("ttfb", 0) * 1000 <= (event["dur"] + 1) * 1000, event
    return found


def assert_no_secrets(found: Found, *secrets: str) -> None:
    """In no byte of any file that the run has left."""
    files = [path for path in found.directory.rglob("*") if path.is_file()]
    assert files
    for path in files:
        data = path.read_bytes()
        text = gzip.decompress(data) if path.suffix == ".gz" else data
        assert SECRET.search(text) is None, SECRET.findall(text)
        assert not [secret for secret in secrets if secret.encode() in text]


def test_boto3(run: Run, s3: str, tmp_path: Path) -> None:
    found = client(run, "boto3", s3, tmp_path)
    assert found.told("key", "offset", "size", "bytes", "status", "error") == [
        ("PutObject", "up.bin", None, 4321, 4321, 200, None),
        ("HeadObject", KEY, None, None, None, 200, None),
        ("GetObject", KEY, None, WHOLE, WHOLE, 200, None),
        ("GetObject", KEY, 100, 1024, 1024, 206, None),
        ("GetObject", KEY, None, WHOLE, 1000, 200, None),
        ("GetObject", KEY, None, WHOLE, WHOLE, 200, None),
        ("GetObject", KEY, None, WHOLE, WHOLE, 200, None),
        ("ListObjectsV2", "train/", None, None, None, 200, None),
        ("GetObject", "none", None, None, None, 404, "NoSuchKey"),
        ("DeleteObject", "up.bin", None, None, None, 204, None),
    ]
    for event in found.requests:
        args = event["args"]
        assert (args["store"], args["bucket"], args["retries"]) == ("s3", "data", 0)
        assert args["ttfb"] > 0
    asked = {event["args"]["line"].rpartition(":")[2] for event in found.requests}
    assert str(line('Range="bytes=100-1123"')) in asked
    # The connection's own calls are inside a request, which has returned when its body is read.
    (trace,) = found.traces
    assert not {e["id"] for e in trace.events if e["args"]["p_idx"] == found.requests[2]["id"]} & {
        e["id"] for e in found.requests
    }


def test_a_file_that_boto3_downloads_in_threads_has_the_line_that_asked(
    run: Run, s3: str, tmp_path: Path
) -> None:
    found = client(run, "transfer", s3, tmp_path)
    told = sorted(found.told("offset", "bytes"), key=str)
    assert told == [("GetObject", 0, 51_200), ("GetObject", 51_200, 51_200),
                    ("HeadObject", None, None)]  # fmt: skip
    asked = {event["args"]["line"] for event in found.requests}
    assert asked == {f"{PROGRAMS / 'clients.py'}:{line('s3.download_fileobj(')}"}
    assert len({event["tid"] for event in found.requests}) == 3


def test_bodies_that_nobody_reads_to_the_end(run: Run, s3: str, tmp_path: Path) -> None:
    found = client(run, "dropped", s3, tmp_path)
    assert found.told("size", "bytes") == [("GetObject", WHOLE, 0), ("GetObject", WHOLE, 10)]


def test_signed_addresses_leave_no_signature(run: Run, s3: str, tmp_path: Path) -> None:
    found = client(run, "presigned", s3, tmp_path)
    query = parse_qs(urlsplit(found.stdout.strip()).query)
    signed = [value for values in query.values() for value in values]
    assert max(map(len, signed)) > 20
    assert_no_secrets(found, *(value for value in signed if len(value) > 10))
    assert found.told("key", "bytes") == [
        ("HEAD", f"data/{KEY}", None),
        ("GET", f"data/{KEY}", WHOLE),
    ]


def test_requests_of_aiobotocore_that_overlap_have_lanes(run: Run, s3: str, tmp_path: Path) -> None:
    pytest.importorskip("aiobotocore")
    found = client(run, "aiobotocore", s3, tmp_path)
    assert sorted(found.told("offset", "size", "bytes", "status")) == [
        ("GetObject", 100 * number, 100, 100, 206) for number in range(4)
    ]
    by_lane: dict[int, list[tuple[int, int]]] = {}
    for event in found.requests:
        by_lane.setdefault(event["tid"], []).append((event["ts"], event["ts"] + event["dur"]))
    for spans in by_lane.values():
        assert all(end <= start for (_, end), (start, _) in zip(spans, spans[1:]))
    assert {e["tid"] % (1 << 22) for e in found.requests} == {e["pid"] for e in found.requests}


def test_s3fs_and_the_cache_of_a_file(run: Run, s3: str, tmp_path: Path) -> None:
    pytest.importorskip("s3fs")
    found = client(run, "s3fs", s3, tmp_path)
    gets = [told for told in found.told("offset", "size", "bytes") if told[0] == "GetObject"]
    assert gets == [
        ("GetObject", 0, 5010, 5010),
        ("GetObject", 50_000, 5100, 5100),
        ("GetObject", 7, 1000, 1000),
    ]
    reads = [
        tuple(e["args"].get(key) for key in ("offset", "size", "bytes", "cached"))
        for e in found.layer("file")
    ]
    assert reads == [(0, 10, 10, "miss"), (10, 20, 20, "hit"), (50_000, 100, 100, "miss")]
    assert [e["args"]["bytes"] for e in found.layer("cache")] == [5010, 5100]
    assert {"cat_file", "pipe_file", "ls"} <= {e["name"] for e in found.layer("call")}
    # What waits is on the thread of the program, requests are on that of the event loop.
    threads = {e["tid"] % (1 << 22) for e in found.requests}
    assert len(threads) == 1
    assert not threads & {e["tid"] % (1 << 22) for e in found.layer("file")}
    (asked,) = {e["args"]["line"] for e in found.requests if e["args"].get("offset") == 50_000}
    assert asked.endswith(f":{line('check(file.read(100), CONTENT[50_000')}")


def test_local_copies_of_fsspec(run: Run, s3: str, tmp_path: Path) -> None:
    pytest.importorskip("s3fs")
    found = client(run, "copies", s3, tmp_path)
    assert [e["args"]["cached"] for e in found.layer("copy")] == ["miss", "hit"]
    assert [told[1] for told in found.told("bytes") if told[0] == "GetObject"] == [WHOLE]


def test_smart_open(run: Run, s3: str, tmp_path: Path) -> None:
    pytest.importorskip("smart_open")
    found = client(run, "smart_open", s3, tmp_path)
    assert found.told("key", "bytes") == [("GetObject", KEY, WHOLE)]


def test_obstore(run: Run, s3: str, tmp_path: Path) -> None:
    pytest.importorskip("obstore")
    found = client(run, "obstore", s3, tmp_path)
    assert found.told("key", "offset", "bytes") == [
        ("PutObject", "up.bin", None, 4321),
        ("GetObject", KEY, None, WHOLE),
        ("GetObject", KEY, 100, 1024),
        ("GetObjectRanges", KEY, None, 30),
        ("GetObject", KEY, None, WHOLE),
        ("HeadObject", KEY, None, None),
        ("GetObject", KEY, None, WHOLE),
    ]


def test_pyarrow_shows_what_passes_through_python(run: Run, s3: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow.fs")
    found = client(run, "pyarrow", s3, tmp_path)
    assert found.told("bucket", "key") == [
        ("OpenInput", "data", KEY),
        ("GetFileInfo", "data", KEY),
        ("GetFileInfo", "data", "train"),
    ]


def test_s3torchconnector(run: Run, s3: str, tmp_path: Path) -> None:
    pytest.importorskip("s3torchconnector")
    found = client(run, "s3torchconnector", s3, tmp_path)
    assert found.told("key", "bytes") == [
        ("PutObject", "up.bin", 4321),
        ("HeadObject", KEY, None),
        ("GetObject", KEY, WHOLE),
        ("DeleteObject", "up.bin", None),
    ]


def test_a_store_that_is_busy_twice(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("boto3")
    with servers.busy() as address:
        found = client(run, "busy", address, tmp_path)
    assert found.told("status", "retries", "throttled", "bytes") == [
        ("GetObject", 200, 2, 2, WHOLE)
    ]


def test_an_address_where_nobody_answers(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("boto3")
    with servers.plain() as address:
        pass  # closed again: nobody has this port
    found = client(run, "refused", address, tmp_path)
    error = found.stdout.strip()
    assert found.told("status", "retries", "error") == [("HeadObject", None, 1, error)]


def test_huggingface_hub(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    with servers.hub() as address:
        found = client(run, "huggingface", address, tmp_path)
    told = [each for each in found.told("store", "key", "status", "bytes") if "data.bin" in each[2]]
    path = "someone/model/resolve/main/data.bin"
    assert told == [
        ("HEAD", "hf", path, 302, None),
        ("GET", "hf", "cdn/data.bin", 200, WHOLE),
    ]


def test_gcsfs(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("gcsfs")
    with servers.google() as address:
        found = client(run, "gcsfs", address, tmp_path)
    gets = [each for each in found.told("store", "bucket", "key", "offset", "bytes")
            if each[0] == "GetObject"]  # fmt: skip
    assert gets == [
        ("GetObject", "gs", "data", "a/x", None, WHOLE),
        ("GetObject", "gs", "data", "a/x", 10, 100),
    ]


def test_http_of_fsspec(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    pytest.importorskip("aiohttp")
    with servers.plain() as address:
        found = client(run, "http", address, tmp_path)
    assert [each for each in found.told("store", "key", "offset", "bytes") if each[0] == "GET"] == [
        ("GET", "http", "files/x.bin", 0, 5010)
    ]
    assert [e["args"]["cached"] for e in found.layer("file")] == ["miss", "hit"]

"""The reader on which all these tests stand refuses what is wrong."""

from __future__ import annotations

import gzip
import re
import zlib
from pathlib import Path

import pytest
from support import traces
from support.api_driver import Command, play

WORK: list[Command] = [
    ("init", "t.pfw", None, None),
    ("begin", 0, "outer", "app"),
    ("begin", 1, "inner", "app"),
    ("end", 1),
    ("end", 0),
    ("flush",),
    ("fini",),
]

# A pattern in the plain text, what is put in its place, and what the reader must say.
WRONG = {
    "no bracket": (rb"\A\[\n", b"", "first line"),
    "half line": (rb"\}\}\n\Z", b"}", "last line"),
    "blank line": (rb"\}\}\n", b"}}\n\n", ""),
    "comma": (rb"\}\}\n", b"}},\n", ""),
    "closing bracket": (rb"\}\}\n\Z", b"}}\n]\n", "Expecting value"),
    "nan": (rb'"dur":\d+', b'"dur":NaN', "NaN"),
    "float time": (rb'"ts":(\d+)', rb'"ts":\1.5', "ts"),
    "negative": (rb'"dur":(\d+)', rb'"dur":-1', "dur"),
    "text time": (rb'"ts":(\d+)', rb'"ts":"\1"', "ts"),
    "numeric phase": (rb'"ph":"X"', b'"ph":1', "ph"),
    "no thread": (rb'"tid":\d+', b'"tid":0', "tid"),
    "twice": (rb'"level":2', b'"level":2,"level":2', "twice"),
    "id twice": (rb'"id":8', b'"id":7', "twice"),
    "no such parent": (rb'"p_idx":7', b'"p_idx":700', "parent"),
    "level": (rb'"level":2', b'"level":3', "level"),
    "level of a root": (rb'"p_idx":7,"level":2', b'"p_idx":-1,"level":2', "level"),
    "order of keys": (rb'"cat":"app",("pid":\d+)', rb'\1,"cat":"app"', "keys"),
    "order of args": (rb'"p_idx":7,"level":2', b'"level":2,"p_idx":7', "args begin"),
    "not utf-8": (rb'"inner"', b'"\xff"', ""),
    "control character": (rb'"inner"', b'"a\tb"', ""),
    "unknown host": (rb'"hhash":"[0-9a-f]{16}","p_idx":7', b'"hhash":"0","p_idx":7', "hhash"),
    "wrong hash": (rb'("name":")DEFAULT"', rb'\1OTHER"', "hash"),
    "no end": (rb'\{"id":\d+,"name":"end".*\n', b"", "ends with"),
}


@pytest.mark.parametrize("what", sorted(WRONG))
def test_wrong_text(tmp_path: Path, what: str) -> None:
    play(*WORK, cwd=tmp_path, env={"DFTRACER_TRACE_COMPRESSION": "0"})
    trace = traces.read_one(tmp_path)
    pattern, replacement, message = WRONG[what]
    text, count = re.subn(pattern, replacement, trace.path.read_bytes(), count=1)
    assert count == 1
    trace.path.write_bytes(text)
    with pytest.raises(traces.TraceError, match=message or None):
        traces.read_one(tmp_path)


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "t.pfw.gz").touch()
    with pytest.raises(traces.TraceError, match="empty"):
        traces.read_one(tmp_path)


def test_wrong_members(tmp_path: Path) -> None:
    play(*WORK, cwd=tmp_path)
    trace = traces.read_one(tmp_path)
    path = trace.path
    data = path.read_bytes()
    first, last = trace.members[0], trace.members[-1]

    def refused(changed: bytes, message: str) -> None:
        path.write_bytes(changed)
        with pytest.raises(traces.TraceError, match=message):
            traces.read_one(tmp_path)

    refused(data[:-1], "leaves the file")
    refused(data + b"\0", "no gzip header")
    refused(gzip.compress(zlib.decompress(data, 31)), "instead of FEXTRA")
    for at, message in ((16, "size"), (20, "header says")):
        changed = bytearray(data)
        changed[at] ^= 1
        refused(bytes(changed), message)
    broken = bytearray(data)
    broken[first.size - 6] ^= 1  # in the checksum of the first
    refused(bytes(broken), "incorrect data check")
    refused(data[: last.offset], "ends with")
    path.write_bytes(data)
    traces.read_one(tmp_path)


def test_a_spool_that_is_left(tmp_path: Path) -> None:
    play(*WORK, cwd=tmp_path)
    (tmp_path / ".t.pfw.spool").touch()
    with pytest.raises(traces.TraceError, match="spools"):
        traces.read_one(tmp_path)


def test_crossings_are_found() -> None:
    def span(ts: int, dur: int, tid: int = 1) -> traces.Record:
        return {"pid": 1, "tid": tid, "ts": ts, "dur": dur, "ph": "X"}

    assert traces.crossings([span(0, 10), span(2, 3), span(5, 5), span(10, 4), span(3, 9, 2)]) == []
    assert len(traces.crossings([span(0, 10), span(5, 10)])) == 1


def test_bytes_come_back() -> None:
    assert traces.decode("a\uefff\uef80é😀") == b"a\xff\x80" + "é😀".encode()

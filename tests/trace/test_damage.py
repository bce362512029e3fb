"""Damaged files: read as far as they go, nothing lost in silence, every trouble told apart."""

from __future__ import annotations

import gzip
import json
import random
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.members import member, pack

from dftracer import trace
from dftracer.commands._cli.main import main

LINE = (
    '{{"id":{0},"name":"n","cat":"c","pid":5,"tid":6,"ts":{0},"dur":1,"ph":"X","args":{{"k":{0}}}}}'
)


def line(number: int) -> bytes:
    return LINE.format(number).encode()


LINES = [line(number) for number in range(1, 301)]
MEMBERS = pack(LINES, 30)
MISCOUNTED = member(LINES[:5], count=9)
HALF = gzip.compress(b"\n".join(LINES[:100]) + b"\n")[:-9] + b"x"
PLAIN = b"[\n" + b"\n".join(LINES) + b"\n"


def troubles(path: Path) -> dict[str, int]:
    return trace.summarise_all([path]).damage.troubles


def events(path: Path) -> int:
    return trace.summarise_all([path]).events


def swapped(index: int, change: Callable[[bytearray], None]) -> bytes:
    parts = [bytearray(part) for part in MEMBERS]
    change(parts[index])
    return b"".join(parts)


def flip(at: float) -> Callable[[bytearray], None]:
    def change(data: bytearray) -> None:
        data[int(len(data) * at)] ^= 0xFF

    return change


CASES: dict[str, tuple[bytes, str, int, str]] = {
    "empty": (b"", ".pfw", 0, "empty_file"),
    "empty compressed": (b"", ".pfw.gz", 0, "empty_file"),
    "a stranger": (b"\x7fELF" + bytes(1000), ".pfw", 0, "no_records"),
    "words": (b"this is no trace\n" * 9, ".pfw", 0, "no_records"),
    "cut in a line": (PLAIN[:-30], ".pfw", 299, "cut_line"),
    "cut in a member": (b"".join(MEMBERS)[:-20], ".pfw.gz", 270, "cut_member"),
    "cut in a header": (b"".join(MEMBERS) + MEMBERS[0][:10], ".pfw.gz", 300, "cut_member"),
    "a byte of a member": (swapped(4, flip(0.6)), ".pfw.gz", 270, "bad_member"),
    "a byte of a checksum": (swapped(4, flip(0.97)), ".pfw.gz", 270, "bad_member"),
    "a member's magic": (swapped(4, flip(0)), ".pfw.gz", 270, "rubbish"),
    "a tail of zeros": (b"".join(MEMBERS) + bytes(4096), ".pfw.gz", 300, "rubbish"),
    "a wrong count": (b"".join(MEMBERS) + MISCOUNTED, ".pfw.gz", 305, "wrong_count"),
    "a broken line": (PLAIN.replace(line(7), b'{"id":7,"name"'), ".pfw", 299, "bad_line"),
    "NUL bytes": (PLAIN.replace(line(7), bytes(50)), ".pfw", 299, "bad_line"),
    "a bracket in front": (b"{" + PLAIN, ".pfw", 300, "bad_line"),
    "no object": (PLAIN.replace(line(7), b"[1,2,3]"), ".pfw", 299, "bad_line"),
    "another object": (PLAIN.replace(line(7), b'{"a":1}'), ".pfw", 299, "not_a_record"),
    "bad text": (PLAIN.replace(b'"name":"n"', b'"name":"\xff"', 1), ".pfw", 300, "bad_text"),
    "other gzip, cut": (gzip.compress(PLAIN)[:-200], ".pfw.gz", 1, "cut_member"),
    "other gzip, a byte": (HALF + gzip.compress(PLAIN), ".pfw.gz", 300, "bad_member"),
}


@pytest.mark.parametrize("name", CASES)
def test_each_damage_has_its_name(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, ending, count, kind = CASES[name]
    path = tmp_path / f"t{ending}"
    path.write_bytes(data)
    assert kind in troubles(path)
    assert events(path) >= count
    if not name.startswith("other gzip"):
        assert events(path) <= count + 29
    assert main(["validate", str(path)]) == 3
    text = capsys.readouterr().out
    assert f"{path}: damaged" in text
    assert main(["validate", "--json", str(path)]) == 3
    report = json.loads(capsys.readouterr().out)
    assert report["sound"] is False
    assert kind in {problem["kind"] for problem in report["problems"]}
    for verb in ("info", "stats"):
        assert main([verb, str(path)]) == 3


def test_the_place_of_a_broken_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.pfw"
    path.write_bytes(PLAIN.replace(line(7), b"oops"))
    assert main(["validate", str(path)]) == 3
    where = PLAIN.index(line(7))
    assert (
        f"{path}:8: not a JSON object (at byte {where}, 4 bytes, oops)" in capsys.readouterr().out
    )


def test_a_sound_file_is_sound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, data in (("t.pfw", PLAIN), ("u.pfw.gz", b"".join(MEMBERS))):
        (tmp_path / name).write_bytes(data)
    assert main(["validate", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "2 files, all sound; 600 events" in text


def test_a_missing_bracket_of_ours(tmp_path: Path) -> None:
    start = json.dumps(
        {"id": 1, "name": "start", "cat": "dftracer", "pid": 5, "tid": 5, "ts": 1, "dur": 0,
         "ph": "X", "args": {"run": "r", "proc": "p"}}
    )  # fmt: skip
    path = tmp_path / "t.pfw"
    path.write_bytes(start.encode() + b"\n" + PLAIN[2:])
    assert troubles(path) == {"no_bracket": 1}
    path.write_bytes(PLAIN[2:])  # of somebody else: as it should be
    assert troubles(path) == {}


def test_the_end_record_counts_what_is_there(tmp_path: Path) -> None:
    own = {"cat": "dftracer", "pid": 5, "tid": 6, "ts": 1, "dur": 0, "ph": "X"}
    start = json.dumps({"id": 1, "name": "start", **own, "args": {"run": "r", "proc": "p"}})
    path = tmp_path / "t.pfw"
    for said, found in ((301, {}), (400, {"wrong_total": 1})):
        end = json.dumps({"id": 2, "name": "end", **own, "args": {"num_events": said}})
        path.write_bytes(b"[\n" + start.encode() + b"\n" + PLAIN[2:] + end.encode() + b"\n")
        assert troubles(path) == found


def test_a_line_of_ten_megabytes(tmp_path: Path) -> None:
    long = line(999).replace(b'"k":', b'"s":"' + b"y" * 10_000_000 + b'","k":')
    text = PLAIN + long + b"\n" + line(1000) + b"\n"
    for name, data in (("a.pfw", text), ("b.pfw.gz", gzip.compress(text, 1))):
        path = tmp_path / name
        path.write_bytes(data)
        assert events(path) == 302
        assert troubles(path) == {}


def test_a_line_past_the_limit_is_stepped_over(tmp_path: Path) -> None:
    long = line(999).replace(b'"k":', b'"s":"' + b"y" * 70_000_000 + b'","k":')
    text = PLAIN + long + b"\n" + line(1000) + b"\n"
    for name, data in (("a.pfw", text), ("b.pfw.gz", gzip.compress(text, 1))):
        path = tmp_path / name
        path.write_bytes(data)
        assert events(path) == 301
        assert troubles(path) == {"long_line": 1}
        path.unlink()


def test_a_broken_header_does_not_swallow_what_follows(tmp_path: Path) -> None:
    """A byte more in front of the length of the header's own fields makes it thousands."""
    at = sum(map(len, MEMBERS[:7])) + 7
    data = b"".join(MEMBERS)
    path = tmp_path / "t.pfw.gz"
    path.write_bytes(data[:at] + b"\0" + data[at:])
    assert events(path) == 270
    assert troubles(path) == {"bad_member": 1}


# Random damage. What a damage cannot have touched must be there, and it may not go unnoticed.
EDITS = st.lists(
    st.tuples(
        st.sampled_from(["flip", "cut", "insert", "drop"]),
        st.floats(0, 1),
        st.binary(min_size=1, max_size=40),
    ),
    min_size=1,
    max_size=3,
)


def damaged(data: bytes, edits: list[tuple[str, float, bytes]]) -> bytes:
    out = bytearray(data)
    for what, where, junk in edits:
        at = int(where * max(len(out) - 1, 0))
        if what == "flip" and out:
            out[at] ^= junk[0] or 1
        elif what == "cut":
            del out[at:]
        elif what == "insert":
            out[at:at] = junk
        else:
            del out[at : at + len(junk)]
    return bytes(out)


def whole_members(data: bytes) -> int:
    """Events of the members that are still in the bytes as they were written."""
    return sum(30 for part in MEMBERS if part in data)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(edits=EDITS)
def test_random_damage_to_members(tmp_path: Path, edits: list[tuple[str, float, bytes]]) -> None:
    data = damaged(b"".join(MEMBERS), edits)
    path = tmp_path / "t.pfw.gz"
    path.write_bytes(data)
    summary = trace.summarise_all([path], threads=2)
    assert summary.events >= whole_members(data)
    assert summary.events <= 300 + 30 * len(edits)
    if data != b"".join(MEMBERS) and not summary.damage.damaged:
        # A cut between two members leaves a sound, shorter file; else damage must be told.
        assert data == b"".join(part for part in MEMBERS if part in data) or headers_only(data)


def headers_only(data: bytes) -> bool:
    """Flips in bytes of a gzip header that mean nothing (time, flags, system) harm nothing."""
    try:
        out = b""
        rest = data
        while rest:
            inflater = zlib.decompressobj(wbits=31)
            out += inflater.decompress(rest)
            if not inflater.eof:
                return False
            rest = inflater.unused_data
        return out == PLAIN
    except zlib.error:
        return False


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(edits=EDITS)
def test_random_damage_to_lines(tmp_path: Path, edits: list[tuple[str, float, bytes]]) -> None:
    data = damaged(PLAIN, edits)
    path = tmp_path / "t.pfw"
    path.write_bytes(data)
    found = data.split(b"\n")
    whole = sum(text in set(LINES) for text in found)
    summary = trace.summarise_all([path], threads=2)
    # Untouched lines are all there. Others are there, or told, but for blank lines and brackets.
    assert summary.events >= whole
    others = sum(text.strip(b" \t\r,[]") != b"" for text in found) - summary.records
    assert others <= sum(summary.damage.troubles.values())


def test_random_damage_to_a_stream_of_somebody_else(tmp_path: Path) -> None:
    random.seed(7)
    whole = gzip.compress(PLAIN, 6, mtime=0)
    path = tmp_path / "t.pfw.gz"
    for _ in range(200):
        data = bytearray(whole)
        data[random.randrange(10, len(data))] ^= 1 << random.randrange(8)
        path.write_bytes(data)
        summary = trace.summarise_all([path], threads=1)
        assert summary.damage.damaged


TORCH = (
    b'{"id":1,"name":"aten::mm","cat":"cpu_op","pid":5,"tid":6,"ts":7,"dur":1,"ph":"X",'
    b'"args":{"k":%s,"phase":"forward"}}\n'
)
CALL = (
    b'{"id":2,"name":"read","cat":"POSIX","pid":5,"tid":6,"ts":9,"dur":1,"ph":"X",'
    b'"args":{"hhash":"h","fhash":"%s","ret":3}}\n'
)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (CALL % b"f\xff\xfe", 3),
        (CALL % b"\\ud800", 0),
        (CALL.replace(b'"h"', b'"h\xff"') % b"f", 3),
        (TORCH % b'"\\ud800"', 0),
        (TORCH % b'"\\udc00\\ud83d\\ude00"', 0),
        (TORCH % b'{"deep":["\\ud83d",1]}', 0),
        ((TORCH % b"1").replace(b'"k"', b'"\\udfff"'), 0),
        ((TORCH % b"1").replace(b'"ts"', b'"more":"\\ud800","ts"'), 0),
        (TORCH % b'"\\\\ud800"', 0),
        (TORCH % b'"\\u0000"', 0),
        (TORCH % b"1e999", 0),
        (TORCH % (b"9" * 400), 0),
        (TORCH % b'"\xff"', 3),
    ],
)
def test_one_odd_text_does_not_end_query_and_report(
    tmp_path: Path, text: bytes, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "t.pfw"
    path.write_bytes(b"[\n" + text + LINES[0] + b"\n")
    sql = "select *, args::json->>'$.phase' p, extra::json->>'$.more' m from events"
    assert main(["query", sql, str(path), "--json"]) == status
    assert main(["report", str(path), "-o", str(tmp_path / "r.html")]) == status
    assert (tmp_path / "r.html").stat().st_size > 1000
    out = tmp_path / "o.parquet"
    assert main(["export", "--to", "parquet", str(path), "-o", str(out)]) == status


def test_lone_surrogates_become_the_replacement_character(tmp_path: Path) -> None:
    path = tmp_path / "t.pfw"
    path.write_bytes(b"[\n" + TORCH % b'"a\\ud800b\\ud83d\\ude00c\\\\ud800"')
    (row,) = trace_rows(path)
    assert json.loads(str(row["args"]))["k"] == "a\N{REPLACEMENT CHARACTER}b\U0001f600c\\ud800"


def trace_rows(path: Path) -> list[dict[str, object]]:
    import pyarrow as pa

    return list(pa.table(trace.read(path)).to_pylist())

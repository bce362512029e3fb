"""Any bytes, wherever a program can put them: each line is JSON, and they can be had back."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest
from support import traces
from support.api_driver import Command, play, program
from support.traces import decode

INIT: Command = ("init", "t.pfw", None, None)
FINI: Command = ("fini",)

NASTY: dict[str, bytes] = {
    "quotes": b'a "quoted" word',
    "backslash": b"ends with a backslash\\",
    "backslashes": b"\\\\n \\u0041 \\",
    "newline": b"two\nlines\r\n",
    "json": b'"}],{"ph":"X"',
    "controls": bytes(range(1, 32)) + b"\x7f",
    "high": bytes(range(128, 256)),
    "latin1": "Größe".encode("latin-1"),
    "utf8": "Größe, 大小, 😀, \u2028 \u0301 \ufeff \uffff \U0010ffff".encode(),
    "cut": "😀".encode()[:3],
    "overlong": b"\xc0\x80 \xe0\x80\xaf \xf0\x80\x80\xaf",
    "surrogate": b"\xed\xa0\x80 \xed\xbf\xbf",
    "too high": b"\xf4\x90\x80\x80 \xf8\x88\x80\x80\x80",
    "ours": "\uef80 \uefff \uef41 \uef7f".encode(),
    "ours cut": "\uefff".encode()[:2] + b"x",
    "mixed": b"\xff\xc3\xa9\xffA\xe9\xc3",
    "percent": b"%s %n %00",
    "blank": b"  ",
    "del": b"\x7f\x7f",
}


def texts(name: str) -> bytes:
    return NASTY[name]


@pytest.mark.parametrize("what", sorted(NASTY))
def test_names_categories_keys_and_values(tmp_path: Path, what: str) -> None:
    raw = texts(what)
    play(
        INIT,
        ("begin", 0, raw, raw),
        ("string", 0, raw, raw),
        ("end", 0),
        ("instant", raw, raw, raw, "string", raw),
        ("complete", raw, raw, 5, 6, raw, "string", raw),
        ("counter", raw, raw, 1),
        ("metadata", raw, raw),
        FINI,
        cwd=tmp_path,
    )
    trace = traces.read_one(tmp_path)
    assert [event["ph"] for event in trace.recorded] == ["X", "i", "X", "C"]
    for event in trace.recorded:
        assert decode(event["name"]) == raw
        assert decode(event["cat"]) == raw
        if event["ph"] != "C":
            key, value = list(event["args"].items())[3]
            assert (decode(key), decode(value)) == (raw, raw)
    meta = trace.one("CM")["args"]
    assert (decode(meta["name"]), decode(meta["value"])) == (raw, raw)


def test_nul_inside_a_value(tmp_path: Path) -> None:
    raw = b"\0a\0\0b\0"
    play(
        INIT,
        ("begin", 0, "r", "app"),
        ("bytes", 0, "k", raw),
        ("end", 0),
        ("instant", "i", "app", "k", "string", raw),
        FINI,
        cwd=tmp_path,
    )
    trace = traces.read_one(tmp_path)
    assert decode(trace.one("r")["args"]["k"]) == raw
    assert decode(trace.one("i")["args"]["k"]) == raw


def test_every_byte_before_and_after_every_kind_of_character(tmp_path: Path) -> None:
    """4,000 strings made of pieces that are awkward beside each other, in one run."""
    pieces = [bytes([b]) for b in range(1, 256)]
    pieces += [c.encode() for c in "aé大😀\u07ff\u0800\ud7ff\ue000\uef7f\uef80\uefff\uf000\uffff"]
    chooser = random.Random(1)
    values = [b"".join(chooser.choices(pieces, k=chooser.randint(0, 12))) for _ in range(4000)]
    commands: list[Command] = [("metadata", f"k{i}", value) for i, value in enumerate(values)]
    play(INIT, *commands, FINI, cwd=tmp_path)
    found = traces.read_one(tmp_path).named("CM")
    assert [decode(record["args"]["value"]) for record in found] == values


@pytest.mark.parametrize("size", [183, 184, 185, 1023, 1024, 1025, 65_535, 1 << 20])
def test_long_strings(tmp_path: Path, size: int) -> None:
    noise = random.Random(size).randbytes(3000).replace(b"\0", b"0")
    raw = (b'"\n\xff' + noise + b"x" * size)[: size - 4] + b'\\"\n\xff'
    play(
        INIT,
        ("begin", 0, raw, "app"),
        ("string", 0, "value", raw),
        ("end", 0),
        ("begin", 0, "r", raw),
        ("int", 0, raw, 1),
        ("end", 0),
        ("metadata", raw, raw),
        ("begin", 0, "after", "app"),
        ("end", 0),
        FINI,
        cwd=tmp_path,
    )
    trace = traces.read_one(tmp_path)
    first, second, after = trace.recorded
    assert decode(first["name"]) == raw
    assert decode(first["args"]["value"]) == raw
    assert decode(second["cat"]) == raw
    assert decode(list(second["args"])[3]) == raw
    assert decode(trace.one("CM")["args"]["name"]) == raw
    assert decode(trace.one("CM")["args"]["value"]) == raw
    assert after["name"] == "after"


def test_a_long_string_in_a_plain_file(tmp_path: Path) -> None:
    raw = b"x" * (1 << 20)
    play(
        INIT,
        ("begin", 0, "r", "app"),
        ("string", 0, "k", raw),
        ("end", 0),
        cwd=tmp_path,
        env={"DFTRACER_TRACE_COMPRESSION": "0"},
    )
    assert traces.read_one(tmp_path).one("r")["args"]["k"] == raw.decode()


def test_more_names_than_the_table_holds(tmp_path: Path) -> None:
    count = 70_000
    commands: list[Command] = [("instant", f"name {i}", "app") for i in range(count)]
    play(INIT, *commands, FINI, cwd=tmp_path)
    names = [event["name"] for event in traces.read_one(tmp_path).recorded]
    assert names == [f"name {i}" for i in range(count)]


def test_a_key_that_no_longer_fits_the_table_is_still_there_once(tmp_path: Path) -> None:
    filler: list[Command] = [("instant", f"name {i}", "app") for i in range(66_000)]
    play(
        INIT,
        *filler,
        ("begin", 0, "new name", "new category"),
        ("int", 0, "new key", 1),
        ("int", 0, "new key", 2),
        ("end", 0),
        FINI,
        cwd=tmp_path,
    )
    event = traces.read_one(tmp_path).one("new name")
    assert event["cat"] == "new category"
    assert event["args"]["new key"] == 2


@pytest.mark.parametrize("what", ["quotes", "controls", "high", "newline", "ours", "utf8"])
def test_command_line_and_directory(tmp_path: Path, what: str) -> None:
    raw = texts(what)
    words = [raw, b"", b";", raw]
    work = os.fsencode(tmp_path) + b"/" + raw.replace(b"/", b"_")
    os.mkdir(work)
    driver = program()
    play(("init", "t.pfw", None, None), FINI, cwd=work, args=words, executable=driver)
    # pathlib cannot hold every name; the trace is moved to where it can.
    moved = tmp_path / "t.pfw.gz"
    shutil.move(work + b"/t.pfw.gz", os.fsencode(moved))
    trace = traces.read(moved)
    assert [decode(m["args"]["name"]) for m in trace.named("FH")] == [work]
    command = b";".join([os.fsencode(driver), *words])
    assert decode(trace.named("SH")[0]["args"]["name"]) == command


def test_a_command_line_of_a_megabyte(tmp_path: Path) -> None:
    words = [(b"%d-" % i + b"\xff\n" * 30_000) for i in range(17)]
    play(INIT, ("begin", 0, "r", "app"), ("end", 0), FINI, cwd=tmp_path, args=words)
    trace = traces.read_one(tmp_path)
    command = decode(trace.named("SH")[0]["args"]["name"])
    assert command.split(b";")[1:] == words
    assert trace.one("r")["id"] == 7


def test_an_empty_command_line_word_at_the_end(tmp_path: Path) -> None:
    play(INIT, FINI, cwd=tmp_path, args=["a", "", ""])
    command = traces.read_one(tmp_path).named("SH")[0]["args"]["name"]
    assert command.endswith(";a;;")


def test_a_hostile_name_of_the_trace(tmp_path: Path) -> None:
    raw = b'a"b\\c\n\xff.pfw'
    play(("init", raw, None, None), ("fork", "child"), FINI, cwd=tmp_path)
    names = sorted(os.listdir(os.fsencode(tmp_path)))
    assert len(names) == 2
    assert raw + b".gz" in names


def test_thread_names(tmp_path: Path) -> None:
    play(INIT, ("on", 3, "begin", 1, "r", "app"), ("on", 3, "end", 1), FINI, cwd=tmp_path)
    trace = traces.read_one(tmp_path)
    tid = trace.one("r")["tid"]
    assert [m["args"]["name"] for m in trace.named("thread_name") if m["tid"] == tid] == [
        "worker 3"
    ]

"""Which bytes a call moved, at which file: what is recorded, and what the reader makes of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support import calls, intercept
from support.build import ROOT, command

from dftracer import _reader, trace

SIZE = 1_000_000
MOVES = ("read", "write", "copy", "collect")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    (work / "in").write_bytes(b"0123456789abcde\n" * (SIZE // 16))
    return work


def used(run: intercept.Run) -> dict[str, tuple[int | None, int | None]]:
    """By file: bytes read and written, as `dftracer stats` has them."""
    found = trace.summarise_all([run.directory / name for name in run.directory.glob("*.pfw.gz")])
    return {Path(file.path).name: (file.read_bytes, file.write_bytes) for file in found.used}


def kernel(place: Path, program: Path, *args: str) -> dict[str, tuple[int, int]]:
    """The same of copies, from strace."""
    calls = ("copy_file_range", "sendfile", "splice")
    lines = intercept.strace(program, *args, cwd=place, calls=calls, log=place.parent / "log")
    sums: dict[str, list[int]] = {}
    for name, rest in lines:
        first, second = re.findall(r"\d+<([^>]*)>", rest)[:2]
        moved = max(int(rest.rsplit("= ", 1)[1].split()[0]), 0)
        source, target = (second, first) if name == "sendfile" else (first, second)
        sums.setdefault(Path(source).name, [0, 0])[0] += moved
        sums.setdefault(Path(target).name, [0, 0])[1] += moved
    return {name: (read, written) for name, (read, written) in sums.items()}


@intercept.IN_EACH_MODE
@pytest.mark.parametrize("way", ["copy_file_range", "sendfile", "splice"])
def test_a_copy_is_read_at_one_file_and_written_at_the_other(
    place: Path, mode: str, way: str
) -> None:
    program = intercept.program("bytes_copies", mode)
    run = intercept.traced(program, way, mode=mode, cwd=place)
    found = used(run)
    assert (found["in"], found["out"]) == ((SIZE, 0), (0, SIZE))
    if mode == intercept.PRELOAD:
        witness = kernel(place, program, way)
        for name in ("in", "out"):
            assert found[name] == witness[name]
    for event in run.one.named(way):
        second = event.args["in_fd_hash" if way == "sendfile" else "fd_out_hash"]
        assert event.path != second


# libaio as it is: its functions are system calls.
LIBRARY = r"""
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>
int io_setup(int n, void** c) { return (int)syscall(SYS_io_setup, n, c); }
int io_submit(void* c, long n, void** r) { return (int)syscall(SYS_io_submit, c, n, r); }
int io_getevents(void* c, long m, long n, void* e, void* t) {
  return (int)syscall(SYS_io_getevents, c, m, n, e, t);
}
"""


def libaio(place: Path, mode: str, *args: str) -> intercept.Run:
    folder = place.parent / "lib"
    folder.mkdir()
    (folder / "aio.c").write_text(LIBRARY)
    command("cc", "-shared", "-fPIC", folder / "aio.c", "-o", folder / "libown_aio.so")
    flags = ("-Wl,--no-as-needed", f"-L{folder}", "-lown_aio", f"-Wl,-rpath,{folder}")
    program = intercept.program("bytes_libaio", mode, *flags)
    return intercept.traced(program, *args, mode=mode, cwd=place)


@intercept.IN_EACH_MODE
def test_asynchronous_requests_have_the_bytes_of_their_results(place: Path, mode: str) -> None:
    run = libaio(place, mode)
    # The second read ends with the file: 1,000,000 - 63,000 is more than it wants.
    assert used(run)["in"] == (2 * 8192, 0)
    assert used(run)["out"] == (0, 8192)
    assert run.one.counts()["io_submit"] == 1
    (collecting,) = run.one.named("io_getevents")
    assert (collecting.args["ret"], collecting.args["joined"]) == (3, 3)
    found = [
        (
            one.name,
            Path(one.path or "").name,
            one.args["offset"],
            one.args["count"],
            one.args["ret"],
        )
        for one in run.one.requests
    ]
    assert sorted(found) == [
        ("read", "in", 0, 8192, 8192),
        ("read", "in", 63000, 8192, 8192),
        ("write", "out", 512, 8192, 8192),
    ]


@intercept.IN_EACH_MODE
@pytest.mark.parametrize("way", ["gone", "inline"])
def test_requests_that_are_gone_do_no_harm(place: Path, mode: str, way: str) -> None:
    """What was submitted is known from then on. If that was not seen either, bytes are unknown."""
    run = libaio(place, mode, way)
    (event,) = run.one.named("io_getevents")
    assert event.args["ret"] == 3
    assert "read_len" not in event.args
    rows = trace.summarise_all(list(run.directory.glob("*.pfw.gz"))).rows
    (row,) = [row for row in rows if row.name == "io_getevents"]
    if way == "gone":
        assert len(run.one.requests) == 3
        assert used(run)["in"] == (2 * 8192, 0)
        assert (row.read_bytes, row.write_bytes, row.read_unknown) == (0, 0, 0)
    else:
        assert (row.read_bytes, row.write_bytes, row.read_unknown) == (None, None, 1)


def bodies_that_count() -> set[str]:
    """The symbols whose wrappers are written by hand and count bytes, or collect requests."""
    moved = r"\b(?:reads|writes|both_ways|uncounted|returned)\("
    found: set[str] = set()
    for source in (ROOT / "src" / "intercept").glob("wrap_*.cpp"):
        text = source.read_text(encoding="utf-8")
        bodies = re.findall(r"DFT_WRAPPER\((\w+)\)(.*?)\n}", text, re.DOTALL)
        found |= {name for name, body in bodies if re.search(moved, body)}
        found |= set(re.findall(r"^DFT_SCANF(?:_STDIN)?\((\w+),", text, re.MULTILINE))
        found |= set(re.findall(r"^DFT_AIO_RETURN\((\w+)\)", text, re.MULTILINE))
        found |= set(re.findall(r"collect<Row::(\w+)>", text))
    return found


def test_every_call_that_moves_bytes_is_known_to_the_reader() -> None:
    """Rows with a signature say it once for both sides; bodies written by hand must agree."""
    roles = {name: role for name, role, _, _ in _reader.calls()}
    rows = calls.read_table()
    shown = {entry.symbol: entry.shown for row in rows for entry in row.entries}
    counted = {shown[symbol] for symbol in bodies_that_count() & set(shown)}
    assert {"fprintf", "wprintf", "fscanf", "aio_return", "io_pgetevents"} <= counted
    assert not {name for name in counted if roles.get(name) not in MOVES}
    moving = ("READ", "WRITE", "SEND", "RECEIVE", "COPY_TO", "COPY_FROM", "SPLICE_TO", "COLLECT")
    stated = {entry.shown for row in rows if row.does in moving for entry in row.entries}
    assert {"getchar", "putchar", "splice", "read", "fputs"} <= stated
    assert stated == {name for name, role in roles.items() if role in MOVES}


def test_every_shown_function_has_one_meaning() -> None:
    meanings: dict[tuple[str, str], set[str]] = {}
    for row in calls.read_table():
        for entry in row.entries:
            meanings.setdefault((row.category, entry.shown), set()).add(row.does)
    assert not {name: does for name, does in meanings.items() if len(does) > 1}

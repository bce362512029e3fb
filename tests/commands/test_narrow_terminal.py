"""`info`, `stats` and `report` in terminals of any width."""

from __future__ import annotations

import os
import pty
import re
import struct
import subprocess
import termios
from fcntl import ioctl
from pathlib import Path

import pytest
from support.command import COMMAND, dftracer, environment
from support.synthetic_program import training

from dftracer._names import columns_of

COMMANDS = (("info",), ("info", "--each"), ("stats",), ("report", "--no-page"))
LINES = 60


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirteen processes with long names, commands and hosts."""
    place = tmp_path_factory.mktemp("traces")
    for rank in range(13):
        program = training(
            pid=10_000 + rank,
            rank=rank,
            steps=4,
            fetch=12_345 * (rank + 1),
            host=f"node{rank:03}.cluster.example.org",
            command="/usr/bin/python3;/home/somebody/projects/training/train.py;--epochs;90",
        )
        program.read(f"/lustre/projects/data/{'set' * 30}/shard-{rank:05}.tar", 1 << 30, 777)
        for n in range(4):
            program.read(f"/lustre/run-{n}/{'tail' * 20}/part.bin", 4096 * n, 20)
        program.span("app", "region_" + "x" * 200 + f"_{rank}", 1_000_000)
        program.write(place)
    return place


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_no_line_is_wider_than_the_terminal(
    words: tuple[str, ...], columns: int, traces: Path
) -> None:
    done = dftracer(*words, ".", cwd=traces, env={"COLUMNS": str(columns)})
    lines = done.stdout.splitlines()
    assert len(lines) > 20
    assert [line for line in lines if columns_of(line) > columns] == []


def test_the_width_is_that_of_the_terminal(traces: Path) -> None:
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    with subprocess.Popen(
        [COMMAND, "stats", "."], cwd=traces, env=environment({"TERM": "dumb"}), stdout=theirs
    ) as program:
        os.close(theirs)
        text = b""
        while True:
            try:
                piece = os.read(ours, 1 << 16)
            except OSError:  # how Linux says that the other side has closed
                break
            if not piece:
                break
            text += piece
        assert program.wait() == 0
    os.close(ours)
    lines = text.decode().splitlines()
    assert 30 < max(map(columns_of, lines)) <= 60


def test_info_of_many_processes_fits_a_screen(traces: Path) -> None:
    text = dftracer("info", ".", cwd=traces).stdout
    assert len(text.splitlines()) < LINES
    assert len(re.findall(r"^ +\S+\.pfw .*ended cleanly", text, re.M)) == 13
    # The events of all files, one row per name.
    names = dftracer("info", ".", "--top", "0", cwd=traces).stdout
    assert len(re.findall(r"^ +compute +forward +104 ", names, re.M)) == 1
    assert "--each shows the details of all 13 files" in text
    whole = dftracer("info", ".", "--each", cwd=traces).stdout
    assert whole.count("first 3 events, as written") == 13


def test_what_there_is_no_room_for_is_said(traces: Path) -> None:
    text = dftracer("stats", ".", "--by", "name", cwd=traces, env={"COLUMNS": "60"}).stdout
    assert re.search(r"^\(no room for .*p50, p90", text, re.M)
    wide = dftracer("stats", ".", "--by", "name", cwd=traces, env={"COLUMNS": "200"}).stdout
    assert "no room" not in wide
    assert "p50" in wide.splitlines()[0]

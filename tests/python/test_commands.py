"""The `dftracer` command: what it prints and the status it ends with."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from dftracer import _library
from dftracer.commands.main import main


def write_trace(path: Path, *, ended: bool = True) -> None:
    own = {"cat": "dftracer", "pid": 7, "tid": 7}
    host = {"hhash": "aa"}
    records = [
        {**own, "name": "HH", "ph": "M", "args": {**host, "name": "node1", "value": "aa"}},
        {**own, "name": "SH", "ph": "M", "args": {**host, "name": "./a;b", "value": "cc"}},
        {
            **own,
            "name": "start",
            "ph": "X",
            "ts": 10**15,
            "dur": 0,
            "args": {**host, "cmd_hash": "cc"},
        },
    ]
    for number in range(20):
        records.append(
            {
                "id": number,
                "name": "work",
                "cat": "C_APP",
                "pid": 7,
                "tid": 8 + number % 2,
                "ts": 10**15 + number * 10,
                "dur": 5,
                "ph": "X",
                "args": {**host, "n": number},
            }
        )
    if ended:
        records.append(
            {**own, "name": "end", "ph": "X", "ts": 10**15 + 500, "dur": 0, "args": host}
        )
    text = "[\n" + "".join(json.dumps(record) + "\n" for record in records)
    path.write_bytes(gzip.compress(text.encode()))


def test_info_shows_processes_events_and_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_trace(tmp_path / "t.pfw.gz")
    assert main(["info", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "ended cleanly" in text
    assert "pid 7, on node1, 20 events, 2 threads: ./a b" in text
    assert re.search(r"C_APP +work +20 +100 us +5 us +5 us", text)
    assert '"args":{"hhash":"aa","n":0}' in re.sub(r"\n\s+", "", text)
    assert text.splitlines()[-1].startswith("1 file, 1 process, 20 events, ")
    assert max(map(len, text.splitlines())) <= 100


def test_info_without_an_end_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_trace(tmp_path / "t.pfw.gz", ended=False)
    assert main(["info", str(tmp_path / "t.pfw")]) == 0
    assert "no end record" in capsys.readouterr().out


def test_info_of_nothing_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(tmp_path)]) == 2
    assert main(["info", str(tmp_path / "none.pfw")]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("dftracer: ") for line in lines)


def test_recover_of_an_empty_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recover", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path}: nothing to recover\n"


def test_recover_of_a_missing_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recover", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err == f"dftracer: {tmp_path / 'none'}: no such directory\n"


@pytest.mark.parametrize(
    ("found", "text", "code"),
    [
        (_library.Recovery(4, 3, 120000, 1, 0, 0),
         "3 spools finished, 120,000 events recovered, 1 still running", 0),
        (_library.Recovery(1, 1, 1, 0, 0, 0), "1 spool finished, 1 event recovered", 0),
        (_library.Recovery(2, 1, 5, 0, 0, 1),
         "1 spool finished, 5 events recovered, 1 not readable", 1),
    ],
)  # fmt: skip
def test_recover_says_what_it_did(
    found: _library.Recovery,
    text: str,
    code: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_library, "recover", lambda *_, **__: found)
    assert main(["recover", str(tmp_path)]) == code
    assert capsys.readouterr().out == f"{tmp_path}: {text}\n"

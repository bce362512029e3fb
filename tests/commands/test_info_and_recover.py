"""The `dftracer` command: what it prints and the status it ends with."""

from __future__ import annotations

import gzip
import json
import re
import time
from pathlib import Path

import pytest

from dftracer import _libcore
from dftracer.commands._cli.main import main


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
        (_libcore.Recovery(4, 3, 120000, 1, 0, 0),
         "3 spools completed, 120,000 events recovered, 1 still running", 0),
        (_libcore.Recovery(1, 1, 1, 0, 0, 0), "1 spool completed, 1 event recovered", 0),
        (_libcore.Recovery(2, 1, 5, 0, 0, 1),
         "1 spool completed, 5 events recovered, 1 not readable", 1),
    ],
)  # fmt: skip
def test_recover_says_what_it_did(
    found: _libcore.Recovery,
    text: str,
    code: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_libcore, "recover", lambda *_, **__: found)
    assert main(["recover", str(tmp_path)]) == code
    assert capsys.readouterr().out == f"{tmp_path}: {text}\n"


@pytest.mark.parametrize(
    ("zone", "text"),
    [
        ("UTC0", "2001-09-09 01:46:40.000000 to 01:46:40.000500 UTC,"),
        ("XXX-5:30", "2001-09-09 07:16:40.000000 to 07:16:40.000500 +05:30,"),
        ("XXX3", "2001-09-08 22:46:40.000000 to 22:46:40.000500 -03:00,"),
    ],
)
def test_info_names_the_zone_of_its_times(
    zone: str,
    text: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_trace(tmp_path / "t.pfw.gz")
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        assert main(["info", str(tmp_path)]) == 0
    finally:
        monkeypatch.undo()
        time.tzset()
    assert f"\n  {text}" in capsys.readouterr().out


def test_recover_of_a_missing_file_is_about_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("missing.pfw", "missing.pfw.gz", "missing.json"):
        assert main(["recover", str(tmp_path / name)]) == 2
        assert capsys.readouterr().err == f"dftracer: {tmp_path / name}: no such file\n"


def test_a_page_that_cannot_be_written_is_a_failure_if_it_was_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_trace(tmp_path / "t.pfw.gz")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").symlink_to("/dev/full")
    for page, reason in (
        ("nowhere/page.html", "No such file or directory"),
        (str(tmp_path), "Is a directory"),
        ("full", "No space left on device"),
    ):
        assert main(["report", "t.pfw.gz", "-o", page]) == 1
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == 1
        assert lines[0].startswith("dftracer: ")
        assert lines[0].endswith(reason)
    # Without -o it is a by-product.
    (tmp_path / "t-report.html").mkdir()
    assert main(["report", "t.pfw.gz"]) == 0
    assert (
        capsys.readouterr().err == "dftracer: cannot write the page t-report.html: Is a directory\n"
    )


def test_a_category_of_any_length_has_a_partition(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    duckdb = pytest.importorskip("duckdb")
    names = ["a" * 250, "a" * 251, "b" * 240, "ж" * 120, "POSIX"]
    event = {"name": "n", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "ph": "X"}
    records = [{**event, "id": number, "cat": name} for number, name in enumerate(names)]
    trace = tmp_path / "t.pfw"
    trace.write_text("[\n" + "".join(json.dumps(record) + "\n" for record in records))
    out = tmp_path / "parts"
    words = ["export", "--to", "parquet", "--partition", str(trace), "-o", str(out)]
    assert main(words) == 0
    seen = capsys.readouterr()
    (line,) = seen.err.splitlines()
    assert "3 categories too long for the name of a directory, shortened: " in line
    sql = "select id, cat from read_parquet(?, hive_partitioning = true) order by id"
    rows = duckdb.execute(sql, [f"{out}/*/*.parquet"]).fetchall()
    assert [row[0] for row in rows] == [0, 1, 2, 3, 4]
    assert len({row[1] for row in rows}) == 5
    for (_, found), name in zip(rows, names):
        assert found == name or (found[:15] == name[:15] and "~md5-" in found)

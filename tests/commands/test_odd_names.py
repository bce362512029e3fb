"""Names with quotes, blanks, line breaks and the like: of TMPDIR, of traces, of outputs."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from support.command import dftracer, environment
from support.synthetic_program import training

from dftracer.reports import store

ODD = (
    'it\'s "b" 100%s %(x)s; c',
    "two\nlines",
    "$(touch owned) `touch owned` [a]*?{b}",
    "back\\slash <b>&amp;<i> #?x=1",
)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    program = training(pid=200, steps=4)
    for i in range(20):
        program.read(f"/d/{i % 3}", 1000 + i, 3, at=100 * i)
    return program.write(tmp_path)


@pytest.mark.parametrize("name", ODD)
def test_a_quote_in_tmpdir_breaks_nothing(name: str, trace: Path, tmp_path: Path) -> None:
    scratch = tmp_path / name
    scratch.mkdir()
    env = {"TMPDIR": str(scratch)}
    here = tmp_path / "here"
    here.mkdir()
    for words in (
        ("report", trace, "--no-page", "--csv", "c", "--parquet", "p"),
        ("report", trace, "--no-page", "--cluster", "local:1"),
        ("query", "select count(*) from events", trace),
        ("doctor",),
    ):
        done = dftracer(*words, cwd=here, env=env)
        assert done.stderr == "", words
        assert os.listdir(scratch) == [], words
    assert not (here / "owned").exists()


@pytest.mark.parametrize("name", ODD)
def test_large_traces_go_through_a_file_in_tmpdir(
    name: str, trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their events are kept in a database on disk, whose name stands in SQL."""
    from dftracer import reports

    scratch = tmp_path / name
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    expected = reports.load(trace, threads=1)
    monkeypatch.setattr(store, "LARGE", 0)
    found = reports.load(trace, threads=1)
    assert {name: table.rows for name, table in found.tables.items()} == {
        name: table.rows for name, table in expected.tables.items()
    }


@pytest.mark.parametrize("name", ODD)
def test_odd_names_of_traces_and_outputs(name: str, trace: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"
    place = here / f"dir {name}"
    place.mkdir(parents=True)
    given = place / f"t {name}.pfw"
    trace.rename(given)
    out = place / f"out {name}"
    for words, made in (
        (("info", given), None),
        (("stats", given), None),
        (("validate", given), None),
        (("report", given, "-o", f"{out}.html", "--csv", f"{out}-c", "--parquet", f"{out}-p"), ""),
        (("query", "select name from events", given, "-o", f"{out}.csv"), f"{out}.csv"),
        (("query", "select name from events", given, "-o", f"{out}.parquet"), f"{out}.parquet"),
        (("export", "--to", "parquet", given, "-o", f"{out}.2.parquet"), f"{out}.2.parquet"),
        (("export", "--to", "parquet", "--partition", given, "-o", f"{out}-parts"), ""),
        (("export", "--to", "chrome", given, "-o", f"{out}.json"), f"{out}.json"),
        (("merge", given, "-o", f"{out}.pfw"), f"{out}.pfw"),
        (("split", given, "-n", "2", "-o", f"{out} piece"), f"{out} piece-0001.pfw.gz"),
        (("compact", given), f"{given}.gz"),
    ):
        done = dftracer(*words, cwd=here)
        assert done.stderr == "", words
        assert not made or os.path.getsize(made) > 0, words
        # The names are shown, and no name becomes a line or a command of the terminal.
        assert not re.search(r"^lines", done.stdout, re.MULTILINE), words
    assert "<b>&amp;<i>" not in Path(f"{out}.html").read_text().partition("<title>")[2][:400]
    events = json.loads(Path(f"{out}.json").read_bytes())["traceEvents"]
    assert len([event for event in events if event["ph"] == "X"]) > 20
    assert not list(here.rglob("owned"))
    assert not [path for path in here.rglob("*") if ".part" in path.name]


@pytest.mark.parametrize("name", ODD)
def test_the_next_command_that_run_proposes_can_be_pasted(name: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_text("text\n")
    done = dftracer("run", "-o", name, "--", "cat", str(data), cwd=tmp_path)
    (line,) = re.findall(r"^dftracer: next: (dftracer report .*) \(or info", done.stderr, re.M)
    again = subprocess.run(
        ["bash", "-c", line + " --no-page"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "1 process" in again.stdout
    assert not list(tmp_path.rglob("owned"))
    assert gzip.decompress(next((tmp_path / name).glob("*.pfw.gz")).read_bytes())

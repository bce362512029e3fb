"""What commands write: for the user alone unless asked otherwise, and harmless to spreadsheets."""

from __future__ import annotations

import csv
import os
import shutil
from pathlib import Path

import pytest
from support.command import dftracer
from support.synthetic_program import Program, training

FORMULAS = ("=1+1", "+1", "-1", "@sum(a1)", "\tx", "\rx")


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    program = training(steps=3, epochs=1)
    program.read("/data/a", 4096, 20)
    program.write(tmp_path / "run")
    return tmp_path


def modes(*places: Path) -> set[str]:
    files = [
        path
        for place in places
        for path in ([place] if place.is_file() else place.rglob("*"))
        if path.is_file()
    ]
    assert files
    return {f"{path.stat().st_mode & 0o777:o}" for path in files}


COMMANDS = {
    "page": (["report", "run", "-o", "out.html"], "out.html"),
    "csv": (["report", "run", "--csv", "out", "--no-page"], "out"),
    "parquet": (["report", "run", "--parquet", "out", "--no-page"], "out"),
    "export": (["export", "run", "--to", "chrome", "-o", "out.json"], "out.json"),
    "export parquet": (["export", "run", "--to", "parquet", "-o", "out.parquet"], "out.parquet"),
    "partition": (["export", "run", "--to", "parquet", "--partition", "-o", "out"], "out"),
    "merge": (["merge", "run", "-o", "out.pfw.gz"], "out.pfw.gz"),
    "split": (["split", "run", "-n", "1", "-o", "out"], "out-0001.pfw.gz"),
    "query csv": (["query", "from events", "run", "-o", "out.csv"], "out.csv"),
    "query parquet": (["query", "from events", "run", "-o", "out.parquet"], "out.parquet"),
}


@pytest.mark.parametrize("what", COMMANDS)
def test_what_is_written_is_for_the_user_alone(what: str, trace: Path) -> None:
    words, out = COMMANDS[what]
    before = os.umask(0o022)
    try:
        dftracer(*words, cwd=trace)
        assert modes(trace / out) == {"600"}
        if (trace / out).is_dir():
            assert (trace / out).stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(before)


@pytest.mark.parametrize("what", COMMANDS)
def test_the_mode_can_be_chosen(what: str, trace: Path) -> None:
    words, out = COMMANDS[what]
    before = os.umask(0o022)
    try:
        dftracer(*words, "--mode", "0644", cwd=trace)
        assert modes(trace / out) == {"644"}
        if (trace / out).is_dir():
            assert (trace / out).stat().st_mode & 0o777 == 0o755
        else:
            (trace / out).unlink()
            dftracer(*words, cwd=trace, env={"DFTRACER_FILE_MODE": "0640"})
            assert modes(trace / out) == {"640"}
    finally:
        os.umask(before)


@pytest.mark.parametrize("mode", ["rw-r--r--", "0o644", "0999", "01777", "-1"])
def test_a_mode_that_is_none_is_one_line(mode: str, trace: Path) -> None:
    said = f"invalid file mode '{mode}' (for example 0600, 0640, 0644)"
    done = dftracer("report", "run", f"--mode={mode}", cwd=trace, expect=2)
    assert said in done.stderr
    done = dftracer("report", "run", cwd=trace, env={"DFTRACER_FILE_MODE": mode}, expect=2)
    assert done.stderr == f"dftracer: DFTRACER_FILE_MODE: {said}\n"
    assert [path.name for path in trace.iterdir()] == ["run"]


def test_the_umask_holds(trace: Path) -> None:
    before = os.umask(0o027)
    try:
        for words, out in COMMANDS.values():
            dftracer(*words, "--mode", "0666", cwd=trace)
            assert modes(trace / out) == {"640"}, words
            shutil.rmtree(trace / out) if (trace / out).is_dir() else (trace / out).unlink()
    finally:
        os.umask(before)


def test_text_of_a_csv_is_no_formula(tmp_path: Path) -> None:
    program = Program()
    for name in FORMULAS:
        program.span(name, name, 10)
    program.read("=cmd|' /C calc'!A0", 10, 5)
    (tmp_path / "run").mkdir()
    program.write(tmp_path / "run")
    dftracer("report", "run", "--csv", "tables", "--no-page", cwd=tmp_path)
    dftracer("query", "select cat, name, dur, -dur as less from events", "run", "-o", "q.csv",
             cwd=tmp_path)  # fmt: skip
    for path in (*(tmp_path / "tables").iterdir(), tmp_path / "q.csv"):
        with open(path, newline="") as file:
            for row in csv.reader(file):
                for cell in row:
                    assert not cell.startswith(FORMULAS) or _is_number(cell), (path.name, cell)
    with open(tmp_path / "tables" / "calls.csv", newline="") as file:
        names = {row["name"] for row in csv.DictReader(file)}
    assert {f"'{name}" for name in FORMULAS} <= names
    with open(tmp_path / "q.csv", newline="") as file:
        assert [row["less"] for row in csv.DictReader(file)][:2] == ["-10", "-10"]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True

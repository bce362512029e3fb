"""The Python API, the reader and the report with an arm64 CPython."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from support import intercept, traces
from support.machines import AARCH64, BOTH, PROGRAMS, SITE, X86_64, Machine

ANNOTATED = {
    ("Loader.__init__", "reader"): 1,
    ("Loader.load", "reader"): 5,
    ("batches", "reader"): 1,
    ("compute", "compute"): 1,
    ("in a thread", "app"): 1,
    ("in a child", "app"): 1,
}


def record(machine: Machine, tmp_path: Path) -> Path:
    place = tmp_path / "files"
    place.mkdir()
    out = tmp_path / "traces"
    machine.python(PROGRAMS / "annotated.py", place, env=machine.settings(out))
    return out


@pytest.mark.parametrize("machine", BOTH, ids=str)
def test_annotations(tmp_path: Path, machine: Machine) -> None:
    out = record(machine, tmp_path)
    every = [one for trace in traces.read_directory(out) for one in trace.recorded]
    found = Counter((one["name"], one["cat"]) for one in every)
    assert {key: found[key] for key in ANNOTATED} == ANNOTATED
    files = tmp_path / "files"
    written = [
        (Path(event.path or "").name, event.args["ret"])
        for process in intercept.read(out)
        for event in process.below(files)
        if event.name == "write"
    ]
    assert sorted(written) == [*((str(n), n + 1) for n in range(5)), ("child", 5)]


def test_reading(tmp_path: Path) -> None:
    out = record(X86_64, tmp_path)
    for verb in ("info", "stats"):
        assert AARCH64.command(verb, out).stdout == X86_64.command(verb, out).stdout


@pytest.mark.skipif(not (SITE / "duckdb").is_dir(), reason="no duckdb for aarch64 could be had")
def test_report(tmp_path: Path) -> None:
    out = record(AARCH64, tmp_path)
    shown = AARCH64.command("report", "--no-page", out).stdout
    assert "2 processes" in shown
    assert shown == X86_64.command("report", "--no-page", out).stdout
    AARCH64.command("report", "--output", tmp_path / "page.html", out)
    assert "Loader.load" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_doctor() -> None:
    # Not the exit status: doctor traces a program, which needs a kernel that starts it.
    shown = AARCH64.command("doctor", expect=None).stdout
    assert "Linux aarch64" in shown
    assert "clock source arch_sys_counter" in shown
    assert re.search(r"^ok +extension +_core.cpython-311-aarch64-linux-gnu.so", shown, re.MULTILINE)
    assert re.search(r"^ok +library +libdftracer_core.so", shown, re.MULTILINE)

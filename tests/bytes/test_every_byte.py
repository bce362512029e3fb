"""No byte moves unseen, or its absence is named: what a report attributes to files, held against
the sizes of the files that programs read and write as a whole."""

from __future__ import annotations

import fnmatch
import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.command import dftracer
from tests.bytes.programs import CASES, Case, is_missing

from dftracer import reports

LEAST = 0.99  # of the bytes


def wanted(place: Path, pattern: str) -> int:
    return sum(file.stat().st_size for file in place.glob(pattern) if file.is_file())


def attributed(report: reports.Report, pattern: str, column: str) -> int:
    """Bytes that calls moved, and those that were touched in mappings."""
    rows = [row for row in report.files if fnmatch.fnmatch(row["fname"], pattern)]
    return sum((row[column] or 0) + (row["touched_bytes"] or 0) for row in rows)


def named(report: reports.Report, doctor: str, word: str) -> bool:
    (overview,) = report.overview
    return word in (overview["not_traced"] or "") or word in doctor


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_bytes_of(case: Case, tmp_path: Path, record_property: pytest.RecordProperty) -> None:
    if lacking := is_missing(case):
        pytest.skip(f"not installed: {lacking} (make test-bytes)")
    place = tmp_path / "work"
    place.mkdir()
    if case.prepare:
        subprocess.run([sys.executable, "-c", case.prepare], cwd=place, check=True)
    traces = tmp_path / "traces"
    words = [str(word) for word in case.command(place)]
    done = dftracer("run", "-o", traces, "--", *words, cwd=place)
    report = reports.load(traces)
    doctor = dftracer("doctor", traces, cwd=tmp_path, expect=None).stdout
    for way, expected in (("read_bytes", case.reads), ("write_bytes", case.writes)):
        for pattern, files in expected.items():
            truth, found = wanted(place, files), attributed(report, pattern, way)
            assert truth > 0
            record_property("bytes", json.dumps([case.name, way, truth, found]))
            if case.gap:
                assert found >= LEAST * truth or named(report, doctor + done.stderr, case.gap)
            else:
                assert found >= LEAST * truth, f"{found:,} of {truth:,} bytes\n{done.stderr}"

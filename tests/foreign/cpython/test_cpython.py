"""CPython's own tests of files and processes: what passes bare passes traced.

They come with the distribution's Python (libpython3.x-testsuite) or with one built from source."""

from __future__ import annotations

import functools
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as Xml
from pathlib import Path

import pytest
from support.foreign import execute, read_traces, tracing
from support.limits import HANG
from support.run import environment

MODULES = (
    "test_os",
    "test_io",
    "test_posix",
    "test_subprocess",
    "test_tempfile",
    "test_mmap",
    "test_shutil",
    # Of the rest, those in which interception could do harm as well.
    "test_fcntl",
    "test_fileio",
    "test_glob",
    "test_multiprocessing_fork",
    "test_pathlib",
    "test_popen",
    "test_pty",
    "test_select",
    "test_signal",
    "test_threading",
)


@functools.cache
def interpreter() -> str:
    base = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    for candidate in ("/usr/bin/python3", str(base)):
        try:
            words = [candidate, "-c", "import test.test_os, test.libregrtest"]
            done = subprocess.run(words, capture_output=True, check=False, timeout=HANG)
        except OSError:
            continue
        if done.returncode == 0:
            return candidate
    pytest.skip("no Python has CPython's tests (tools/bootstrap.sh cpython)")


def results(place: Path, name: str, traced: bool, *selected: str) -> dict[str, str]:
    """What became of each test: passed, skipped, failure or error."""
    out = place / "traces"
    out.mkdir(parents=True)
    report = place / "report.xml"
    chosen = [word for test in selected for word in ("-m", test)]
    # A short path: sockets of `multiprocessing` are made below it, and theirs hold 107 bytes.
    with tempfile.TemporaryDirectory(dir="/tmp") as work:
        own = {"HOME": str(place), "TMPDIR": work}
        rc, stdout, stderr = execute(
            interpreter(), "-m", "test", "--junit-xml", report, *chosen, name,
            cwd=Path(work),
            env=tracing(out, own) if traced else environment(own, enable=False),
            output=place / "output",
            timeout=HANG,
        )  # fmt: skip
    assert report.exists(), f"status {rc}\n{stdout.decode()[-4000:]}{stderr.decode()[-4000:]}"
    found = {}
    for case in Xml.parse(report).getroot().iter("testcase"):
        outcome = [part.tag for part in case if part.tag in ("skipped", "failure", "error")]
        found[str(case.get("name"))] = outcome[0] if outcome else "passed"
    return found


@pytest.mark.timeout(6 * HANG)
@pytest.mark.parametrize("name", MODULES)
def test_no_new_failure(tmp_path: Path, name: str) -> None:
    bare = results(tmp_path / "bare", name, False)
    traced = results(tmp_path / "traced", name, True)
    assert bare
    new = {test: traced.get(test, "gone") for test in bare if bare[test] != traced.get(test)}
    failed = sorted(test for test, outcome in new.items() if outcome in ("failure", "error"))
    if failed:
        # A test that fails bare as well, if one asks often enough, says nothing about tracing.
        for turn in range(3):
            again = results(
                tmp_path / f"again{turn}", name, False, *(t.split(" ")[0] for t in failed)
            )
            new = {test: new[test] for test in new if again.get(test, "passed") == "passed"}
    log = (tmp_path / "traced" / "output.stdout").read_text(errors="replace")
    assert new == {}, log[-20_000:]
    # These tests kill many processes.
    images = read_traces(tmp_path / "traced" / "traces", tmp_path / "traced", killed=True)
    assert any(image.events for image in images)

"""What a running process is still writing: it can be read, and nothing replaces it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.command import environment
from support.limits import HANG
from support.synthetic import events_of

from dftracer.commands._cli.main import main
from dftracer.trace import summarise_all

# Enough events that some are in the file before it ends, then waits to be told to go on.
WORK = """
import sys
from dftracer.python import dftracer
log = dftracer.initialize_log("trace.pfw", None, -1)
def write(first):
    for number in range(first, first + 30000):
        log.log_event(f"e{number}", "app", log.get_time(), 1, {"number": number, "text": "x" * 40})
write(0)
print("ready", flush=True)
sys.stdin.readline()
write(30000)
log.finalize()
"""


def test_a_file_that_is_being_written_is_read_and_not_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "work.py").write_text(WORK)
    process = subprocess.Popen(
        [sys.executable, "work.py"],
        cwd=tmp_path,
        env=environment({"DFTRACER_ENABLE": "1", "DFTRACER_DISABLE_IO": "1"}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        (path,) = tmp_path.glob("*.pfw.gz")
        inode = path.stat().st_ino
        for words in (["recover", str(path)], ["compact", str(path)], ["compact", str(tmp_path)]):
            assert main([*words, "--quiet"]) == 1
            assert "still being written; left unchanged" in capsys.readouterr().err
        assert main(["recover", "--files", "--quiet", str(tmp_path)]) == 0
        out = tmp_path / "merged" / "all.pfw"
        out.parent.mkdir()
        assert main(["merge", str(path), "-o", str(out), "--quiet"]) == 0
        so_far = {event["name"] for event in events_of(out)}
        assert 0 < len(so_far) <= 30000
    finally:
        process.communicate("go on\n", timeout=HANG)
    assert path.stat().st_ino == inode
    assert summarise_all([path]).events == 60000
    assert main(["compact", "--quiet", str(path)]) == 0
    found = summarise_all([path])
    assert (found.events, found.damage.damaged) == (60000, False)

"""A program that is killed: the commands finish its trace and show what it holds."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import traces
from support.api_driver import Command, Driver, play
from support.build import compile_c
from support.run import run

INIT: Command = ("init", "t.pfw", None, None)
FINI: Command = ("fini",)


def dftracer(*words: str | Path, expect: int = 0) -> str:
    """The installed command, as a user has it."""
    found = Path(sys.executable).with_name("dftracer")
    command = str(found) if found.exists() else shutil.which("dftracer")
    assert command is not None, "the package is not installed: run `make package` first"
    done = subprocess.run(
        [command, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
    )
    assert done.returncode == expect, done
    assert expect != 0 or done.stderr == "", done
    return done.stdout + done.stderr


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """The directory of a program that was killed with a region open and nothing finalised."""
    play(
        INIT,
        ("spans", 1000, "span"),
        ("begin", 0, "open", "app"),
        ("begin", 1, "inside", "app"),
        ("end", 1),
        ("on", 1, "spans", 500, "thread"),
        ("kill",),
        cwd=tmp_path,
        expect=-9,
    )
    assert len(traces.spools(tmp_path)) == 1
    return tmp_path


def check(directory: Path) -> None:
    trace = traces.read_one(directory, open_parents=True)
    assert trace.path.name == "t.pfw.gz"
    assert [event["args"]["i"] for event in trace.named("span")] == list(range(1000))
    assert [event["args"]["i"] for event in trace.named("thread")] == list(range(500))
    assert len(trace.named("inside")) == 1
    assert trace.named("open") == []
    assert trace.one("end")["args"]["recovered"] is True
    assert trace.one("end")["args"]["num_events"] == len(trace.records) - 1


def test_recover(killed: Path) -> None:
    output = dftracer("recover", killed)
    assert re.fullmatch(
        rf"{re.escape(str(killed))}: 1 spool completed, [\d,]+ events recovered\n", output
    )
    check(killed)
    before = (killed / "t.pfw.gz").read_bytes()
    assert dftracer("recover", killed) == f"{killed}: nothing to recover\n"
    assert (killed / "t.pfw.gz").read_bytes() == before


def test_info_finishes_what_the_dead_left(killed: Path) -> None:
    output = dftracer("info", killed)
    check(killed)
    assert "t.pfw.gz" in output
    rows = {
        tuple(line.split()[:3])
        for line in output.splitlines()
        if line.strip().startswith(("C_APP", "app"))
    }
    assert {("C_APP", "span", "1,000"), ("C_APP", "thread", "500"), ("app", "inside", "1")} <= rows
    assert re.search(r"1 file, 1 process, 1,50\d events", output)


def test_info_of_one_file(killed: Path) -> None:
    dftracer("recover", killed)
    by_file = dftracer("info", killed / "t.pfw.gz")
    assert dftracer("info", killed) == by_file
    # As it was named to the program.
    assert dftracer("info", killed / "t.pfw") == by_file


def test_info_can_leave_the_dead_alone(killed: Path) -> None:
    spool = traces.spools(killed)[0].read_bytes()
    dftracer("info", "--no-recover", killed, expect=0 if traces.files(killed) else 2)
    assert traces.spools(killed)[0].read_bytes() == spool


def test_recover_leaves_the_living_alone(tmp_path: Path) -> None:
    with Driver(cwd=tmp_path) as driver:
        driver.tell(INIT, ("spans", 10, "early"))
        assert "1 still running" in dftracer("recover", tmp_path)
        assert "1 still running" in dftracer("recover", "--force", tmp_path)
        driver.tell(("spans", 10, "late"), FINI)
        driver.finish()
    trace = traces.read_one(tmp_path)
    assert [len(trace.named(name)) for name in ("early", "late")] == [10, 10]
    assert "recovered" not in trace.one("end")["args"]


def test_recover_of_what_is_not_there(tmp_path: Path) -> None:
    output = dftracer("recover", tmp_path / "none", expect=2)
    assert output == f"dftracer: {tmp_path}/none: no such directory\n"
    assert dftracer("recover", tmp_path) == f"{tmp_path}: nothing to recover\n"


def test_a_spool_elsewhere_is_found_from_the_directory(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    env = {"DFTRACER_SPOOL_DIR": str(tmp_path / "spools")}
    play(INIT, ("spans", 100, "span"), ("kill",), cwd=work, env=env, expect=-9)
    dftracer("recover", work)
    trace = traces.read_one(work)
    assert len(trace.named("span")) == 100
    assert list((tmp_path / "spools").iterdir()) == []


def test_a_parent_finishes_for_its_children(tmp_path: Path) -> None:
    """A child that leaves by _exit writes nothing more; the parent's end does it for it."""
    program = compile_c(
        """
        #include <dftracer/dftracer.h>
        #include <sys/wait.h>
        #include <unistd.h>
        static void span(void) { DFTRACER_C_FUNCTION_START(); DFTRACER_C_FUNCTION_END(); }
        int main(void) {
          DFTRACER_C_INIT("t.pfw", NULL, NULL);
          for (int i = 0; i < 3; ++i) {
            if (fork() == 0) { span(); _exit(i); }
            wait(NULL);
          }
          span();
          return 0;
        }
        """
    )
    run(program, cwd=tmp_path)
    found = traces.read_directory(tmp_path)
    assert [len(trace.recorded) for trace in found] == [1, 1, 1, 1]
    assert traces.spools(tmp_path) == []
    recovered = [trace.one("end")["args"].get("recovered", False) for trace in found]
    assert sorted(recovered) == [False, True, True, True]

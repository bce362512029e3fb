"""Ctrl-C, SIGTERM and SIGPIPE: a command ends at once, says nothing, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.command import COMMAND, environment
from support.limits import HANG
from support.synthetic_program import training

# Runs a verb again and again in one process, each time with a signal at another one of the calls
# that its Python code makes, and looks at what is left.
DRIVER = """
import io, json, os, shutil, signal, sys, threading
from dftracer import _cleanup
from dftracer.commands._cli import main as command

words, points, number = json.loads(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
scratch = os.environ["TMPDIR"]
dispatch = command.dispatch
calls = strike = 0

def watch(frame, event, argument):
    global calls
    if event in ("call", "c_call") and threading.current_thread() is threading.main_thread():
        calls += 1
        if calls == strike:
            signal.raise_signal(number)

def watched(arguments):
    sys.setprofile(watch)
    try:
        return dispatch(arguments)
    finally:
        sys.setprofile(None)

def once():
    shutil.rmtree("work", ignore_errors=True)
    shutil.copytree("input", "work")
    os.chdir("work")
    sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
    try:
        return command.main(words)
    finally:
        said, sys.stdout, sys.stderr = sys.stderr.getvalue(), sys.__stdout__, sys.__stderr__
        left = sorted(os.path.join(at, name) for at, _, names in os.walk(".") for name in names)
        os.chdir("..")
        found.append({"said": said, "left": left, "scratch": os.listdir(scratch)})

found = []
command.dispatch = watched
whole = once()          # imports everything
calls = 0
once()
total = calls
for point in range(points):
    calls, strike = 0, max(1, total * point // points)
    found.append({"status": once(), "strike": strike})
    strike = 0
try:
    os.waitpid(-1, os.WNOHANG)
    children = True
except ChildProcessError:
    children = False
print(json.dumps({"whole": whole, "total": total, "found": found, "children": children}))
"""

VERBS = {
    "merge": "merge t.pfw u.pfw -o all.pfw.gz",
    "split": "split t.pfw -n 3 -o piece",
    "compact": "compact t.pfw",
    "recover": "recover damaged.pfw",
    "query": "query,select name from events,t.pfw,-o,answer.csv",
    "info": "info t.pfw",
    "stats": "stats t.pfw --json",
    "validate": "validate t.pfw",
    "report": "report t.pfw -o page.html --csv tables --parquet tables",
    "report --cluster": "report t.pfw u.pfw --no-page --cluster local:2",
    "query parquet": "query,from processes,t.pfw,-o,answer.parquet",
    "export": "export t.pfw --to parquet -o t.parquet",
    "export --partition": "export t.pfw --to parquet --partition -o parts",
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "scratch").mkdir()
    source = tmp_path / "input"
    source.mkdir()
    for pid, name in ((200, "t"), (201, "u")):
        program = training(pid=pid, steps=5)
        for i in range(20):
            program.read(f"/d/{i % 3}", 1000 + i, 3, at=100 * i)
        program.write(tmp_path).replace(source / f"{name}.pfw")
    shutil.copy(source / "t.pfw", source / "damaged.pfw")
    with open(source / "damaged.pfw", "a") as file:
        file.write('{"id":5,"name":"half\n')
    return tmp_path


@pytest.mark.long(keep=5)
@pytest.mark.parametrize("verb", VERBS)
def test_ctrl_c_at_any_moment_leaves_nothing_behind(verb: str, place: Path) -> None:
    words = VERBS[verb].split("," if "," in VERBS[verb] else " ")
    points = 8 if "report" in words else 24  # which takes seconds
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, json.dumps(words), str(points), str(int(signal.SIGINT))],
        cwd=place,
        env=environment({"TMPDIR": str(place / "scratch")}),
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    assert done.stderr == ""
    seen = json.loads(done.stdout)
    assert seen["whole"] == 0
    assert seen["total"] > points
    assert not seen["children"]
    complete = seen["found"][1]["left"]
    finished = 0
    for after, run in zip(seen["found"][2::2], seen["found"][3::2]):
        # A destructor swallows an exception, and the signal comes again: perhaps after the end.
        finished += run["status"] == 0 and after["left"] == complete
        assert run["status"] == 130 or after["left"] == complete, run
        assert after["said"] == "", run
        assert after["scratch"] == [], run
        # Files that were there, and files that were finished before the signal.
        before = {f"./{name}" for name in ("t.pfw", "u.pfw", "damaged.pfw")}
        assert set(after["left"]) <= before | set(complete), run
        assert finished <= 1, run
        if verb == "compact":  # the plain file or the compressed one, never both or none
            assert ("./t.pfw" in after["left"]) != ("./t.pfw.gz" in after["left"]), run


def start(place: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [COMMAND, *words],
        cwd=place,
        env=environment({"TMPDIR": str(place / "scratch")}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def processor_time(pid: int) -> float:
    fields = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_for(path: Path, child: subprocess.Popen[str]) -> None:
    """Fails only if the child ends without making it."""
    while not path.exists():
        assert child.poll() is None, child.communicate()
        time.sleep(0.01)


# All pairs of three million rows. DuckDB looks for signals while it prepares such a join, which
# takes less than BUSY seconds of processor time, and not while it runs.
BUSY = 3.0
FOREVER = "select count(*) from range(3000000) a(x) join range(3000000) b(y) on a.x % 1 = b.y % 1"


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, -15), (signal.SIGHUP, -1)]
)
def test_a_heavy_join_heeds_signals(place: Path, number: int, status: int) -> None:
    marker = place / "begun.csv"
    sql = f"copy (select 1) to '{marker}'; {FOREVER}"
    child = start(place / "input", "query", sql, "t.pfw")
    wait_for(marker, child)
    before = processor_time(child.pid)
    while processor_time(child.pid) < before + BUSY:
        assert child.poll() is None, child.communicate()
        time.sleep(0.01)
    os.killpg(child.pid, number)
    assert child.communicate(timeout=HANG) == ("", "")
    assert child.returncode == status
    assert os.listdir(place / "scratch") == []


STUCK = """
import os, signal, sys, threading, time
from dftracer.commands._cli.main import main
from dftracer.reports import store
run, calls = store.Store.run, 0
def strike(after):
    while time.process_time() < after:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)
def stuck(self, sql):
    global calls
    calls += 1
    if calls == int(sys.argv[2]):
        after = time.process_time() + float(sys.argv[3])
        threading.Thread(target=strike, args=(after,), daemon=True).start()
        sql = sys.argv[1]
    return run(self, sql)
store.Store.run = stuck
sys.exit(main(["report", "input/t.pfw", "--no-page"]))
"""


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("statement", [1, 12, 40])
def test_ctrl_c_during_a_statement_of_a_report(place: Path, statement: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STUCK, FOREVER, str(statement), str(BUSY)],
        cwd=place,
        env=environment({"TMPDIR": str(place / "scratch")}),
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
    assert os.listdir(place / "scratch") == []


SLOW_WORKER = """
import os, sys, time
from dftracer import _entry
from dftracer.reports import local_workers
slow = (
    "import time; from dftracer.reports import local_workers; "
    "local_workers.Store.add_block = lambda *_: "
    "(open(sys.argv[1] + '/begun', 'w').close(), time.sleep(1000)); "
)
local_workers._START = local_workers._START.replace("from dftracer", slow + "from dftracer")
sys.argv[1:] = ["report", "input/t.pfw", "--no-page", "--cluster", "local:2"]
sys.exit(_entry.main())
"""


def processes_of(session: int) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(name))
    return found


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, -15), (signal.SIGKILL, -9)]
)
def test_workers_go_with_their_command(place: Path, number: int, status: int) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", SLOW_WORKER],
        cwd=place,
        env=environment({"TMPDIR": str(place / "scratch")}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while not list((place / "scratch").glob("dftracer-report-*/block-0/begun")):
        assert child.poll() is None, child.communicate()
        time.sleep(0.01)
    os.kill(child.pid, number)  # the command alone
    assert child.communicate(timeout=HANG) == ("", "")
    assert child.returncode == status
    if number == signal.SIGKILL:  # the kernel ends them, after the command is gone
        while processes_of(child.pid):
            time.sleep(0.01)
    else:
        assert os.listdir(place / "scratch") == []
        assert processes_of(child.pid) == []


def test_a_reader_that_leaves_early_ends_every_verb_quietly(place: Path) -> None:
    for words in (
        "info t.pfw",
        "stats t.pfw",
        "report t.pfw --no-page",
        "query 'from events' t.pfw --format csv",
        "report t.pfw --json",
    ):
        script = f"{COMMAND} {words} | head -n 1; echo ${{PIPESTATUS[0]}}"
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=place / "input",
            env=environment(),
            capture_output=True,
            text=True,
        )
        assert done.stderr == "", words
        assert done.stdout.splitlines()[-1] == "0", words

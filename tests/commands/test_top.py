"""`dftracer top`: numbers of a program that runs, and the terminal that shows them."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command import COMMAND, dftracer, environment
from support.limits import HANG
from support.traces import read_directory

from dftracer.commands.top._live import Process, Watch

# Reads a file of 64 KB as often as the line that it is given says, and says so.
WORK = """
import os, sys
from dftracer.python import dftracer
log = dftracer.initialize_log()
with open("data", "wb") as file:
    file.write(b"x" * 65536)
print("ready", flush=True)
for number, line in enumerate(sys.stdin):
    start = log.get_time()
    fd = os.open("data", os.O_RDONLY)
    for _ in range(int(line)):
        os.pread(fd, 65536, 0)
    os.close(fd)
    log.log_event("step", "train", start, log.get_time() - start, {"step": number, "epoch": 3})
    print("done", flush=True)
"""


class Program:
    """A traced program that does what it is told, when it is told."""

    def __init__(self, cwd: Path, **env: str) -> None:
        (cwd / "work.py").write_text(WORK)
        self._process = subprocess.Popen(
            [COMMAND, "run", "-q", "-o", "d", "--", "python", "work.py"],
            cwd=cwd,
            env=environment(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def work(self, reads: int, *, wait: bool = True) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{reads}\n")
        self._process.stdin.flush()
        if wait:
            assert self._process.stdout.readline() == "done\n"

    def end(self) -> None:
        if self._process.poll() is None:
            self._process.communicate(timeout=HANG)

    def kill(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.communicate()


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    running = Program(tmp_path, RANK="5")
    yield running
    running.kill()


def looking(cwd: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [COMMAND, "top", "d", *words], cwd=cwd, env=environment(), stdout=subprocess.PIPE, text=True
    )


def look(program: Program, cwd: Path, reads: int, times: int = 1) -> Process:
    """What is seen of some work between two looks."""
    watch = Watch([str(cwd / "d")])
    (first,) = watch.look()
    assert first.events_per_s == 0
    for _ in range(times):
        program.work(reads)
    (process,) = watch.look()
    return process


def test_a_slow_program_is_counted_exactly(program: Program, tmp_path: Path) -> None:
    program.work(1)
    process = look(program, tmp_path, 40, times=2)
    assert process.rank == 5
    assert process.command == "python work.py"
    assert (process.epoch, process.step) == (3, 2)
    assert process.sampled == 1
    assert process.lost == 0
    step = process.regions["step"]
    call = process.calls["pread64"]
    assert call.count / step.count == pytest.approx(40)
    assert call.read / call.count == pytest.approx(65536)
    # The kernel's count, and the lines that came in.
    assert process.read_per_s == pytest.approx(call.read, rel=0.01)
    file = process.files[str(tmp_path / "data")]
    assert file.count / step.count == pytest.approx(42)
    # Nothing happens: nothing is shown. One call may still be on its way: a write is recorded after
    # the pipe has passed "done" on.
    watch = Watch([str(tmp_path / "d")])
    watch.look()
    (idle,) = watch.look()
    if idle.events_per_s:
        (idle,) = watch.look()
    assert (idle.events_per_s, idle.calls, idle.files) == (0, {}, {})
    assert idle.step == 2


def test_a_fast_program_is_counted_and_sampled(program: Program, tmp_path: Path) -> None:
    process = look(program, tmp_path, 50_000)
    assert process.sampled < 0.5
    call = process.calls["pread64"]
    assert call.count == pytest.approx(process.events_per_s, rel=0.1)
    # The kernel counted all, the estimate comes from a part.
    assert call.read == pytest.approx(process.read_per_s, rel=0.1)
    assert process.step == 0
    assert str(tmp_path / "data") in process.files


def test_the_program_is_not_touched(program: Program, tmp_path: Path) -> None:
    before = sorted((path.name, path.stat().st_ino) for path in (tmp_path / "d").iterdir())
    look(program, tmp_path, 50)
    after = sorted((path.name, path.stat().st_ino) for path in (tmp_path / "d").iterdir())
    assert before == after
    program.end()
    (trace,) = read_directory(tmp_path / "d")
    assert sum(record["name"] == "pread64" for record in trace.recorded) == 50


def test_for_scripts(program: Program, tmp_path: Path) -> None:
    words = ("top", "d", "--once", "--json", "--interval", "0.1")
    got = json.loads(dftracer(*words, cwd=tmp_path).stdout)
    (process,) = got["processes"]
    assert (process["rank"], process["command"]) == (5, "python work.py")
    assert got["directories"] == ["d"]
    assert {"files", "calls", "regions"} <= set(got) & set(process)


def test_what_is_dead_or_strange_is_passed_over(program: Program, tmp_path: Path) -> None:
    (tmp_path / "d" / ".strange.spool").write_bytes(b"x" * 20_000)
    (tmp_path / "d" / ".empty.spool").write_bytes(b"")
    (tmp_path / "d" / ".link.spool").symlink_to("/etc/passwd")
    (spool,) = (tmp_path / "d").glob(".work*.spool")
    (tmp_path / "d" / ".copy.spool").write_bytes(spool.read_bytes()[:9000])
    look(program, tmp_path, 5)
    program.kill()
    done = dftracer("top", "d", "--once", "--interval", "0.1", cwd=tmp_path, expect=1)
    assert done.stdout == "no traced process is running in d\n"
    done = dftracer("top", "d", "--once", "--json", "--interval", "0.1", cwd=tmp_path)
    assert json.loads(done.stdout)["processes"] == []


def test_in_a_pipe_it_ends_with_the_program(program: Program, tmp_path: Path) -> None:
    top = looking(tmp_path, "--interval", "0.3")
    assert top.stdout is not None
    assert top.stdout.readline().startswith("d: 1 process, ")
    program.end()
    assert top.stdout.read().splitlines()[-1] == "no traced process is running in d"
    assert top.wait(timeout=HANG) == 1


def test_the_directory_is_found(program: Program, tmp_path: Path) -> None:
    (tmp_path / "d").rename(tmp_path / "dftracer-work-1")
    (tmp_path / "dftracer-old-2").mkdir()
    done = dftracer("top", "--once", "--interval", "0.1", cwd=tmp_path)
    assert done.stdout.startswith("dftracer-work-1: 1 process, ")


class Terminal:
    def __init__(self, cwd: Path) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            words = [str(COMMAND), "top", "d", "--interval", "0.2"]
            os.execve(COMMAND, words, environment({"TERM": "xterm"}))
        self.text = ""

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def until(self, text: str) -> str:
        end = time.monotonic() + HANG
        while text not in self.text:
            assert time.monotonic() < end, f"{text!r} did not come; got {self.text[-2000:]!r}"
            if select.select([self.fd], [], [], 1)[0]:
                try:
                    self.text += os.read(self.fd, 65536).decode()
                except OSError:
                    raise AssertionError(f"ended before {text!r}: {self.text[-2000:]!r}") from None
        before, found, self.text = self.text.partition(text)
        return before + found

    def end(self) -> int:
        while True:
            try:
                piece = os.read(self.fd, 65536)
            except OSError:
                break
            if not piece:
                break
            self.text += piece.decode()
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.fd)
        return code


@pytest.mark.parametrize("how", ["q", "\x03", "term"])
def test_on_a_terminal(how: str, program: Program, tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    terminal.resize(24, 90)
    terminal.until("\033[?1049h")
    program.work(10)
    terminal.until("python work.py")
    terminal.until("events/s")
    terminal.resize(8, 40)
    frames = terminal.until("\033[J") + terminal.until("\033[J") + terminal.until("\033[J")
    last = frames.rpartition("\033[H")[2].replace("\033[K", "").replace("\033[J", "")
    lines = last.replace("\033[1m", "").replace("\033[0m", "").split("\r\n")
    assert len(lines) <= 8
    assert max(map(len, lines)) <= 40
    if how == "term":
        os.kill(terminal.pid, signal.SIGTERM)
    else:
        os.write(terminal.fd, how.encode())
    assert terminal.end() == {"q": 0, "\x03": 130, "term": 143}[how]
    assert terminal.text.endswith("\033[?25h\033[?1049l")

"""`dftracer run` on a terminal: what a program sees of it, keys, and the shell's job control."""

from __future__ import annotations

import os
import pty
import select
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command import COMMAND, environment
from support.limits import HANG


class Terminal:
    """A program in a session of its own, on a terminal whose other end is ours."""

    def __init__(self, words: list[str], cwd: Path) -> None:
        self.text = ""
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execve(words[0], words, {**environment(), "PS1": "", "TERM": "xterm"})

    def type(self, keys: str) -> None:
        os.write(self._fd, keys.encode())

    def until(self, text: str, seconds: float = HANG) -> str:
        """Reads up to a text; what came before it and it."""
        end = time.monotonic() + seconds
        while text not in self.text:
            left = end - time.monotonic()
            assert left > 0, f"{text!r} did not come; got {self.text!r}"
            if select.select([self._fd], [], [], left)[0]:
                try:
                    piece = os.read(self._fd, 65536)
                except OSError:  # its other end is closed
                    piece = b""
                assert piece, f"{text!r} did not come; got {self.text!r}"
                self.text += piece.decode().replace("\r\n", "\n")
        before, found, self.text = self.text.partition(text)
        return before + found

    def end(self) -> int:
        """Waits; the exit code, or the negative of the signal."""
        while select.select([self._fd], [], [], HANG)[0]:
            try:
                piece = os.read(self._fd, 65536)
            except OSError:
                break
            if not piece:
                break
            self.text += piece.decode().replace("\r\n", "\n")
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def close(self) -> None:
        os.close(self._fd)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Terminal]:
    """An interactive bash, with job control."""
    terminal = Terminal(["/bin/bash", "--norc", "--noprofile", "-i"], tmp_path)
    terminal.type("stty -echo; echo be''gin\n")
    terminal.until("begin\n")
    yield terminal
    os.kill(terminal.pid, signal.SIGKILL)
    os.waitpid(terminal.pid, 0)
    terminal.close()


RUN = f"{COMMAND} run -o d --"


def test_the_program_has_the_terminal(tmp_path: Path) -> None:
    show = (
        "import os, sys; print([os.isatty(n) for n in range(3)], os.getpgrp() == os.tcgetpgrp(0))"
    )
    terminal = Terminal([str(COMMAND), "run", "-o", "d", "--", "python", "-c", show], tmp_path)
    assert terminal.end() == 0
    terminal.close()
    assert "[True, True, True] True\n" in terminal.text
    assert "dftracer: 1 process" in terminal.text


def test_interrupt_reaches_the_program_once_and_it_decides(shell: Terminal) -> None:
    program = (
        "import time\\nfor n in range(2):\\n  try:\\n    print('re' + 'ady', n, flush=True)\\n"
        "    time.sleep(600)\\n  except KeyboardInterrupt: print('stop' + 'ped', n, flush=True)\\n"
    )
    shell.type(f"printf \"{program}\" > p.py; {RUN} python p.py; echo st''atus $?\n")
    for n in range(2):
        shell.until(f"ready {n}\n")
        shell.type("\x03")
        shell.until(f"stopped {n}\n")
    assert "1 process" in shell.until("status 0\n")


def test_a_program_killed_by_interrupt_ends_the_loop_around_it(shell: Terminal) -> None:
    shell.type(f"for n in 1 2 3; do {RUN} cat; done; echo en''d $?\n")
    shell.type("ready\n")
    shell.until("ready\n")
    shell.type("\x03")
    shell.until("dftracer: next")
    shell.type("echo af''ter\n")
    assert "dftracer:" not in shell.until("after\n")


def test_stop_and_continue(shell: Terminal) -> None:
    """Both used to stop by the key; one that was continued late took it for a second stop."""
    shell.type(f"{RUN} cat; echo sta''tus $?\n")
    for n in range(8):
        shell.type(f"line {n}\n")
        shell.until(f"line {n}\n")
        shell.type("\x1a")
        shell.until("Stopped")
        shell.type("jobs; echo jobs-e''nd\n")
        assert "Stopped" in shell.until("jobs-end\n")
        shell.type("fg\n")
        shell.until("cat")
    shell.type("last\n")
    shell.until("last\n")
    shell.type("\x04")
    shell.until("dftracer: next")


def test_a_program_that_ignores_the_key_goes_on(shell: Terminal) -> None:
    shell.type(f"{RUN} sh -c \"trap '' TSTP; echo re''ady; cat\"; echo stat''us $?\n")
    shell.until("ready\n")
    shell.type("\x1a")
    shell.type("still here\n")
    shell.until("still here\n")
    shell.type("\x04")
    assert "Stopped" not in shell.until("status 0\n")


def test_a_stop_sent_to_the_command_stops_the_program(tmp_path: Path, shell: Terminal) -> None:
    shell.type(f"{RUN} sh -c 'echo $PPID > pid; exec cat'; echo sta''tus $?\n")
    shell.type("one\n")
    shell.until("one\n")
    command = int((tmp_path / "pid").read_text())
    os.kill(command, signal.SIGTSTP)
    shell.until("Stopped")
    shell.type("fg\n")
    shell.until("cat")
    shell.type("two\n")
    shell.until("two\n")
    shell.type("\x04")
    shell.until("dftracer: next")


def test_a_program_that_stops_itself_stops_the_job(shell: Terminal) -> None:
    shell.type(f"{RUN} sh -c 'kill -STOP $$; echo we''nt on; exit 5'\n")
    shell.until("Stopped")
    shell.type("fg; echo stat''us $?\n")
    shell.until("went on\n")
    shell.until("status 5\n")


def test_in_the_background(shell: Terminal) -> None:
    shell.type(f"{RUN} sh -c 'echo in-ba''ck; exit 4' & wait $!; echo stat''us $?\n")
    text = shell.until("status 4\n")
    assert "in-back" in text

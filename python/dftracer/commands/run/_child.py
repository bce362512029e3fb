"""The traced program as our child: it gets our terminal and signals, and we exit as it does."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import shutil
import signal
from collections.abc import Mapping, Sequence

# Forwarded if sent to us. What a terminal sends reaches the child anyway: it is in the same process
# group.
_PASSED_ON = {
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGALRM,
    signal.SIGVTALRM,
    signal.SIGPROF,
    signal.SIGWINCH,
    signal.SIGURG,
    signal.SIGIO,
    signal.SIGPWR,
    signal.SIGXCPU,
}
# They stop us only when the child has stopped: the shell then sees one job that stops once.
_STOPPING = {signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
# Python ignores these for itself; the child gets the default action back.
_IGNORED_BY_PYTHON = [signal.SIGPIPE, signal.SIGXFSZ]
_FROM_KERNEL = 0x80  # SI_KERNEL: a key of the terminal


class CannotStart(Exception):
    """The program cannot be executed; `exit_code` is what shells give for it."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class Status:
    """How the child ended."""

    def __init__(self, wait_status: int) -> None:
        self.code = os.waitstatus_to_exitcode(wait_status)

    def leave(self) -> int:
        """The same end for us: a signal that killed the child kills us, too."""
        if self.code >= 0:
            return self.code
        number = -self.code
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
        os.kill(os.getpid(), number)
        return 128 + number  # the first process of a container is not killed by its own signals


class Child:
    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._watched = {*_PASSED_ON, *_STOPPING, signal.SIGCHLD}
        # From here on signals are blocked, so that none is lost between start and wait.
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, self._watched)
        try:
            self._pid = self._start(command, environment)
        except BaseException:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
            raise
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # only now: ignored, the child inherits it

    def _start(self, command: Sequence[str], environment: Mapping[str, str]) -> int:
        program = command[0]
        try:
            return self._spawn(program, command, environment)
        except OSError as error:
            if error.errno == errno.ENOEXEC:
                # A script without `#!`, which every shell runs by itself.
                path = program if "/" in program else shutil.which(program) or program
                return self._spawn("/bin/sh", ["/bin/sh", path, *command[1:]], environment)
            raise _explain(program, error) from None
        except ValueError as error:  # a null byte
            raise CannotStart(f"{program!r}: {error}", 126) from None

    def _spawn(self, program: str, command: Sequence[str], environment: Mapping[str, str]) -> int:
        return os.posix_spawnp(
            program, list(command), environment, setsigmask=self._mask, setsigdef=_IGNORED_BY_PYTHON
        )

    def wait(self) -> Status:
        try:
            return self._wait()
        finally:
            # Pending signals were meant for the child, which is gone.
            while signal.sigtimedwait(self._watched, 0) is not None:
                pass
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    def _wait(self) -> Status:
        stopped = False
        while True:
            try:
                pid, status = os.waitpid(self._pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
            except ChildProcessError:  # SIGCHLD was ignored when we started: the status is lost
                return Status(0)
            if pid == 0 and stopped:
                # Continued, and the child not. A shell continues the whole group; others only us.
                os.kill(self._pid, signal.SIGCONT)
                stopped = False
            elif pid == 0:
                info = signal.sigwaitinfo(self._watched)
                if info.si_signo != signal.SIGCHLD:
                    self._pass_on(info)
            elif os.WIFSTOPPED(status):
                stopped = self._stop_too()
            elif os.WIFCONTINUED(status):
                stopped = False
            else:
                return Status(status)

    def _pass_on(self, info: signal.struct_siginfo) -> None:
        if info.si_code == _FROM_KERNEL or self._is_kin(info.si_pid):
            return
        with contextlib.suppress(OSError):  # a child of another user
            os.kill(self._pid, info.si_signo)

    def _is_kin(self, pid: int) -> bool:
        """A descendant that signals the whole group has reached the child already."""
        for _ in range(64):
            if pid == self._pid:
                return True
            if pid <= 1 or pid == os.getpid():
                return False
            pid = _parent_of(pid)
        return False

    def _stop_too(self) -> bool:
        """The child has stopped, by a key or by itself: stop as well, so that the shell sees it."""
        if _state_of(self._pid) != "T":
            return False
        os.kill(os.getpid(), signal.SIGSTOP)
        return True


def _explain(program: str, error: OSError) -> CannotStart:
    where = program if "/" in program or program in (".", "..") else shutil.which(program)
    if error.errno == errno.ENOENT:
        if where is None:
            return CannotStart(f"{program}: no such program in PATH", 127)
        if not os.path.exists(where):
            return CannotStart(f"{program}: no such program", 127)
        return CannotStart(f"{program}: its interpreter or loader is missing", 127)
    reason = error.strerror
    if error.errno == errno.EACCES and where is not None and os.path.isdir(where):
        reason = "is a directory"
    elif error.errno == errno.EACCES and program.endswith(".py"):
        reason = f"not executable; did you mean: dftracer run -- python {program}"
    elif error.errno == errno.EACCES:
        reason = "not executable"
    code = 127 if error.errno in (errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG) else 126
    return CannotStart(f"{program}: {reason}", code)


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name; empty if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


def _parent_of(pid: int) -> int:
    fields = _stat(pid)
    return int(fields[1]) if len(fields) > 1 else 0


def _state_of(pid: int) -> str:
    return (_stat(pid) or ["X"])[0]

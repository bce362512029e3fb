"""LTTng-UST as a second peer: its daemon, and a recording session around each measured program.

The wrapper library that it needs to see file I/O is built from programs/lttng.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from errors import BenchError

HERE = Path(__file__).resolve().parent / "programs" / "lttng"
# Where the daemon's own defaults lose events; 8 MiB for each core.
CHANNEL = ("--subbuf-size=1M", "--num-subbuf=8")
SECONDS = 30


@dataclass
class Recording:
    """What became of a session."""

    lost: int = 0


class Lttng:
    """A daemon of our own with a home of its own; `stop` ends it and removes the home."""

    def __init__(self, wanted: bool = True) -> None:
        self._wanted = wanted
        self._daemon: subprocess.Popen[bytes] | None = None
        self._home: Path | None = None
        self._library: Path | None = None

    @property
    def environment(self) -> dict[str, str]:
        # A program waits for the daemon before main; under valgrind that takes longer than 3 s.
        wait = {"LTTNG_UST_REGISTER_TIMEOUT": str(SECONDS * 1000)}
        return {"LD_PRELOAD": str(self._library), "LTTNG_HOME": str(self._home), **wait}

    def start(self, out: Path) -> str:
        """Empty if all is well, otherwise why LTTng-UST cannot be measured."""
        if not self._wanted:
            return "left out"
        if shutil.which("lttng") is None or shutil.which("lttng-sessiond") is None:
            return "lttng-tools is not installed"
        self._library = out / "liblttng_io.so"
        command = ["cc", "-std=gnu11", "-O2", "-g", "-shared", "-fPIC", f"-I{HERE}"]
        command += ["-o", str(self._library), str(HERE / "wrapper.c"), "-llttng-ust", "-ldl"]
        if subprocess.run(command, check=False, capture_output=True).returncode != 0:
            return "liblttng-ust-dev is not installed"
        self._home = Path(tempfile.mkdtemp(prefix="bench-lttng-"))
        # The daemon of the system, where one runs, serves as well, and is not ours to stop.
        if not self._answers():
            self._daemon = subprocess.Popen(
                ["lttng-sessiond", "--no-kernel", "--quiet"],
                env=self._client_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            deadline = time.monotonic() + SECONDS
            while not self._answers():
                if self._daemon.poll() is not None or time.monotonic() > deadline:
                    self.stop()
                    return "lttng-sessiond does not start"
                time.sleep(0.1)
        return ""

    def stop(self) -> None:
        if self._daemon is not None:
            self._daemon.terminate()
            try:
                self._daemon.wait(SECONDS)
            except subprocess.TimeoutExpired:
                self._daemon.kill()
                self._daemon.wait()
            self._daemon = None
        if self._home is not None:
            shutil.rmtree(self._home, ignore_errors=True)
            self._home = None

    @contextmanager
    def recording(self, output: Path) -> Iterator[Recording]:
        """Everything that programs do within is recorded into the directory `output`."""
        name = f"bench-{os.getpid()}"
        seen = Recording()
        self._tell("create", name, f"--output={output}")
        try:
            self._tell("enable-channel", "--userspace", f"--session={name}", *CHANNEL, "io")
            events = ("--channel=io", "bench_io:*")
            self._tell("enable-event", "--userspace", f"--session={name}", *events)
            self._tell("start", name)
            yield seen
            self._tell("stop", name)
            lost = re.findall(r"(?:Discarded events|Lost packets): (\d+)", self._tell("list", name))
            seen.lost = sum(map(int, lost))
        finally:
            self._tell("destroy", name)

    def _answers(self) -> bool:
        return self._run("list").returncode == 0

    def _tell(self, *words: str) -> str:
        result = self._run(*words)
        if result.returncode != 0:
            raise BenchError(f"lttng {' '.join(words)}: {result.stderr or result.stdout}")
        return result.stdout

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["lttng", "--no-sessiond", *words],
            env=self._client_environment(),
            check=False,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )

    def _client_environment(self) -> dict[str, str]:
        return {**os.environ, "LTTNG_HOME": str(self._home)}

"""Traces that were never recorded: programs whose every time and byte is known beforehand."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Microseconds of the epoch at which all of them begin.
BEGIN = 1_794_800_000_000_000


def digest(text: str) -> str:
    return hashlib.md5(text.encode()).hexdigest()[:16]


@dataclass
class Program:
    """One process. Times are microseconds since BEGIN."""

    pid: int = 100
    ppid: int = 1
    host: str = "node1"
    rank: int | None = None
    command: str = "python;train.py"
    run: str = ""
    begin: int = 0  # of its start record
    lines: list[str] = field(default_factory=list)
    known: set[str] = field(default_factory=set)
    now: int = 0
    last_id: int = 0

    def __post_init__(self) -> None:
        self._meta("HH", self.host, digest(self.host))
        self._meta("SH", self.command, digest(self.command))
        if self.rank is not None:
            self._meta("PR", "rank", str(self.rank))
        facts = {"ppid": self.ppid, "cmd_hash": digest(self.command), "version": "v0"}
        if self.run:
            facts |= {"run": digest(self.run), "proc": digest(f"{self.run} {self.pid}")}
        self._line("start", "dftracer", BEGIN + self.begin, 0, facts)

    def _id(self) -> int:
        self.last_id += 1
        return self.last_id

    def _meta(self, name: str, what: str, value: str) -> None:
        args = {"hhash": digest(self.host), "name": what, "value": value}
        record = {"id": self._id(), "name": name, "cat": "dftracer", "pid": self.pid,
                  "tid": self.pid, "ph": "M", "args": args}  # fmt: skip
        self.lines.append(json.dumps(record, separators=(",", ":")))

    def _line(
        self, name: str, cat: str, ts: int, dur: int, args: dict[str, Any], tid: int = 0
    ) -> None:
        record = {"id": self._id(), "name": name, "cat": cat, "pid": self.pid,
                  "tid": tid or self.pid, "ts": ts, "dur": dur, "ph": "X",
                  "args": {"hhash": digest(self.host), **args}}  # fmt: skip
        self.lines.append(json.dumps(record, separators=(",", ":")))

    def span(
        self, cat: str, name: str, dur: int, at: int | None = None, tid: int = 0, **args: Any
    ) -> int:
        """At a time, or else now, which then is its end. Gives its beginning."""
        start = self.now if at is None else at
        if at is None:
            self.now += dur
        file = args.pop("file", None)
        if file is not None:
            if file not in self.known:
                self.known.add(file)
                self._meta("FH", file, digest(file))
            args["fhash"] = digest(file)
        self._line(name, cat, BEGIN + start, dur, args, tid)
        return start

    def read(self, file: str, size: int, dur: int, at: int | None = None, **args: Any) -> int:
        return self.span("POSIX", args.pop("name", "read"), dur, at, file=file, count=size,
                         ret=size, **args)  # fmt: skip

    def write(self, directory: Path, ended: bool = True, **facts: Any) -> Path:
        """facts: further arguments of the end record."""
        lines = list(self.lines)
        if ended:
            told = {"num_events": len(lines), **facts}
            self._line("end", "dftracer", BEGIN + self.now, 0, told)
            lines.append(self.lines.pop())
        path = directory / f"t-{self.host}-{self.run}{self.pid}.pfw"
        path.write_text("[\n" + "".join(line + "\n" for line in lines))
        return path


def training(
    pid: int = 100,
    rank: int | None = None,
    steps: int = 20,
    epochs: int = 2,
    fetch: int = 100,
    compute: int = 10_000,
    gap: int = 50,
    transfer: int = 20,
    comm: int = 30,
    **facts: Any,
) -> Program:
    """A training loop: fetch, transfer, forward and backward, all-reduce, a gap."""
    program = Program(pid=pid, rank=rank, **facts)
    for epoch in range(epochs):
        for step in range(steps):
            told = {"epoch": epoch, "step": epoch * steps + step}
            program.span("dataloader", "fetch", fetch, **told)
            program.span("device", "transfer", transfer, **told)
            program.span("compute", "forward", compute // 2, **told)
            program.span("compute", "backward", compute - compute // 2, **told)
            program.span("comm", "all_reduce", comm, **told)
            program.now += gap
    return program


def build(place: Path) -> None:
    """A shell that runs make, which runs two compilers at once: 100 and 300 ms of 400."""
    lives = {
        100: (1, "sh;-c;make", 0, 400, 1, 0),
        101: (100, "make;-j2", 10, 390, 5, 10),
        102: (101, "/usr/bin/cc;-c;a.c", 20, 120, 90, 20),
        103: (101, "/usr/bin/cc;-c;b.c", 50, 350, 250, 40),
    }
    for pid, (ppid, command, start, end, cpu, reading) in lives.items():
        program = Program(pid=pid, ppid=ppid, command=command, begin=start * 1000)
        if reading:
            program.read(f"/src/{pid}.c", 1000 * pid, reading * 1000, at=start * 1000)
        if pid < 102:
            program.span("POSIX", "waitpid", (end - start) * 1000 - reading * 1000,
                         at=(start + reading) * 1000)  # fmt: skip
        program.now = end * 1000
        program.write(place, cpu_us=cpu * 1000)

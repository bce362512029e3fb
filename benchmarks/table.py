"""Rows of the result, and where they are shown: on the terminal and in docs/performance.md."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

BEGIN = "<!-- bench:begin -->"
END = "<!-- bench:end -->"
HEAD = ("measure", "bar", "bare", "ours", "peer (dftracer 2.2.0)", "LTTng-UST", "verdict")
FLAGS = ("constant_tsc", "nonstop_tsc", "avx2", "avx512f", "pclmulqdq", "vpclmulqdq", "hypervisor")


@dataclass
class Row:
    measure: str
    bar: str = ""
    bare: str = ""
    ours: str = ""
    peer: str = ""
    met: bool | None = None
    values: dict[str, Any] = field(default_factory=dict)
    lttng: str = ""
    # Of peers that only one table has, by the heads of their columns.
    others: dict[str, str] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        return {True: "met", False: "**missed**", None: ""}[self.met]

    def cells(self, others: Sequence[str] = ()) -> tuple[str, ...]:
        peers = (self.peer, self.lttng, *(self.others.get(name, "") for name in others))
        return (self.measure, self.bar, self.bare, self.ours, *peers, self.verdict)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def markdown(title: str, rows: Sequence[Row], notes: str = "") -> str:
    """A table with its title, and the notes of a file; empty columns are left out."""
    others = list(dict.fromkeys(name for row in rows for name in row.others))
    head = (*HEAD[:-1], *others, HEAD[-1])
    lines = [head, tuple("---" for _ in head), *(row.cells(others) for row in rows)]
    used = [i for i in range(len(head)) if any(line[i] for line in lines[2:])]
    table = ("| " + " | ".join(line[i] for i in used) + " |" for line in lines)
    text = (Path(__file__).parent / notes).read_text(encoding="utf-8").rstrip() if notes else ""
    return "\n\n".join(filter(None, (f"**{title}**", "\n".join(table), text)))


def _first(path: str, key: str) -> str:
    try:
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                if line.startswith(key):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return ""


def machine() -> str:
    """Enough to judge the figures by; nothing that names the machine."""
    flags = set(_first("/proc/cpuinfo", "flags").split())
    shown = " ".join(flag for flag in FLAGS if flag in flags) or "not known"
    model = _first("/proc/cpuinfo", "model name") or platform.machine()
    cores = len(os.sched_getaffinity(0))
    kernel = platform.release().split("-")[0]
    libc = " ".join(platform.libc_ver())
    return f"{cores} cores ({model}; of its flags: {shown}), Linux {kernel}, {libc}"


def write_document(path: Path, text: str) -> None:
    """Replaces what stands between the markers; the rest of the document is written by hand."""
    document = path.read_text(encoding="utf-8")
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{path} has no {BEGIN} and {END}")
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")

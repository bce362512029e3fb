"""dftracer.trace.summary: what a trace holds, by process and by name."""

from __future__ import annotations

import json
from pathlib import Path

from dftracer.trace.summary import summarise


def event(**fields: object) -> str:
    return json.dumps({"id": 7, "name": "n", "cat": "c", "pid": 5, "tid": 5, "ts": 10, **fields})


def test_a_counter_belongs_to_the_process_of_its_pid(tmp_path: Path) -> None:
    trace = tmp_path / "t.pfw"
    lines = [
        "[",
        event(ph="X", dur=3, args={"hhash": "ab", "p_idx": -1, "level": 1}),
        event(ph="C", name="memory", args={"value": 1.5}),
    ]
    trace.write_text("\n".join(lines) + "\n")
    summary = summarise(trace)
    assert list(summary.processes) == [(5, "ab")]
    assert summary.events == 2


def test_equal_pids_of_two_hosts_are_two_processes(tmp_path: Path) -> None:
    trace = tmp_path / "t.pfw"
    lines = ["[", *(event(ph="X", dur=1, args={"hhash": host}) for host in ("aa", "bb"))]
    trace.write_text("\n".join(lines) + "\n")
    assert list(summarise(trace).processes) == [(5, "aa"), (5, "bb")]

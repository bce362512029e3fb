"""Checks that run by the dozen in one process of their own: see programs/checks.py."""

from __future__ import annotations

import gzip
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from support import traces
from support.build import file_lock
from support.run import run
from support.traces import Record, Trace

PROGRAMS = Path(__file__).parent / "programs"


def names_of(program: str) -> list[str]:
    """The checks of a program, without importing it."""
    text = (PROGRAMS / f"{program}.py").read_text()
    return re.findall(r"^@check\([^@]*?\)\n(?:async )?def (\w+)", text, re.MULTILINE)


def text_of(event: Record, ids: dict[int, Record]) -> str:
    """Names from the outermost event to this one, less the check's own, and the arguments."""
    names = [event["name"]]
    above = event
    while above["args"]["p_idx"] != -1:
        if above["args"]["p_idx"] not in ids:
            names.append("?")  # which is a fault of its own
            break
        above = ids[above["args"]["p_idx"]]
        if above["cat"] == "check":
            break
        names.append(above["name"])
    args = [
        f" {key}={json.dumps(value)}"
        for key, value in event["args"].items()
        if key not in ("hhash", "p_idx", "level", "busy")
    ]
    return "/".join(reversed(names)) + "".join(args)


def _root(event: Record, ids: dict[int, Record]) -> Record:
    while event["args"]["p_idx"] in ids:
        event = ids[event["args"]["p_idx"]]
    return event


def by_check(trace: Trace) -> dict[str, list[str]]:
    """What was recorded in each check. Events of other threads belong to the one of their time."""
    ids = trace.by_id()
    checks = [event for event in trace.recorded if event["cat"] == "check"]
    found: dict[str, list[str]] = {event["name"]: [] for event in checks}
    assert len(found) == len(checks)
    for event in trace.recorded:
        if event["cat"] == "check":
            continue
        root = _root(event, ids)
        if root["cat"] != "check":
            root = next(c for c in checks if c["ts"] <= event["ts"] <= c["ts"] + c["dur"])
        if "busy" in event["args"]:
            assert 0 <= event["args"]["busy"] <= event["dur"], event
        found[root["name"]].append(text_of(event, ids))
    return found


def alike(expected: list[str], recorded: list[str]) -> bool:
    """`*/` stands for any way from the outermost event to this one."""
    return len(expected) == len(recorded) and all(
        found.rsplit("/", 1)[-1] == text[2:] if text.startswith("*/") else found == text
        for text, found in zip(expected, recorded)
    )


def read(directory: Path) -> tuple[Trace, str]:
    """The trace, and what is wrong with it: one bad event does not hide what came of the rest."""
    try:
        return traces.read_one(directory), ""
    except traces.TraceError as error:
        path = next(iter(traces.files(directory)))
        lines = gzip.decompress(path.read_bytes()).splitlines()[1:]
        return Trace(path, lines, [traces.parse_line(line) for line in lines]), str(error)


@dataclass
class Theme:
    """What came of the checks of one program."""

    problems: dict[str, str]
    events: dict[str, tuple[list[str], list[str]]]  # expected, found
    trace: Trace | None
    trace_problem: str
    stderr: str

    def wrong(self, name: str) -> str:
        """What is wrong with a check, for each way to record. Empty when nothing is."""
        found = []
        for key, problem in self.problems.items():
            check, way = key.split(".")
            if check != name:
                continue
            expected, recorded = self.events.get(key, ([], []))
            if way == "pinned":
                # Its own arguments stand before what the event says of itself.
                expected = [re.sub(r"(?<=\bforward)(?=$| )", " a=1", text) for text in expected]
            if problem:
                found.append(f"{key}\n{problem}")
            elif not alike(expected, recorded):
                found.append(f"{key}\nexpected: {expected}\nrecorded: {recorded}")
        return "\n".join(found)

    def verify(self, *names: str) -> None:
        wrong = [text for text in map(self.wrong, names) if text]
        if wrong:
            pytest.fail("\n".join(wrong), pytrace=False)
        missing = [
            name for name in names if not any(k.startswith(f"{name}.") for k in self.problems)
        ]
        assert missing == [], self.stderr


def run_theme(program: str, directory: Path, *flags: str, enable: bool = True) -> Theme:
    """Runs the program, unless another worker of pytest has: then its results are there."""
    said_by = directory.with_suffix(".json")
    with file_lock(directory.with_suffix(".lock")):
        if not said_by.exists():
            directory.mkdir(parents=True)
            done = run(
                sys.executable,
                *flags,
                PROGRAMS / f"{program}.py",
                cwd=directory,
                env={"DFTRACER_SUMMARY": "0", "PYTHONDONTWRITEBYTECODE": "1"},
                enable=enable,
                expect=None,
                stderr=None,
            )
            said_by.write_text(json.dumps([done.rc, done.stdout, done.stderr]))
    return _theme(directory, enable, *json.loads(said_by.read_text()))


def _theme(directory: Path, enable: bool, status: int, stdout: str, stderr: str) -> Theme:
    said = [json.loads(line) for line in stdout.splitlines() if line.startswith("{")]
    ended = {line["end"]: line for line in said if "end" in line}
    problems = {key: line["problem"] for key, line in ended.items()}
    unfinished = [line["begin"] for line in said if "begin" in line and line["begin"] not in ended]
    for key in unfinished or ["the program.end"] * (status != 0):
        problems[key] = f"ended with status {status}: {stderr}"
    trace, trace_problem = None, ""
    events: dict[str, tuple[list[str], list[str]]] = {}
    if enable and not unfinished:
        trace, trace_problem = read(directory)
        recorded = by_check(trace)
        for key, line in ended.items():
            order = sorted if line["any_order"] else list
            events[key] = (order(line["events"]), order(recorded.get(key, [])))
    return Theme(problems, events, trace, trace_problem, stderr)

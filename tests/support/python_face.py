"""For tests of the Python annotations: run a program, and say what its trace holds in short."""

from __future__ import annotations

import math
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support.run import Result, run
from support.traces import Record, Trace, read_one

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"

# (category, names from the outermost event to this one, what the program said of it)
Shape = tuple[str, str, dict[str, Any]]


def run_python(
    program: str | Path,
    *words: str | Path,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    **how: Any,
) -> Result:
    """`program` is a file, or the text of one."""
    if isinstance(program, str):
        path = cwd / "program.py"
        path.write_text(textwrap.dedent(program), encoding="utf-8")
        program = path
    # Bytecode beside the examples would make the tests write into the source tree.
    return run(
        sys.executable,
        program,
        *words,
        cwd=cwd,
        env={"PYTHONDONTWRITEBYTECODE": "1", **(env or {})},
        **how,
    )


def trace_of(program: str | Path, cwd: Path, **how: Any) -> Trace:
    """Runs a program that leaves one trace in its directory."""
    run_python(program, cwd=cwd, **how)
    return read_one(cwd)


def own(record: Record) -> dict[str, Any]:
    """The arguments that are not the tracer's."""
    return {
        key: value
        for key, value in record["args"].items()
        if key not in ("hhash", "p_idx", "level", "busy")
    }


def path_of(record: Record, ids: Mapping[int, Record]) -> str:
    names = [record["name"]]
    while record["args"]["p_idx"] != -1:
        record = ids[record["args"]["p_idx"]]
        names.append(record["name"])
    return "/".join(reversed(names))


def shapes(trace: Trace) -> list[Shape]:
    """The program's events in the order of their ends. Of `busy` only that it makes sense."""
    ids = trace.by_id()
    out = []
    for record in trace.recorded:
        assert record["args"]["level"] == path_of(record, ids).count("/") + 1, record
        if "busy" in record["args"]:
            assert 0 <= record["args"]["busy"] <= record["dur"], record
        out.append((record["cat"], path_of(record, ids), own(record)))
    return out


def marks(trace: Trace) -> list[tuple[str, str]]:
    """Keys and values of the metadata that the program recorded."""
    return [(r["args"]["name"], r["args"]["value"]) for r in trace.metadata if r["name"] == "CM"]


def same(had: Any, wanted: Any) -> bool:
    """Equal and of equal types, all the way down; -0.0 is not 0.0."""
    if isinstance(wanted, float):
        return (
            isinstance(had, float)
            and had == wanted
            and math.copysign(1, had) == math.copysign(1, wanted)
        )
    if isinstance(wanted, list):
        return (
            isinstance(had, list)
            and len(had) == len(wanted)
            and all(same(a, b) for a, b in zip(had, wanted))
        )
    if isinstance(wanted, dict):
        return (
            isinstance(had, dict)
            and list(had) == list(wanted)
            and all(same(had[key], wanted[key]) for key in wanted)
        )
    return type(had) is type(wanted) and had == wanted

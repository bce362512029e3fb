"""Reads traces: files and records, without reports and commands.

`read(paths)` returns the events as an Arrow stream, `summarise_all(paths)` their statistics.
"""

from __future__ import annotations

from dftracer.trace.files import find_traces, is_trace, resolve, siblings
from dftracer.trace.stream import COLUMNS, Damage, Trace, read
from dftracer.trace.summary import Summary, TraceSummary, summarise, summarise_all

__all__ = [
    "COLUMNS",
    "Damage",
    "Summary",
    "Trace",
    "TraceSummary",
    "find_traces",
    "is_trace",
    "read",
    "resolve",
    "siblings",
    "summarise",
    "summarise_all",
]

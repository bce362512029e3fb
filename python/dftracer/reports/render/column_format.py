"""How the page, figures and notebooks show the cells of a report, by column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dftracer import _format
from dftracer._names import printable

# A path of 4 KB is of no use on a page; --csv and --parquet write it completely.
LONGEST_NAME = 240

# Columns whose name does not end in their unit.
_KINDS = {
    "lower": "binary",
    "upper": "binary",
    "bytes": "size",
    "mean_size": "size",
    "bandwidth": "rate",
    "share": "share",
    "before_share": "share",
    "after_share": "share",
    "ratio": "ratio",
    "amplification": "ratio",
    # Identifiers, not numbers with thousands separators.
    "pid": "label",
    "process": "label",
    "parent": "label",
    "rank": "label",
    "epoch": "label",
    "step": "label",
    "run": "label",
    "loader": "label",
    "pass": "label",
    "batch": "label",
    "worker": "label",
    "worker_process": "label",
    "straggler": "label",
    "last_rank": "label",
}
_MOMENTS = (
    *("first_ns", "last_ns", "start_ns", "end_ns", "ready_ns", "busiest_ns"),
    *("wanted_ns", "begun_ns", "arrived_ns", "handed_ns"),
)
_LABELS = {
    "cat": "category",
    "fname": "file",
    "dir": "directory",
    "overlap_percent": "overlap",
    "change": "what changes",
    "change_percent": "change",
    "low_percent": "at least",
    "high_percent": "at most",
    "hidden_percent": "share hidden",
    "late_ns": "late by",
    "median_late_ns": "late by, median",
    "longest_ns": "latest",
    "waited_ns": "waited for others",
    "faulting_ns": "in runs of page faults",
    "major_ns": "in major faults",
    "given_ns": "others waited",
    "net_ns": "net per step",
    "reason_ns": "more time in it",
    "step_low_ns": "step, at least",
    "step_high_ns": "step, at most",
    "job_low_ns": "job, at least",
    "job_high_ns": "job, at most",
    "file_ns": "time in file",
    "file_bytes": "read from file",
    "gc_ns": "garbage collection",
    "concerns_ns": "concerns",
    "before_share": "share before",
    "after_share": "share now",
    "dur_ns": "duration",
    "upper_ns": "below",
    "lower_ns": "from",
    "upper": "below",
    "lower": "from",
    "error_ns": "time of errors",
    "random_ns": "time of random",
    "io_ns": "I/O",
    "cpu_ns": "CPU",
    "cpu_wait_ns": "waits for a CPU",
    "read_ns": "time reading",
    "write_ns": "time writing",
    "unhidden_io_ns": "I/O not hidden",
    "hidden_io_ns": "I/O hidden",
    "ops": "I/O calls",
    "write_bytes": "written",
    "mean_size": "mean size",
    "requested_bytes": "requested",
    "ttfb_p50_ns": "first byte, median",
    "ttfb_p99_ns": "first byte, p99",
    "small_ns": "time of small",
    "small_bytes": "bytes of small",
    "retry_ns": "time of retried",
}


def kind_of(column: str, kind: str = "text") -> str:
    """time, moment, size, binary, rate, percent, share, ratio, count, label or text."""
    if column in _MOMENTS:
        return "moment"
    if column in _KINDS:
        return _KINDS[column]
    for suffix, meant in (("_ns", "time"), ("_bytes", "size"), ("_percent", "percent")):
        if column.endswith(suffix):
            return meant
    return "count" if kind in ("int", "float") else "text"


def label(column: str) -> str:
    """The heading of a column on the page."""
    if column in _LABELS:
        return _LABELS[column]
    for suffix in ("_ns", "_bytes"):
        if column.endswith(suffix):
            column = column[: -len(suffix)]
    return column.replace("_", " ")


def clean(name: object, longest: int = LONGEST_NAME) -> str:
    """A name that may contain anything: control characters become visible, and the middle of a
    very long name is left out."""
    text = printable(str(name))
    if len(text) > longest:
        ends = (longest - 1) // 2
        text = f"{text[:ends]}…{text[-ends:]}"
    return text


_WRITERS: dict[str, Callable[[float], str]] = {
    "time": _format.duration,
    "size": _format.size,
    "binary": lambda value: _format.binary_size(int(value)),
    "rate": _format.rate,
    "percent": lambda value: _format.percent(value / 100),
    "share": _format.percent,
    "ratio": lambda value: f"{value:.2f} ×",
    "count": _format.count,
}


def cell(value: Any, kind: str, origin: int = 0) -> str:
    """A value as the page shows it. Points in time count from `origin`, the first event."""
    if value is None:
        return ""
    if kind == "moment":
        return _format.duration(value - origin)
    if kind in ("text", "label"):
        return clean(value)
    return _WRITERS[kind](value)


def measured(value: float, measure: object) -> str:
    """A value of a column that contains times and sizes."""
    if measure == "count":
        return _format.count(value)
    return (_format.size if str(measure).endswith("bytes") else _format.duration)(value)

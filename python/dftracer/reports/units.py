"""Numbers and names for people: what the page, the figures and the notebook write into cells."""

from __future__ import annotations

from typing import Any

# A path of 4 KB helps nobody on a page; the tables of --csv and --parquet hold it whole.
LONGEST_NAME = 240

_TIMES = ((1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s"), (60e9, "min"), (3600e9, "h"))
_SIZES = ((1.0, "B"), (1e3, "KB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB"), (1e15, "PB"))

# Columns whose name does not end in their unit.
_KINDS = {
    "lower": "size",
    "upper": "size",
    "bytes": "size",
    "mean_size": "size",
    "bandwidth": "rate",
    "share": "share",
    "before_share": "share",
    "after_share": "share",
    "ratio": "ratio",
    # Names by which things are known, not numbers to be grouped in thousands.
    "pid": "label",
    "process": "label",
    "parent": "label",
    "rank": "label",
    "epoch": "label",
    "step": "label",
    "run": "label",
}
_MOMENTS = ("first_ns", "last_ns", "start_ns", "end_ns", "ready_ns", "busiest_ns")
_LABELS = {
    "cat": "category",
    "fname": "file",
    "dir": "directory",
    "overlap_percent": "overlap",
    "change_percent": "change",
    "low_percent": "at least",
    "high_percent": "at most",
    "concerns_ns": "concerns",
    "dur_ns": "duration",
    "upper_ns": "below",
    "lower_ns": "from",
    "upper": "below",
    "lower": "from",
    "io_ns": "I/O",
    "unhidden_io_ns": "I/O not hidden",
    "hidden_io_ns": "I/O hidden",
    "ops": "I/O calls",
    "write_bytes": "written",
    "mean_size": "mean size",
}


def kind_of(column: str, kind: str = "text") -> str:
    """time, moment, size, rate, percent, share, ratio, count, label or text."""
    if column in _MOMENTS:
        return "moment"
    if column in _KINDS:
        return _KINDS[column]
    for suffix, meant in (("_ns", "time"), ("_bytes", "size"), ("_percent", "percent")):
        if column.endswith(suffix):
            return meant
    return "count" if kind in ("int", "float") else "text"


def label(column: str) -> str:
    """What a column is called on the page."""
    if column in _LABELS:
        return _LABELS[column]
    for suffix in ("_ns", "_bytes"):
        if column.endswith(suffix):
            column = column[: -len(suffix)]
    return column.replace("_", " ")


def clean(name: object, longest: int = LONGEST_NAME) -> str:
    """A name may hold anything: what is no character of a text is made visible, and the middle of
    a very long one left out."""
    text = str(name)
    if not text.isprintable():
        text = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    if len(text) > longest:
        ends = (longest - 1) // 2
        text = f"{text[:ends]}…{text[-ends:]}"
    return text


def _digits(value: float) -> str:
    if value == 0:
        return "0"
    if abs(value) >= 999.5:
        return f"{value:,.0f}"
    return f"{float(f'{value:.3g}'):g}"


def _scaled(value: float, units: tuple[tuple[float, str], ...]) -> str:
    if value == 0:
        return "0"
    scale, unit = scale_of(value, units)
    return f"{_digits(value / scale)} {unit}"


def scale_of(largest: float, units: tuple[tuple[float, str], ...] = _TIMES) -> tuple[float, str]:
    """The unit in which a number is at least one, and how much of the base unit it is."""
    found = units[0]
    for scale, unit in units:
        # 999.9 ms are shown as 1 s.
        if abs(largest) >= scale * 0.9995:
            found = (scale, unit)
    return found


def size_scale(largest: float) -> tuple[float, str]:
    return scale_of(largest, _SIZES)


def duration(nanoseconds: float) -> str:
    if abs(nanoseconds) >= 90e9:
        seconds = round(nanoseconds / 1e9)
        sign = "-" if seconds < 0 else ""
        minutes, rest = divmod(abs(seconds), 60)
        hours, minutes = divmod(minutes, 60)
        if hours:
            return f"{sign}{hours:,} h {minutes:02} min"
        return f"{sign}{minutes} min {rest:02} s"
    return _scaled(nanoseconds, _TIMES[:4])


def size(number: float) -> str:
    return _scaled(number, _SIZES)


def percent(value: float) -> str:
    if value == 0:
        return "0 %"
    if abs(value) < 0.1:
        return "< 0.1 %" if value > 0 else "> -0.1 %"
    return f"{value:.1f} %" if abs(value) < 9.95 else f"{value:.0f} %"


def count(value: float) -> str:
    if float(value).is_integer():
        return f"{int(value):,}"
    return _digits(value)


_WRITERS = {
    "time": duration,
    "size": size,
    "rate": lambda value: f"{size(value)}/s",
    "percent": percent,
    "share": lambda value: percent(100 * value),
    "ratio": lambda value: f"{value:.2f} ×",
    "count": count,
}


def cell(value: Any, kind: str, origin: int = 0) -> str:
    """A value as the page shows it. Moments are told from `origin`, the job's first event."""
    if value is None:
        return ""
    if kind == "moment":
        return duration(value - origin)
    if kind in ("text", "label"):
        return clean(value)
    return _WRITERS[kind](value)


def binary(number: int) -> str:
    """Of a power of two, which decimal units would make crooked."""
    for power, unit in ((50, "Pi"), (40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki")):
        if number >= 1 << power:
            return f"{_digits(number / (1 << power))} {unit}B"
    return f"{number} B"


def measured(value: float, measure: object) -> str:
    """Of a table that holds times and sizes in one column."""
    if measure == "count":
        return count(value)
    return size(value) if str(measure).endswith("bytes") else duration(value)


def counted(number: int, noun: str, plural: str = "") -> str:
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"

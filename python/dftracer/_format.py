"""The one formatter of numbers, for commands, the terminal report and the page.

Times are nanoseconds, sizes bytes; units are powers of ten unless the name says otherwise.
"""

from __future__ import annotations

import re

Units = tuple[tuple[float, str], ...]

# ASCII, as `dftracer split --every 500us` takes it.
TIMES: Units = ((1.0, "ns"), (1e3, "us"), (1e6, "ms"), (1e9, "s"))
SIZES: Units = ((1.0, "B"), (1e3, "KB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB"), (1e15, "PB"))
# An axis uses a larger unit only if ten of them fit: no tick is a fraction of a minute.
AXIS_TIMES: Units = (*TIMES, (60e9, "min"), (3600e9, "h"))
_MINUTES_FROM = 90e9


def digits(value: float, most: int = 3) -> str:
    """A number with `most` significant digits: 125 with two is 120, not 1.2e+02."""
    if abs(value) >= 999.5:
        return f"{value:,.0f}"
    return f"{float(f'{value:.{most}g}'):g}"


def scale_of(value: float, units: Units = TIMES) -> tuple[float, str]:
    """The unit in which a number is at least one, and its size in base units."""
    found = units[0]
    for scale, unit in units:
        # 999.9 ms is shown as 1 s.
        if abs(value) >= scale * 0.9995:
            found = (scale, unit)
    return found


def axis_scale(largest: float) -> tuple[float, str]:
    """The unit of a time axis: seconds up to ten minutes, minutes up to ten hours."""
    found = scale_of(largest)
    for scale, unit in AXIS_TIMES[len(TIMES) :]:
        if largest >= 10 * scale:
            found = (scale, unit)
    return found


def size_scale(largest: float) -> tuple[float, str]:
    return scale_of(largest, SIZES)


def duration(nanoseconds: float, most: int = 3) -> str:
    if nanoseconds == 0:
        return "0 s"
    if abs(nanoseconds) < _MINUTES_FROM:
        scale, unit = scale_of(nanoseconds)
        return f"{digits(nanoseconds / scale, most)} {unit}"
    sign = "-" if nanoseconds < 0 else ""
    minutes, seconds = divmod(round(abs(nanoseconds) / 1e9), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{sign}{hours:,} h {minutes:02} min" if hours else f"{sign}{minutes} min {seconds:02} s"


def size(number: float) -> str:
    scale, unit = size_scale(number)
    return f"{digits(number / scale)} {unit}"


def binary_size(number: int) -> str:
    """For powers of two, which are not round in decimal units."""
    for power, unit in ((50, "Pi"), (40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki")):
        if number >= 1 << power:
            return f"{digits(number / (1 << power))} {unit}B"
    return f"{number} B"


def amount(number: float | None, unknown: int = 0) -> str:
    """Bytes that calls moved; `unknown` more calls moved an unknown number."""
    if number is None:
        return "unknown"
    return f"≥ {size(number)}" if unknown and number else size(number)


def rate(bytes_per_second: float) -> str:
    return f"{size(bytes_per_second)}/s"


def percent(share: float) -> str:
    """A share in percent: 0.31 is 31 %."""
    value = 100 * share
    if value != 0 and abs(value) < 0.1:
        return "< 0.1 %" if value > 0 else "> -0.1 %"
    return f"{digits(value, 2)} %" if abs(value) < 9.95 else f"{value:,.0f} %"


def count(value: float) -> str:
    return f"{int(value):,}" if float(value).is_integer() else digits(value)


_WITH_UNIT = re.compile(r"(?<=\d) (?=(?:[num]?s|min|h|[KMGTP]?i?B(?:/s)?|%|×)(?![\w]))")
NO_BREAK = "\N{NO-BREAK SPACE}"


def unbroken(text: str) -> str:
    """The text with no-break spaces between numbers and units."""
    return _WITH_UNIT.sub(NO_BREAK, text)


def counted(number: int, noun: str, plural: str = "") -> str:
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"

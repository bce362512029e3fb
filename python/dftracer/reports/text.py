"""Numbers of a report in words for people."""

from __future__ import annotations


def duration(nanoseconds: float) -> str:
    """Of nanoseconds, to three digits."""
    if nanoseconds == 0:
        return "0 s"
    for limit, unit in ((1e3, "ns"), (1e6, "us"), (1e9, "ms")):
        if abs(nanoseconds) < limit * 0.9995:
            return f"{_digits(nanoseconds / limit * 1e3)} {unit}"
    seconds = nanoseconds / 1e9
    return f"{_digits(seconds)} s" if abs(seconds) < 999.5 else f"{seconds:,.0f} s"


def size(number: float) -> str:
    """Of bytes."""
    if number < 1000:
        return f"{_digits(number)} B"
    for unit in ("KB", "MB", "GB", "TB"):
        number /= 1000
        if number < 999.5:
            return f"{_digits(number)} {unit}"
    return f"{number / 1000:,.0f} PB"


def rate(bytes_a_second: float | None) -> str:
    return "" if not bytes_a_second else f"{size(bytes_a_second)}/s"


def percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{_digits(100 * share, 2)} %"


def counted(number: int, noun: str, plural: str = "") -> str:
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def _digits(value: float, digits: int = 3) -> str:
    # 125 with two digits is 120, not 1.2e+02.
    return f"{float(f'{value:.{digits}g}'):g}"

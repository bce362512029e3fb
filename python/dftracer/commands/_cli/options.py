"""Command-line arguments: their types, and one-line error messages."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from dftracer.errors import DFTracerError

_NUMBER = re.compile(r"-\d+|-\d*\.\d+")


class Parser(argparse.ArgumentParser):
    """Raises errors instead of printing the usage. Reports an unknown option first, where argparse
    would report a missing argument."""

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        words = list(args or ())
        self._check_options(words)
        found, rest = self.parse_known_args(words, namespace)
        if rest:
            self.error(f"unexpected argument {rest[0]!r}")
        return found

    def error(self, message: str) -> NoReturn:
        raise DFTracerError(f"{_plain(message)}; see {self.prog} --help")

    def _check_options(self, words: Sequence[str]) -> None:
        known = self._option_string_actions
        for word in words:
            if word == "--":
                return
            # As argparse does: a lone `-`, a negative number and text with blanks are values.
            if not word.startswith("-") or word == "-" or " " in word or _NUMBER.fullmatch(word):
                continue
            name = word.partition("=")[0]
            if name in known or (not word.startswith("--") and word[:2] in known):
                continue
            import difflib

            close = difflib.get_close_matches(name, known, 1)
            hint = f" (did you mean {close[0]}?)" if close else ""
            self.error(f"unknown option {name!r}{hint}")


def _plain(message: str) -> str:
    """One wording for argparse's messages, which differ between Python versions."""
    for pattern, text in (
        (r"the following arguments are required: (.*)", r"missing \1"),
        (r"argument (\S+): expected (?:one|at least one) argument", r"\1 needs a value"),
        (r"argument (\S+): ignored explicit argument .*", r"\1 takes no value"),
        (r"argument (\S+): not allowed with argument (\S+)", r"\1 and \2 cannot be combined"),
        (r"argument (\S+): invalid int value: (.*)", r"\1: \2 is not a whole number"),
        (r"argument (\S+): invalid float value: (.*)", r"\1: \2 is not a number"),
        (r"argument (\S+): (.*)", r"\1: \2"),
    ):
        found = re.fullmatch(pattern, message, re.DOTALL)
        if found is not None:
            return found.expand(text)
    return message


def natural(text: str, most: int = 10**9) -> int:
    if not re.fullmatch(r"[0-9]{1,10}", text) or int(text) > most:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to {most}")
    return int(text)


def threads(text: str) -> int:
    return natural(text, 1024)


def positive(text: str) -> int:
    number = natural(text)
    if number == 0:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def positive_number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


_UNITS = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "min": 60 * 10**9,
    "h": 3600 * 10**9,
    "": 10**9,
}


def nanoseconds(text: str) -> int:
    """A duration such as 500ms; a bare number is seconds."""
    match = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,12})?)([a-z]*)", text)
    if match is None or match[2] not in _UNITS:
        raise argparse.ArgumentTypeError(f"invalid duration {text!r} (for example 500ms, 10s, 2m)")
    return round(float(match[1]) * _UNITS[match[2]])


def seconds(text: str) -> float:
    return nanoseconds(text) / 1e9


_SIZES = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}


def size(text: str) -> int:
    match = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,12})?)\s*([A-Z]*)", text)
    if match is None or match[2] not in _SIZES:
        raise argparse.ArgumentTypeError(f"invalid size {text!r} (for example 800MB, 2GB)")
    return int(float(match[1]) * _SIZES[match[2]])


def add_threads(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--threads",
        type=threads,
        default=0,
        metavar="N",
        help="number of threads (default: one per core)",
    )


def add_no_recover(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--no-recover",
        action="store_true",
        help="do not complete traces of crashed processes first",
    )

"""One check of `dftracer doctor`, and its outcome."""

from __future__ import annotations

from typing import NamedTuple


class Check(NamedTuple):
    name: str
    status: str  # ok, warn or fail
    text: str


def ok(name: str, text: str) -> Check:
    return Check(name, "ok", text)


def warn(name: str, text: str) -> Check:
    return Check(name, "warn", text)


def fail(name: str, text: str) -> Check:
    return Check(name, "fail", text)

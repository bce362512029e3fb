"""Names that programs written for other releases import."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any, Protocol

__all__ = [
    "DFTRACER_ENABLE_ENV",
    "DFTRACER_INIT_ENV",
    "DFTRACER_INIT_PRELOAD",
    "DFTRACER_LOG_LEVEL",
    "DFTRACER_LOG_LEVEL_ENV",
    "NoOpProfiler",
    "ProfilerProtocol",
    "capture_signal",
    "get_default_args",
    "get_time_scale",
    "setup_logger",
    "setup_stream_logger",
]

DFTRACER_ENABLE_ENV = "DFTRACER_ENABLE"
DFTRACER_INIT_ENV = "DFTRACER_INIT"
DFTRACER_LOG_LEVEL_ENV = "DFTRACER_LOG_LEVEL"

DFTRACER_INIT_PRELOAD = os.environ.get(DFTRACER_INIT_ENV, "PRELOAD").upper() == "PRELOAD"
DFTRACER_LOG_LEVEL = os.environ.get(DFTRACER_LOG_LEVEL_ENV, "ERROR").upper()

_SCALES = {"NS": 1_000_000_000, "US": 1_000_000, "MS": 1_000, "SEC": 1}


class ProfilerProtocol(Protocol):
    """What a profiler must be able to do to stand in for the logger."""

    def get_time(self) -> int: ...
    def log_event(self, name: str, cat: str, start_time: float, duration: float) -> None: ...
    def log_metadata_event(self, key: str, value: str) -> None: ...
    def finalize(self) -> None: ...


class NoOpProfiler:
    """A profiler that does nothing."""

    def get_time(self) -> int:
        return 0

    def enter_event(self) -> None: ...

    def exit_event(self) -> None: ...

    def log_event(self, *_: Any, **__: Any) -> None: ...

    def log_metadata_event(self, *_: Any, **__: Any) -> None: ...

    def finalize(self) -> None: ...


def get_time_scale() -> int:
    """Units of time a second, in the trace that the settings ask for."""
    return _SCALES.get(os.environ.get("DFTRACER_TIME_METRIC", "US").upper(), 1_000_000)


def get_default_args(func: Callable[..., Any]) -> dict[str, Any]:
    """The parameters of a function that have a default, and their defaults."""
    import inspect

    return {
        name: parameter.default
        for name, parameter in inspect.signature(func).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }


def setup_stream_logger(name: str, level: int = logging.INFO) -> logging.Logger:
    """A logger of the standard library that writes to stderr."""
    logger = logging.getLogger(name)
    if not logger.handlers:
        logger.addHandler(logging.StreamHandler())
    logger.setLevel(level)
    return logger


def setup_logger(
    name: str, log_file: str | None = None, formatter: str | None = None, level: int = logging.INFO
) -> logging.Logger:
    """A logger of the standard library that writes to a file, or to stderr without one."""
    if log_file is None:
        return setup_stream_logger(name, level)
    logger = logging.getLogger(name)
    handler = logging.FileHandler(log_file)
    handler.setFormatter(logging.Formatter(formatter))
    logger.addHandler(handler)
    logger.setLevel(level)
    return logger


def capture_signal(signal_number: int, frame: Any) -> None:
    """Does nothing: what is recorded survives every signal, so none is caught."""

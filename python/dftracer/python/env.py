"""Environment variables as constants. The library reads the environment by itself."""

from __future__ import annotations

import logging
import os

from dftracer.python._switch import ON as DFTRACER_ENABLE

__all__ = [
    "DFTRACER_ENABLE",
    "DFTRACER_ENABLE_ENV",
    "DFTRACER_INIT_ENV",
    "DFTRACER_INIT_PRELOAD",
    "DFTRACER_LOG_LEVEL",
    "DFTRACER_LOG_LEVEL_ENV",
    "DFTRACER_TIME_METRIC_ENV",
    "setup_stream_logger",
]

DFTRACER_ENABLE_ENV = "DFTRACER_ENABLE"
DFTRACER_INIT_ENV = "DFTRACER_INIT"
DFTRACER_LOG_LEVEL_ENV = "DFTRACER_LOG_LEVEL"
DFTRACER_TIME_METRIC_ENV = "DFTRACER_TIME_METRIC"

DFTRACER_INIT_PRELOAD = os.environ.get(DFTRACER_INIT_ENV, "PRELOAD").upper() == "PRELOAD"
DFTRACER_LOG_LEVEL = os.environ.get(DFTRACER_LOG_LEVEL_ENV, "ERROR").upper()

_LEVELS = {"DEBUG": logging.DEBUG, "INFO": logging.INFO, "WARN": logging.WARNING}


def setup_stream_logger(name: str = "DFTRACER", level: int | None = None) -> logging.Logger:
    """A logger of the standard library that writes to stderr, at the level of
    DFTRACER_LOG_LEVEL unless another is given."""
    logger = logging.getLogger(name)
    if not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
        logger.addHandler(handler)
    logger.setLevel(_LEVELS.get(DFTRACER_LOG_LEVEL, logging.ERROR) if level is None else level)
    return logger

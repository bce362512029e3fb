"""Names that programs written for other releases import: the profiler below the annotations,
helpers, and types. The names of dftracer.python are here as well."""

from __future__ import annotations

import logging
import sys
import typing
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar, Union

from dftracer.python.entities import EntityID, EntityRelation, EntityRole, EntityStore
from dftracer.python.env import (
    DFTRACER_ENABLE,
    DFTRACER_ENABLE_ENV,
    DFTRACER_INIT_ENV,
    DFTRACER_INIT_PRELOAD,
    DFTRACER_LOG_LEVEL,
    DFTRACER_LOG_LEVEL_ENV,
    DFTRACER_TIME_METRIC_ENV,
    setup_stream_logger,
)
from dftracer.python.function import dft_fn
from dftracer.python.logger import dftracer
from dftracer.python.tags import TagDType, TagType, TagValue, TagValueTuple

__all__ = [
    "DFTRACER_ENABLE",
    "DFTRACER_ENABLE_ENV",
    "DFTRACER_INIT_ENV",
    "DFTRACER_INIT_PRELOAD",
    "DFTRACER_LOG_LEVEL",
    "DFTRACER_LOG_LEVEL_ENV",
    "DFTRACER_TIME_METRIC_ENV",
    "EntityID",
    "EntityRelation",
    "EntityRole",
    "EntityStore",
    "NoOpProfiler",
    "P",
    "ProfilerProtocol",
    "R",
    "T",
    "TagDType",
    "TagType",
    "TagValue",
    "TagValueTuple",
    "capture_signal",
    "dft_fn",
    "dftracer",
    "get_default_args",
    "get_time_scale",
    "profiler",
    "setup_logger",
    "setup_stream_logger",
]

# Python 3.9 has no ParamSpec; there the name can only be imported.
P: Any = getattr(typing, "ParamSpec", TypeVar)("P")
R = TypeVar("R")
T = TypeVar("T")
Arguments = Union[Mapping[str, Any], None]

_SCALES = {"NS": 1e9, "US": 1e6, "MS": 1e3, "SEC": 1.0}


class ProfilerProtocol(Protocol):
    """The interface of the profiler below the logger."""

    def initialize(
        self, log_file: str | None = ..., data_dirs: str | None = ..., process_id: int = ...
    ) -> None: ...
    def get_time(self) -> int: ...
    def get_config(self, key: str) -> str: ...
    def enter_event(self) -> None: ...
    def exit_event(self) -> None: ...
    def log_event(
        self,
        name: str,
        cat: str,
        start_time: int,
        duration: int,
        int_args: Arguments = ...,
        string_args: Arguments = ...,
        float_args: Arguments = ...,
        relations: Any = ...,
    ) -> None: ...
    def log_metadata_event(self, key: str, value: str) -> None: ...
    def declare_entity(self, type: str, key: str, store: Any, uri: str) -> EntityID: ...
    def declare_entity_type(self, type: str, role: Any, description: str) -> None: ...
    def relate_entities(self, relation: Any, subject: EntityID, object: EntityID) -> None: ...
    def set_app_metadata_int(self, key: str, value: int) -> None: ...
    def set_app_metadata_string(self, key: str, value: str) -> None: ...
    def mark_used(self, name: str) -> None: ...
    def finalize(self) -> None: ...


class NoOpProfiler:
    """A profiler that does nothing."""

    def initialize(
        self, log_file: str | None = None, data_dirs: str | None = None, process_id: int = -1
    ) -> None: ...

    def get_time(self) -> int:
        return 0

    def get_config(self, key: str) -> str:
        return ""

    def enter_event(self) -> None: ...

    def exit_event(self) -> None: ...

    def log_event(
        self,
        name: str,
        cat: str,
        start_time: int,
        duration: int,
        int_args: Arguments = None,
        string_args: Arguments = None,
        float_args: Arguments = None,
        relations: Any = None,
    ) -> None: ...

    def log_metadata_event(self, key: str, value: str) -> None: ...

    def declare_entity(self, type: str, key: str, store: Any, uri: str) -> EntityID:
        return 0

    def declare_entity_type(self, type: str, role: Any, description: str) -> None: ...

    def relate_entities(self, relation: Any, subject: EntityID, object: EntityID) -> None: ...

    def set_app_metadata_int(self, key: str, value: int) -> None: ...

    def set_app_metadata_string(self, key: str, value: str) -> None: ...

    def mark_used(self, name: str) -> None: ...

    def finalize(self) -> None: ...


def _profiler() -> Any:
    if not DFTRACER_ENABLE:
        return NoOpProfiler()
    import dftracer.dftracer as functions

    return functions


profiler: Any = _profiler()


def get_time_scale() -> float:
    """Time units per second in the trace, by the settings."""
    metric = dftracer.get_instance().get_config(DFTRACER_TIME_METRIC_ENV)
    return _SCALES.get(metric.strip().upper(), _SCALES["US"])


def get_default_args(func: Callable[..., Any]) -> dict[str, Any]:
    """The parameters of a function that have a default, and their defaults."""
    import inspect

    return {
        name: parameter.default
        for name, parameter in inspect.signature(func).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }


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
    """A signal handler that completes the trace and exits with the number of the signal. It is
    never installed by an import: recorded events survive every signal without it."""
    dftracer.get_instance().finalize()
    sys.exit(signal_number)

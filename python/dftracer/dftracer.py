"""The functions of the native module, by the import path of other releases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dftracer.python.logger import dftracer as _logger

__all__ = [
    "enter_event",
    "exit_event",
    "finalize",
    "get_config",
    "get_time",
    "initialize",
    "log_event",
    "log_metadata_event",
    "mark_used",
    "set_app_metadata_int",
    "set_app_metadata_string",
]

_log = _logger.get_instance()
get_time = _log.get_time
get_config = _log.get_config
enter_event = _log.enter_event
exit_event = _log.exit_event
log_metadata_event = _log.log_metadata_event
set_app_metadata_int = _log.set_app_metadata_int
set_app_metadata_string = _log.set_app_metadata_string
mark_used = _log.mark_used
finalize = _log.finalize


def initialize(
    log_file: str | None = None, data_dirs: str | None = None, process_id: int = -1
) -> None:
    """Start recording; see dftracer.python.dftracer.initialize_log."""
    _logger.initialize_log(log_file, data_dirs, process_id)


def log_event(
    name: str,
    cat: str,
    start_time: float,
    duration: float,
    int_args: Mapping[str, Any] | None = None,
    string_args: Mapping[str, Any] | None = None,
    float_args: Mapping[str, Any] | None = None,
) -> None:
    """Record one event. The dictionaries are in another order than in the method of the class."""
    _log.log_event(name, cat, start_time, duration, int_args, float_args, string_args)

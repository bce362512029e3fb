"""The native module of other releases' debug build; see dftracer.dftracer."""

from __future__ import annotations

from dftracer.dftracer import (
    enter_event,
    exit_event,
    finalize,
    get_config,
    get_time,
    initialize,
    log_event,
    log_metadata_event,
    mark_used,
    set_app_metadata_int,
    set_app_metadata_string,
)

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

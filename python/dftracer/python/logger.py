"""The process's logger: one object, whoever asks for it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Optional, Union

from dftracer import _core
from dftracer.python import _children

__all__ = ["dftracer"]

Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
Arguments = Optional[Mapping[str, Any]]


class dftracer:
    """Starts and ends the trace of this process, and records single events into it."""

    _instance: dftracer | None = None

    @staticmethod
    def initialize_log(
        logfile: Path | None = None,
        data_dir: Path | None = None,
        process_id: int = -1,
    ) -> dftracer:
        """Start recording into `logfile` ("d/t.pfw" gives d/t.pfw.gz) and return the logger.

        Without `logfile`, DFTRACER_LOG_FILE says where. `data_dir` names the directories of
        interest, with ":" between them. `process_id` is the rank of this process.
        """
        if _core.initialize(logfile, data_dir, process_id):
            _children.follow(logfile, data_dir, process_id)
        return dftracer.get_instance()

    @classmethod
    def get_instance(cls) -> dftracer:
        """The logger of this process, started or not."""
        if dftracer._instance is None:
            dftracer._instance = cls()
        return dftracer._instance

    def get_time(self) -> int:
        """Time as events have it, in microseconds; 0 while nothing is recorded."""
        return _core.time()

    def log_event(
        self,
        name: str,
        cat: str,
        start_time: float,
        duration: float,
        int_args: Arguments = None,
        float_args: Arguments = None,
        string_args: Arguments = None,
    ) -> None:
        """Record one event that began at `start_time` (see get_time) and took `duration`."""
        _core.complete(name, cat, start_time, duration, int_args, float_args, string_args)

    def log_metadata_event(self, key: str, value: str) -> None:
        """Record a key and a value that hold for the whole process."""
        _core.metadata(key, value)

    def finalize(self) -> None:
        """Complete the file. Without this call, the end of the process does it."""
        _core.finalize()

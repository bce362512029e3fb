"""The process's logger: one object, whoever asks for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, Optional, Union

from dftracer.python._switch import ON, wanted

__all__ = ["dftracer"]

Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
Arguments = Optional[Mapping[str, Any]]


class dftracer:
    """Starts and ends the trace of this process, and records single events into it.

    Switched off, every method does nothing.
    """

    _instance: dftracer | None = None
    # For programs that look at them.
    logger: Any = None
    dbg_logging: Any = None
    start_time = 0

    @staticmethod
    def initialize_log(
        logfile: Path | None = None,
        data_dir: Path | None = None,
        process_id: int | None = -1,
    ) -> dftracer:
        """Start recording into `logfile` ("d/t.pfw" gives d/t.pfw.gz) and return the logger.

        Without `logfile`, DFTRACER_LOG_FILE says where. `data_dir` names the directories of
        interest, with ":" between them. `process_id` is the rank of this process.
        """
        log = dftracer.get_instance()
        if ON:
            from dftracer import _core
            from dftracer.python import _children

            rank = -1 if process_id is None else int(process_id)
            if _core.initialize(logfile, data_dir, rank):
                log.start_time = _core.time()
                _children.follow(logfile, data_dir, rank)
                if os.environ.get("DFTRACER_TORCH"):
                    from dftracer import _startup

                    _startup.arm()
        elif wanted():
            print(
                "dftracer: DFTRACER_ENABLE was set after dftracer was imported: nothing will be "
                "recorded. Set it before the program starts, or before the import.",
                file=sys.stderr,
            )
        return log

    @classmethod
    def get_instance(cls) -> dftracer:
        """The logger of this process, started or not."""
        if dftracer._instance is None:
            dftracer._instance = cls()
        return dftracer._instance

    def get_time(self) -> int:
        """Time as events have it, in microseconds; 0 while nothing is recorded."""
        if not ON:
            return 0
        from dftracer import _core

        return _core.time()

    def enter_event(self) -> None:
        """Open a level: events from here to exit_event() are inside it. The first event that is
        logged meanwhile takes its place."""
        if ON:
            from dftracer import _core

            _core.enter()

    def exit_event(self) -> None:
        """Close the level that enter_event() opened last."""
        if ON:
            from dftracer import _core

            _core.leave()

    def log_event(
        self,
        name: str,
        cat: str,
        start_time: float,
        duration: float,
        int_args: Arguments = None,
        float_args: Arguments = None,
        string_args: Arguments = None,
        relations: Any = None,
    ) -> None:
        """Record one event that began at `start_time` (see get_time) and took `duration`."""
        if ON:
            from dftracer import _core

            _core.complete(name, cat, start_time, duration, int_args, float_args, string_args)

    def log_metadata_event(self, key: str, value: Any) -> None:
        """Record a key and a value that hold for the whole process."""
        if ON:
            from dftracer import _core

            _core.metadata(key, value)

    def flush(self) -> None:
        """Bring the file up to date and go on."""
        if ON:
            from dftracer import _core

            _core.flush()

    def finalize(self) -> None:
        """Complete the file. Without this call, the end of the process does it."""
        if ON:
            from dftracer import _core

            _core.finalize()
            auto = sys.modules.get("dftracer.python.torch.auto")
            if auto is not None and not _core.active():
                auto.remove()

    # ---- What newer releases have --------------------------------------------------------------

    def get_config(self, name: str) -> str:
        """The value of a DFTRACER_ variable, "" where it is not set."""
        return os.environ.get(name, "")

    def set_app_metadata_int(self, key: str, value: int) -> None:
        self.log_metadata_event(key, value)

    def set_app_metadata_string(self, key: str, value: str) -> None:
        self.log_metadata_event(key, value)

    def mark_used(self, name: str) -> None:
        """Accepted; which parts were in use is seen from the events."""

    def declare_entity(self, *_: Any, **__: Any) -> int:
        return 0

    def declare_entity_type(self, *_: Any, **__: Any) -> int:
        return 0

    def relate_entities(self, *_: Any, **__: Any) -> int:
        return 0

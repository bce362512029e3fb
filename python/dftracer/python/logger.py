"""The logger of the process, a singleton."""

from __future__ import annotations

import os
import sys

from dftracer.python._switch import ON, WANTED, wanted
from dftracer.python.function import dft_fn

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing would take longer than all the rest
    from collections.abc import Mapping
    from typing import Any, Optional, Union

    Path = Union[str, bytes, os.PathLike[str], os.PathLike[bytes]]
    Arguments = Optional[Mapping[str, Any]]

__all__ = ["dft_fn", "dftracer"]


_told = False
_said = False


def _say_once() -> bool:
    global _said
    before, _said = _said, True
    return not before


def _end_with_ctrl_c() -> None:
    """Completes the file when the interpreter exits: a program that is ended by Ctrl-C dies by the
    signal, without the library's exit handlers."""
    global _told
    if _told:
        return
    _told = True
    import atexit

    atexit.register(_complete_after_ctrl_c)


def _complete_after_ctrl_c() -> None:
    from dftracer import _core

    if isinstance(getattr(sys, "last_value", None), KeyboardInterrupt):
        for _ in range(100):  # number of initialize_log calls
            if not _core.active():
                break
            _core.finalize()


class dftracer:
    """Starts and ends the trace of this process, and records single events.

    While tracing is off, every method does nothing.
    """

    _instance: dftracer | None = None
    # For programs that read them.
    logger: Any = None
    dbg_logging: Any = None
    start_time = 0

    @staticmethod
    def initialize_log(
        logfile: Path | None = None,
        data_dir: Path | list[Path] | tuple[Path, ...] | None = None,
        process_id: int | None = -1,
    ) -> dftracer:
        """Start recording into `logfile` ("d/t.pfw" gives d/t.pfw.gz) and return the logger.

        Without `logfile`, `DFTRACER_LOG_FILE` determines the path. `data_dir` names the
        directories whose I/O is recorded, as a list or separated by ":". `process_id` is the rank
        of this process.
        """
        log = dftracer.get_instance()
        if ON:
            from dftracer import _core
            from dftracer.python import _children

            try:
                if isinstance(data_dir, (list, tuple)):
                    data_dir = ":".join(os.fsdecode(path) for path in data_dir)
                rank = -1 if process_id is None else int(process_id)
                recording = _core.initialize(logfile, data_dir, rank)
            except Exception as error:
                # A wrong argument must not end the program.
                print(f"dftracer: initialize_log: {error}; nothing is recorded", file=sys.stderr)
                _core.asked()
                return log
            if recording:
                log.start_time = _core.time()
                _end_with_ctrl_c()
                _children.follow(logfile, data_dir, rank)
                if os.environ.get("DFTRACER_TORCH"):
                    from dftracer import _startup

                    _startup.arm()
                if os.environ.get("DFTRACER_STORES"):
                    from dftracer import _stores

                    _stores.arm()
        elif not WANTED and wanted() and _say_once():
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
        """The time in the unit of events, microseconds by default; 0 while nothing is recorded."""
        if not ON:
            return 0
        from dftracer import _core

        return _core.time()

    def enter_event(self) -> None:
        """Open a nesting level: events up to `exit_event()` are inside it. The first event that is
        logged at that level becomes the enclosing one."""
        if ON:
            from dftracer import _core

            _core.enter()

    def exit_event(self) -> None:
        """Close the level that the last `enter_event()` opened."""
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
        """Record one event that began at `start_time` (see `get_time`) and took `duration`."""
        if ON:
            from dftracer import _core

            _core.complete(name, cat, start_time, duration, int_args, float_args, string_args)

    def log_metadata_event(self, key: str, value: Any) -> None:
        """Record a key and a value as metadata of the process."""
        if ON:
            from dftracer import _core

            _core.metadata(key, value)

    def flush(self) -> None:
        """Write everything recorded so far to the file, and continue."""
        if ON:
            from dftracer import _core

            _core.flush()

    def finalize(self) -> None:
        """Complete the file. Optional: the end of the process does the same."""
        if ON:
            from dftracer import _core

            _core.finalize()
            auto = sys.modules.get("dftracer.python.torch.auto")
            if auto is not None and not _core.active():
                auto.remove()

    # ---- Names of newer releases --------------------------------------------------------------

    def get_config(self, key: str) -> str:
        """The value of a `DFTRACER_` variable, "" if it is not set."""
        return os.environ.get(key, "")

    def set_app_metadata_int(self, key: str, value: int) -> None:
        self.log_metadata_event(key, value)

    def set_app_metadata_string(self, key: str, value: str) -> None:
        self.log_metadata_event(key, value)

    def mark_used(self, name: str) -> None:
        """Accepted for other releases; nothing is recorded."""

    def declare_entity(self, type: str, key: Any, store: Any = 0, uri: str = "") -> int:
        return 0

    def declare_entity_type(self, type: str, role: Any = 0, description: str = "") -> None: ...

    def relate_entities(self, relation: Any, subject: int, object: int) -> None: ...


def __getattr__(name: str) -> Any:
    """Other names of the package. Other releases have a standard library logger under the name of
    this module, so its methods are here as well."""
    import dftracer.python as python

    try:
        return python._find(name)
    except AttributeError:
        if name.startswith("_"):
            raise
    from dftracer.python.env import setup_stream_logger

    logger = setup_stream_logger()
    return logger if name == "logger" else getattr(logger, name)

"""Events of torch.profiler in the trace of this run.

    with torch.profiler.profile(on_trace_ready=trace_handler) as prof: ...

    with dftracer.python.torch.profile(record_shapes=True, table=True) as prof: ...

Each event is in the lane of its thread, on the clock of the trace, in the category PP.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, Union

from dftracer.python._switch import ON

__all__ = ["TraceHandler", "profile", "trace_handler"]

Table = Union[bool, str, "os.PathLike[str]"]
_ENDINGS = (".gz", ".pfw")
# Tables that this process has started: the cycles of a schedule share one file.
_begun: set[tuple[int, str]] = set()


def _results(prof: Any) -> Any:
    """Kineto's own results, of torch.profiler.profile or of torch.autograd.profiler.profile."""
    inner = getattr(prof, "profiler", prof)
    return getattr(inner, "kineto_results", None)


def _table_path(table: Table) -> str:
    if not isinstance(table, bool):
        return os.fspath(table)
    from dftracer import _core

    path = _core.trace_path()
    for ending in _ENDINGS:
        if path.endswith(ending):
            path = path[: -len(ending)]
    return f"{path}.profile.txt" if path else ""


def _write_table(prof: Any, table: Table) -> None:
    path = _table_path(table)
    if not path:
        return
    text = prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=-1)
    own = (os.getpid(), path)
    with open(path, "a" if own in _begun else "w", encoding="utf-8") as file:
        step = getattr(prof, "step_num", None)
        file.write(f"# process {own[0]}" + (f", step {step}" if step is not None else ""))
        file.write(f"\n{text}\n")
    _begun.add(own)


class TraceHandler:
    """For `on_trace_ready`: writes the profile to the trace.

    `table` also writes the flat profile (key_averages) as text: True beside the trace as
    NAME.profile.txt, or a path. `then` is called afterwards with the profiler.
    """

    def __init__(self, table: Table = False, then: Callable[[Any], Any] | None = None) -> None:
        self.table = table
        self.then = then

    def __call__(self, profiler_result: Any) -> None:
        try:
            self._record(profiler_result)
        except Exception as error:  # the program must not fail because of an unusual profile
            reason = f"{type(error).__name__}: {error}"
            print(f"dftracer: the profile is not in the trace: {reason}", file=sys.stderr)
        if self.then is not None:
            self.then(profiler_result)

    def _record(self, prof: Any) -> None:
        if not ON:
            return
        from dftracer import _core

        results = _results(prof)
        if results is None or not _core.active():
            return
        from dftracer.python.torch import _kineto

        _kineto.record(prof, results)
        if self.table:
            _write_table(prof, self.table)


trace_handler = TraceHandler()


class _Off:
    """Replaces the profiler while tracing is off: nothing is profiled."""

    step_num = 0

    def __enter__(self) -> _Off:
        return self

    def __exit__(self, *exc: object) -> None:
        return None

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def step(self) -> None:
        self.step_num += 1

    def add_metadata(self, key: str, value: str) -> None: ...

    def add_metadata_json(self, key: str, value: str) -> None: ...

    def preset_metadata_json(self, key: str, value: str) -> None: ...

    def events(self) -> Any:
        from torch.autograd.profiler_util import EventList

        return EventList()

    def key_averages(self, *_: Any, **__: Any) -> Any:
        return self.events()


def profile(
    *,
    table: Table = False,
    on_trace_ready: Callable[[Any], Any] | None = None,
    **options: Any,
) -> Any:
    """torch.profiler.profile, with its events in the trace as well. `options` are those of torch;
    `table` writes the flat profile beside the trace. Profiles nothing while tracing is off."""
    if not ON:
        return _Off()
    from torch.profiler import profile as torch_profile

    return torch_profile(on_trace_ready=TraceHandler(table, on_trace_ready), **options)


def __getattr__(name: str) -> Any:
    """Names that other releases have here as well."""
    import dftracer.python.torch as package

    if name in package._SHARED:
        return package._find(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""Makes processes that multiprocessing (spawn, forkserver) and loky (joblib) start join the trace
of their parent.

They begin as a new interpreter without a trace. The preparation data that they receive anyway
carries a ticket: unpickling it starts the trace in the child.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Union

from dftracer import _core

__all__ = ["follow", "join", "received", "send", "take"]

Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]", None]
# Each has a function get_preparation_data, whose result is sent to the child.
_MODULES = (
    "multiprocessing.spawn",
    "loky.backend.spawn",
    "joblib.externals.loky.backend.spawn",
)
_KEY = "dftracer"
_RUN = "DFTRACER_RUN_ID"
# Run by the child before its sys.path is set up. A child that cannot find us runs untraced.
_CALL = """
import sys
before = sys.path
sys.path = path
try:
    from dftracer.python import _children
    getattr(_children, call)(*how)
except ImportError:
    pass
finally:
    sys.path = before
"""


class _Ticket:
    """Becomes a call when the child unpickles it."""

    def __init__(self, how: tuple[Path, Path, int]) -> None:
        self.how = how

    def __reduce__(self) -> tuple[Any, ...]:
        from dftracer.python.ai import ai

        return _call("join", *self.how, ai._snapshot(), _core.run(), _message())


class _Message:
    """For a child that has a trace without us, from the environment."""

    def __init__(self, message: Any) -> None:
        self.message = message

    def __reduce__(self) -> tuple[Any, ...]:
        return _call("take", self.message)


def _call(name: str, *how: Any) -> tuple[Any, ...]:
    return exec, (_CALL, {"path": list(sys.path), "call": name, "how": how})


_how: tuple[Path, Path, int] | None = None
_sender: Callable[[], Any] | None = None
_received: Any = None


def send(sender: Callable[[], Any] | None) -> None:
    """What `sender` returns when a child is started, the child gets from received()."""
    global _sender
    _sender = sender
    if sender is not None:
        _watch()


def take(message: Any) -> None:
    """In the child: what the parent sent."""
    global _received
    _received = message


def _message() -> Any:
    return _sender() if _sender is not None else None


def received() -> Any:
    """What the parent sent to this process, once."""
    global _received
    found, _received = _received, None
    return found


def _absolute(path: Path) -> Path:
    return None if path is None else os.path.abspath(os.fsdecode(path))


def _absolute_list(paths: Path) -> Path:
    if paths is None:
        return None
    parts = os.fsdecode(paths).split(":")
    return ":".join(part if part in ("", "all") else os.path.abspath(part) for part in parts)


def _patch(module: ModuleType) -> None:
    original = module.get_preparation_data
    if getattr(original, "_dftracer", False):
        return

    def get_preparation_data(*args: Any, **kwargs: Any) -> dict[str, Any]:
        data: dict[str, Any] = original(*args, **kwargs)
        if _how is not None and _core.active():
            data[_KEY] = _Ticket(_how)
            _core.has_children()
        elif (message := _message()) is not None:
            data[_KEY] = _Message(message)
        return data

    get_preparation_data._dftracer = True  # type: ignore[attr-defined]
    module.get_preparation_data = get_preparation_data  # type: ignore[attr-defined]


class _Finder(importlib.abc.MetaPathFinder):
    """Waits until the program imports these modules: importing them takes 10 ms."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in _MODULES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, importlib.abc.Loader):
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(self, real: importlib.abc.Loader) -> None:
        self._real = real

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._real.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._real.exec_module(module)
        _patch(module)


def follow(logfile: Path, data_dir: Path, process_id: int) -> None:
    """From now on, children that multiprocessing starts join the trace of this process."""
    global _how
    _how = (_absolute(logfile), _absolute_list(data_dir), process_id)
    _watch()


def _watch() -> None:
    for name in _MODULES:
        module = sys.modules.get(name)
        if module is not None:
            _patch(module)
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def join(
    logfile: Path, data_dir: Path, process_id: int, context: Any, run: str, sent: Any = None
) -> None:
    """In the child: join the parent's run, with its switches and arguments."""
    from dftracer.python.ai import ai

    take(sent)
    ai._restore(context)
    # Without interception, a new program would not know which run it belongs to.
    tell = bool(run) and _RUN not in os.environ
    if tell:
        os.environ[_RUN] = run
    try:
        _core.initialize(logfile, data_dir, process_id)
    finally:
        if tell:
            del os.environ[_RUN]
    follow(logfile, data_dir, process_id)
    if sent is not None and not os.environ.get("DFTRACER_TORCH"):
        # A callback instruments torch in the parent: do the same for a worker of its loader.
        from dftracer import _startup

        _startup.watch()

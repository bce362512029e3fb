"""Run by dftracer.pth when Python starts and DFTRACER_TORCH is set.

Instruments torch when the program imports it (dftracer.python.torch.auto). A program that never
does pays for one entry in sys.meta_path.
"""

from __future__ import annotations

import importlib.abc
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["after_import", "arm", "forget", "watch"]

_MODULE = "torch"
# Other modules to instrument. They import torch, which is instrumented in the middle of their own
# import, so their loaders must be replaced before.
_OTHERS = (
    "safetensors.torch",
    "torch.distributed.checkpoint.state_dict_loader",
    "torch.distributed.checkpoint.state_dict_saver",
)
_OFF = ("", "0", "false", "no", "off")


def _is_on(variable: str) -> bool:
    return os.environ.get(variable, "").strip().lower() not in _OFF


def _wanted() -> bool:
    # A configuration file may turn tracing on; the library decides.
    return _is_on("DFTRACER_TORCH") and (
        _is_on("DFTRACER_ENABLE")
        or ("DFTRACER_ENABLE" not in os.environ and bool(os.environ.get("DFTRACER_CONFIGURATION")))
    )


def _instrument() -> None:
    try:
        from dftracer.python.torch import auto

        auto.install()
    except Exception as error:  # the program must run with any version of torch
        reason = f"{type(error).__name__}: {error}"
        print(f"dftracer: torch is not instrumented: {reason}", file=sys.stderr)


_actions: dict[str, Callable[[ModuleType], Any]] = {}


def _imported(module: ModuleType) -> None:
    if module.__name__ == _MODULE:
        _instrument()
    action = _actions.pop(module.__name__, None)
    if action is not None:
        try:
            action(module)
        except Exception as error:  # the program's import must not fail because of us
            reason = f"{type(error).__name__}: {error}"
            print(f"dftracer: {module.__name__} is not instrumented: {reason}", file=sys.stderr)


class _Loader(importlib.abc.Loader):
    """Loads a module with its own loader, then restores that loader."""

    def __init__(self, real: importlib.abc.Loader) -> None:
        self._real = real

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._real.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._real
        if module.__spec__ is not None:
            module.__spec__.loader = self._real
        self._real.exec_module(module)
        _imported(module)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, names: Iterable[str]) -> None:
        self._names = set(names)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in self._names:
            return None
        self._names.remove(name)
        if not self._names:
            _forget_finder()
        for finder in list(sys.meta_path):
            if finder is self:
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if isinstance(spec.loader, importlib.abc.Loader):
                    spec.loader = _Loader(spec.loader)
                return spec
        return None


def _find_imports_of(names: Iterable[str]) -> None:
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder(names))


def _forget_finder() -> None:
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Finder)]


def _is_imported(name: str) -> bool:
    module = sys.modules.get(name)
    return module is not None and not getattr(module.__spec__, "_initializing", False)


def after_import(actions: Mapping[str, Callable[[ModuleType], Any]]) -> None:
    """Call each action with its module (one of those above) once it is imported."""
    _actions.update(actions)
    for name in actions:
        if _is_imported(name):
            _imported(sys.modules[name])
    if _actions:
        _find_imports_of(name for name in _actions if name not in sys.modules)


def forget() -> None:
    """Stop watching imports."""
    _actions.clear()
    _forget_finder()


def arm() -> None:
    """Instrument torch when it is imported, if the environment enables that."""
    if _wanted():
        watch()


def watch() -> None:
    """Instrument torch when it is imported, or now."""
    if _is_imported(_MODULE):
        _instrument()
    elif _MODULE not in sys.modules:  # while it is being imported, our loader is active already
        _find_imports_of((_MODULE, *_OTHERS))

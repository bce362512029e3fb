"""What the file dftracer.pth runs when Python starts and DFTRACER_TORCH is set.

Waits for the program to import torch, and then instruments it (dftracer.python.torch.auto). A
program that never does pays for one entry in sys.meta_path.
"""

from __future__ import annotations

import importlib.abc
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

__all__ = ["arm"]

_MODULE = "torch"
_OFF = ("", "0", "false", "no", "off")


def _is_on(variable: str) -> bool:
    return os.environ.get(variable, "").strip().lower() not in _OFF


def _wanted() -> bool:
    # A configuration file may turn tracing on; the library will tell.
    return _is_on("DFTRACER_TORCH") and (
        _is_on("DFTRACER_ENABLE")
        or ("DFTRACER_ENABLE" not in os.environ and bool(os.environ.get("DFTRACER_CONFIGURATION")))
    )


def _instrument() -> None:
    try:
        from dftracer.python.torch import auto

        auto.install()
    except Exception as error:  # the program must run whatever torch this is
        reason = f"{type(error).__name__}: {error}"
        print(f"dftracer: torch is not instrumented: {reason}", file=sys.stderr)


class _Loader(importlib.abc.Loader):
    """Loads torch as its own loader does, and steps aside for it."""

    def __init__(self, real: importlib.abc.Loader) -> None:
        self._real = real

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._real.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._real
        if module.__spec__ is not None:
            module.__spec__.loader = self._real
        self._real.exec_module(module)
        _instrument()


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != _MODULE:
            return None
        sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not self]
        for finder in list(sys.meta_path):
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if isinstance(spec.loader, importlib.abc.Loader):
                    spec.loader = _Loader(spec.loader)
                return spec
        return None


def arm() -> None:
    """Instrument torch as soon as it is there, if the environment asks for it."""
    if not _wanted():
        return
    if _MODULE in sys.modules:
        spec = sys.modules[_MODULE].__spec__
        # While it is being imported, our loader is at work already.
        if not getattr(spec, "_initializing", False):
            _instrument()
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())

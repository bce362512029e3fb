"""Run by dftracer.pth when Python starts and DFTRACER_STORES is set.

Instruments libraries of object stores when the program imports them (dftracer.python.stores). A
program that imports none pays for one entry in sys.meta_path, and for importing this module, which
therefore imports nothing that an interpreter does not have anyway.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing would take longer than all the rest
    from collections.abc import Callable, Sequence
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

__all__ = ["MODULES", "arm", "find_imports_of", "forget", "forget_imports_of", "watch"]

# The modules that are instrumented once they are imported.
MODULES = frozenset(
    (
        "aiobotocore.client",
        "botocore.client",
        "fsspec.asyn",
        "fsspec.caching",
        "fsspec.implementations.cached",
        "fsspec.implementations.http",
        "fsspec.spec",
        "gcsfs.core",
        "huggingface_hub.utils._http",
        "obstore",
        "pyarrow.fs",
        "s3torchconnector._s3client._s3client",
        "s3transfer.futures",
        "s3transfer.tasks",
    )
)
_OFF = ("", "0", "false", "no", "off")


def _is_on(variable: str) -> bool:
    return os.environ.get(variable, "").strip().lower() not in _OFF


def _wanted() -> bool:
    # A configuration file may turn tracing on; the library decides.
    return _is_on("DFTRACER_STORES") and (
        _is_on("DFTRACER_ENABLE")
        or ("DFTRACER_ENABLE" not in os.environ and bool(os.environ.get("DFTRACER_CONFIGURATION")))
    )


def _imported(module: ModuleType, name: str) -> None:
    try:
        from dftracer.python.stores import _libraries

        _libraries.instrument(module, name)
    except Exception as error:  # the program's import must not fail because of us
        reason = f"{type(error).__name__}: {error}"
        print(f"dftracer: {name} is not instrumented: {reason}", file=sys.stderr)


class _Loader:
    """Loads a module with its own loader, then restores that loader."""

    def __init__(
        self, real: Loader, name: str, imported: Callable[[ModuleType, str], None]
    ) -> None:
        self._real = real
        self._name = name
        self._imported = imported

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        create: Callable[[ModuleSpec], ModuleType | None] | None
        create = getattr(self._real, "create_module", None)
        return create(spec) if create is not None else None

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._real
        if module.__spec__ is not None:
            module.__spec__.loader = self._real
        self._real.exec_module(module)
        self._imported(module, self._name)


class _Finder:
    """Calls `imported` with each of these modules once it is imported.

    Not removed from sys.meta_path by a search: programs look for packages, with
    importlib.util.find_spec, that they import later or never.
    """

    def __init__(
        self, modules: frozenset[str], imported: Callable[[ModuleType, str], None]
    ) -> None:
        self.modules = modules
        self._imported = imported

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in self.modules:
            return None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            if find is None or finder is self:
                continue
            spec: ModuleSpec | None = find(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(  # type: ignore[assignment]
                        spec.loader,  # type: ignore[arg-type]
                        name,
                        self._imported,
                    )
                return spec
        return None


def _is_imported(name: str) -> bool:
    module = sys.modules.get(name)
    return module is not None and not getattr(module.__spec__, "_initializing", False)


def find_imports_of(modules: frozenset[str], imported: Callable[[ModuleType, str], None]) -> None:
    """Calls `imported` with these modules when they are imported, and now with those that are."""
    if any(isinstance(finder, _Finder) and finder.modules is modules for finder in sys.meta_path):
        return
    sys.meta_path.insert(0, _Finder(modules, imported))
    for name in modules:
        if _is_imported(name):
            imported(sys.modules[name], name)


def forget_imports_of(modules: frozenset[str]) -> None:
    sys.meta_path[:] = [
        finder
        for finder in sys.meta_path
        if not (isinstance(finder, _Finder) and finder.modules is modules)
    ]


def arm() -> None:
    """Instrument the libraries when they are imported, if the environment enables that."""
    if _wanted():
        watch()


def watch() -> None:
    """Instrument the libraries when they are imported, and now those that are."""
    find_imports_of(MODULES, _imported)


def forget() -> None:
    """Stop watching imports."""
    forget_imports_of(MODULES)

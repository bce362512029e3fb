"""Lists what a release of DFTracer's Python package offers: modules, names, signatures, constants.

Run it by the Python of an environment that holds the release (`pip install pydftracer==2.0.6
dftracer==2.2.0`), with the release's label, and the file to add it to:

    python make_released_names.py "pydftracer 2.0.6, dftracer 2.2.0" released_names.json

Names that a release merely imports from the standard library are left out, as are those of
dftracer.utils, which is another package.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import functools
import importlib
import importlib.metadata
import inspect
import json
import os
import pathlib
import sys
import types
import typing

FOREIGN = (
    collections.abc,
    dataclasses,
    enum,
    functools,
    importlib.metadata,
    inspect,
    pathlib,
    typing,
)
KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: "p",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "b",
    inspect.Parameter.KEYWORD_ONLY: "k",
}


def modules() -> list[str]:
    import dftracer

    root = os.path.dirname(dftracer.__file__)
    found = set()
    for path, directories, files in os.walk(root):
        directories[:] = [
            name
            for name in directories
            if not name.startswith(("_", ".", "lib", "bin", "include", "utils", "share", "test"))
        ]
        package = os.path.relpath(path, os.path.dirname(root)).replace(os.sep, ".")
        for file in files:
            stem = file.split(".")[0]
            if file.endswith(".py") or ".cpython" in file:
                found.add(package if stem == "__init__" else f"{package}.{stem}")
    return sorted(name for name in found if not name.rpartition(".")[2].startswith("_"))


def signature(value: object) -> list[list[object]] | None:
    """[name, kind, has a default] for each parameter but self."""
    try:
        found = inspect.signature(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return [
        [name, KINDS[parameter.kind], parameter.default is not inspect.Parameter.empty]
        for name, parameter in found.parameters.items()
        if parameter.kind in KINDS and name != "self"
    ]


def described(value: object) -> dict[str, object]:
    if isinstance(value, type) and issubclass(value, enum.Enum):
        return {"members": {member.name: member.value for member in value}}
    if isinstance(value, type) and value.__module__ != "builtins":
        methods = {
            name: signature(getattr(value, name))
            for name in dir(value)
            if not name.startswith("_") and callable(getattr(value, name))
        }
        return {"class": signature(value), "methods": methods}
    if callable(value) and hasattr(value, "__name__"):
        return {"function": signature(value)}
    if isinstance(value, str):
        return {"value": value}
    return {}


def own(name: str, value: object) -> bool:
    if name.startswith("_") or value is None:
        return name == "__version__"
    if isinstance(value, types.ModuleType):
        return False
    if getattr(value, "__module__", None) == "typing_extensions" and isinstance(value, type):
        return False
    return not any(getattr(module, name, None) is value for module in FOREIGN)


def main() -> None:
    label, path = sys.argv[1:]
    found: dict[str, list[str]] = {}
    definitions: dict[str, object] = {}
    for module in modules():
        importlib.import_module(module)
        held = vars(sys.modules[module])  # an attribute of the package may hide the module
        found[module] = sorted(name for name, value in held.items() if own(name, value))
        for name in found[module]:
            if name not in ("__version__", "DFTRACER_LOG_LEVEL"):
                definitions.setdefault(name, described(held[name]))
    file = pathlib.Path(path)
    known = json.loads(file.read_text()) if file.exists() else {}
    known[label] = {"modules": found, "definitions": dict(sorted(definitions.items()))}
    text = json.dumps(known, separators=(",", ":"))
    # A line for each definition and each module, so that a change can be read.
    for key in ("modules", "definitions"):
        text = text.replace(f'"{key}":{{', f'"{key}":{{\n')
    file.write_text(text.replace('},"', '},\n"').replace('],"', '],\n"') + "\n")


if __name__ == "__main__":
    main()

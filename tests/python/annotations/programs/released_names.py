"""Compares names and signatures of a release (tests/data/released_names.json) with the package's.
Prints what is missing, or refuses a call that the release takes, as a list."""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from typing import Any

# Made in C, where a method has no signature to look at.
IN_C = ("flush", "reset", "start", "stop", "update")


def call_of(value: Any) -> Any:
    """What `x.name(...)` calls, where ours is a node that can be called."""
    from dftracer.python import DFTracerAI

    return DFTracerAI.__call__ if isinstance(value, property) else value


def refused(ours: Any, theirs: list[list[Any]], bound: bool) -> str:
    """Why a call that their signature allows does not fit ours."""
    signature = inspect.signature(ours)
    first = [None] if bound else []
    by_place = [name for name, kind, _ in theirs if kind != "k"]
    required = [name for name, kind, default in theirs if kind != "k" and not default]
    wanted = {name: None for name, kind, default in theirs if kind == "k" and not default}
    every = {name: None for name, kind, _ in theirs if kind != "p"}
    placed = [name for name, kind, _ in theirs if kind == "p"]
    for args, kwargs in (
        ([None] * len(required), wanted),
        ([None] * len(by_place), wanted),
        ([None] * len(placed), every),
    ):
        try:
            signature.bind(*first, *args, **kwargs)
        except TypeError as error:
            return str(error)
    return ""


def problems(value: Any, theirs: dict[str, Any]) -> list[str]:
    found = []
    if "value" in theirs and value != theirs["value"]:
        found.append(f"is {value!r}, not {theirs['value']!r}")
    if "members" in theirs:
        ours = {member.name: member.value for member in value}
        found += [f"{k} is {ours.get(k)}" for k, v in theirs["members"].items() if ours.get(k) != v]
    parameters = theirs.get("function") or theirs.get("class")
    if parameters is not None:
        found.append(refused(value, parameters, False))
    for name, parameters in theirs.get("methods", {}).items():
        method = inspect.getattr_static(value, name, None)
        if method is None:
            found.append(f"has no {name}()")
        elif parameters is not None and name not in IN_C:
            static = isinstance(method, (staticmethod, classmethod))
            call = getattr(value, name) if static else call_of(method)
            why = refused(call, parameters, not static)
            found.append(why and f"{name}(): {why}")
    return [why for why in found if why]


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        release = json.load(file)[sys.argv[2]]
    out = []
    for module, names in release["modules"].items():
        try:
            importlib.import_module(module)
        except ImportError as error:
            out.append(f"{module}: {error}")
            continue
        for name in names:
            scope: dict[str, Any] = {}
            try:
                exec(f"from {module} import {name}", scope)
            except ImportError as error:
                out.append(f"{module}.{name}: {error}")
                continue
            theirs = release["definitions"].get(name, {})
            # The native module's functions have no signatures, and share names with methods.
            if not module.rpartition(".")[2].startswith("dftracer"):
                out += [f"{module}.{name} {why}" for why in problems(scope[name], theirs)]
    print(json.dumps(out))


main()

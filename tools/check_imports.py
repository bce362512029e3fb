#!/usr/bin/env python3
"""Checks the import arrows of the Python package: which sub-package may import which.

    leaves <- trace <- reports <- commands      python (annotations) beside them

Arguments: the directory of the package (default: python/dftracer). Imports inside functions and
under TYPE_CHECKING count as well, unless an arrow below is marked as late.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "dftracer"

# Modules at the top of the package that import nothing but each other, and the extensions.
LEAVES = (
    *("errors", "_cleanup", "_csv", "_duckdb", "_files", "_format", "_layout", "_libcore"),
    *("_mixture", "_names", "_secrets"),
)
EXTENSIONS = ("_core", "_reader")

# What each room imports beside itself. A name that ends with "()" is allowed in functions and
# under TYPE_CHECKING only: the import happens when it is needed, or never.
ALLOWED: dict[str, tuple[str, ...]] = {
    "leaves": (),
    "trace": ("leaves", "_reader"),
    "reports": ("leaves", "trace", "_reader", "reports.render()", "root()"),
    "reports.render": ("leaves", "trace", "reports", "root()"),
    "commands": ("leaves", "trace", "reports", "reports.render", "_reader", "_core()", "root()"),
    # What a traced program imports: nothing that reads traces.
    "python": ("errors", "_mixture", "_core", "startup", "root"),
    "startup": ("python()",),
    # Import paths of other releases, the package itself, and where commands begin.
    "root": ("python", "_mixture"),
    "entry": ("commands()", "_mixture", "root()"),
}
ENTRIES = ("_entry", "__main__")
STARTUP = ("_startup", "_stores", "_otel", "_functions")
# What verbs share. The dispatcher in it loads a verb by its name, which is no import.
SHARED = "_cli"


class Import(NamedTuple):
    line: int
    module: str
    late: bool


def imports(path: Path, module: str) -> Iterator[Import]:
    """The modules of the package that a file imports, and whether only later or for types."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]

    def walk(node: ast.AST, late: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield Import(child.lineno, alias.name, late)
            elif isinstance(child, ast.ImportFrom):
                base = child.module or ""
                if child.level:
                    parents = package.split(".")[: len(package.split(".")) - child.level + 1]
                    base = ".".join([*parents, *filter(None, [base])])
                for alias in child.names:
                    yield Import(child.lineno, f"{base}.{alias.name}", late)
            elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                yield from walk(child, True)
            elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
                for part in child.body:
                    yield from walk(ast.Module([part], []), True)
                for part in child.orelse:
                    yield from walk(ast.Module([part], []), late)
            else:
                yield from walk(child, late)

    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    return (found for found in walk(tree, False) if found.module.split(".")[0] == PACKAGE)


def room_of(module: str, package: Path) -> str:
    """The room of a module, by its dotted name below the package."""
    words = module.split(".")[1:]
    if not words or (not (package / words[0]).exists() and not _is_module(package, words[0])):
        return "root"  # a name of the package itself, such as __version__
    if words[0] in EXTENSIONS:
        return words[0]
    if words[0] in LEAVES:
        return "leaves"
    if words[0] in ENTRIES:
        return "entry"
    if words[0] in STARTUP:
        return "startup"
    if words[:2] == ["reports", "render"]:
        return "reports.render"
    if words[0] in ("trace", "reports", "commands", "python"):
        return words[0]
    return "root"


def _is_module(package: Path, name: str) -> bool:
    return any((package / f"{name}{ending}").exists() for ending in (".py", ".pyi"))


def verb_of(module: str) -> str | None:
    words = module.split(".")
    return words[2] if words[1:2] == ["commands"] and len(words) > 2 else None


def problems(package: Path) -> Iterator[str]:
    for path in sorted(package.rglob("*.py")):
        words = [PACKAGE, *path.relative_to(package).with_suffix("").parts]
        module = ".".join(words[:-1] if words[-1] == "__init__" else words)
        room = room_of(module, package)
        for found in imports(path, module):
            where = f"{path.relative_to(package.parent)}:{found.line}"
            target = room_of(found.module, package)
            leaf = found.module.split(".")[1] if "." in found.module else ""
            allowed = ALLOWED[room]
            if target == room or target in allowed or leaf in allowed:
                if (reason := _between_verbs(module, found.module)) is not None:
                    yield f"{where}: {reason}"
            elif f"{target}()" in allowed:
                if not found.late:
                    yield f"{where}: {room} may import {target} only inside a function"
            else:
                yield f"{where}: {room} must not import {found.module}"


def _between_verbs(module: str, imported: str) -> str | None:
    """Verbs import what they share from _cli, and nothing from each other."""
    one, other = verb_of(module), verb_of(imported)
    if one is None or other is None or one == other or other == SHARED:
        return None
    if one == SHARED:
        return f"commands.{SHARED} must not import the verb {other}"
    return f"the verb {one} must not import the verb {other}; share it in commands.{SHARED}"


def main(arguments: list[str]) -> int:
    package = Path(arguments[0]) if arguments else ROOT / "python" / PACKAGE
    found = list(problems(package))
    for line in found:
        print(line, file=sys.stderr)
    if not found:
        print(f"{len(list(package.rglob('*.py')))} Python files keep the arrows")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

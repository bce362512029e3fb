"""Import paths of other releases: modules that offer every public name of another module."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    Names = tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]


def alias_of(source: ModuleType) -> Names:
    """`__all__`, `__getattr__` and `__dir__` of a module that stands for another one."""
    find = getattr(source, "_find", None)  # for names that are loaded on first use

    def lookup(name: str) -> Any:
        if find is not None:
            return find(name)
        if name in source.__all__:
            return getattr(source, name)
        raise AttributeError(f"{source.__name__} has no name {name!r}")

    def names() -> list[str]:
        return sorted(source.__all__)

    return list(source.__all__), lookup, names

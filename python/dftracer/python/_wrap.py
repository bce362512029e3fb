"""Wraps any kind of callable so that its calls are recorded and nothing else changes."""

from __future__ import annotations

import functools
import sys
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from dftracer.python._engine import (
    KIND_ASYNC_GENERATOR,
    KIND_COROUTINE,
    KIND_GENERATOR,
    KIND_ITERABLE_COROUTINE,
    KIND_PLAIN,
    Callable,
    CallableObject,
    Function,
    Node,
)

__all__ = ["Capture", "recorded"]

# (name, position of the parameter or None, default if it has one)
Capture = list[tuple[Any, ...]]

# Bits of a code object's flags, as in the module inspect, which takes long to import.
_GENERATOR = 0x20
_COROUTINE = 0x80
_ITERABLE_COROUTINE = 0x100
_ASYNC_GENERATOR = 0x200
_KINDS = (
    (_ASYNC_GENERATOR, KIND_ASYNC_GENERATOR),
    (_COROUTINE, KIND_COROUTINE),
    (_ITERABLE_COROUTINE, KIND_ITERABLE_COROUTINE),
    (_GENERATOR, KIND_GENERATOR),
)


# Plain functions with these names become static or class methods by themselves.
_IMPLICIT: dict[str, Any] = {
    "__new__": staticmethod,
    "__init_subclass__": classmethod,
    "__class_getitem__": classmethod,
}


def _code_flags(target: Any) -> int:
    while True:
        if isinstance(target, functools.partial):
            target = target.func
        elif isinstance(target, MethodType):
            target = target.__func__
        else:
            break
    code = getattr(target, "__code__", None)
    if code is None and not isinstance(target, (type, BuiltinFunctionType)):
        # A callable object may have an asynchronous __call__.
        code = getattr(vars(type(target)).get("__call__"), "__code__", None)
    return int(getattr(code, "co_flags", 0))


def _kind(target: Any) -> int:
    flags = _code_flags(target)
    return next((kind for bits, kind in _KINDS if flags & bits), KIND_PLAIN)


def _callable(node: Node, target: Any, name: str | None, capture: Capture | None) -> Any:
    made: type[Function | Callable | CallableObject]
    if isinstance(target, FunctionType):
        made = Function
    else:
        made = Callable if hasattr(type(target), "__get__") else CallableObject
    from_self = capture is not None and _begins_with_self(target)
    wrapper = made(node, target, _kind(target), name, capture, from_self)
    own = getattr(target, "__dict__", None)
    if own and isinstance(target, FunctionType):
        wrapper.__dict__.update(own)
    return wrapper


def _begins_with_self(target: Any) -> bool:
    code = getattr(target, "__code__", None)
    return code is not None and code.co_argcount > 0 and code.co_varnames[0] == "self"


def _class(node: Node, target: Any, name: str | None) -> Any:
    """A class stays the same class; creating an instance is recorded."""
    if type(target).__module__ == "enum":  # all members exist: calling it looks one up
        return target
    try:
        if target.__init__ is not object.__init__:
            target.__init__ = _callable(node, target.__init__, name, None)
        elif getattr(target.__new__, "__self__", None) is target:
            return _callable(node, target, name, None)  # defined in C, which insists on its own
        elif target.__new__ is not object.__new__:
            target.__new__ = staticmethod(_callable(node, target.__new__, name, None))
    except TypeError:  # a built-in
        return _callable(node, target, name, None)
    return target


class _Descriptor:
    """A descriptor: not callable itself, but returns a callable when it is looked up."""

    def __init__(self, node: Node, target: Any, name: str | None) -> None:
        self._node = node
        self._target = target
        self._name = name

    def __set_name__(self, owner: type, name: str) -> None:
        tell = getattr(self._target, "__set_name__", None)
        if tell is not None:
            tell(owner, name)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        found = self._target.__get__(instance, owner)
        return recorded(self._node, found, self._name) if callable(found) else found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)


def _other(node: Node, target: Any, name: str | None) -> Any:
    if hasattr(type(target), "__get__") and not hasattr(type(target), "__set__"):
        return _Descriptor(node, target, name)
    print(
        f"dftracer: {type(target).__name__} cannot be called: {node.name} does not record it",
        file=sys.stderr,
    )
    return target


def recorded(
    node: Node, target: Any, name: str | None = None, capture: Capture | None = None
) -> Any:
    """`target` with its calls recorded as events of `node`, under `name` if given."""
    if isinstance(target, (staticmethod, classmethod)):
        return type(target)(recorded(node, target.__func__, name, capture))
    if isinstance(target, property):
        get, set_, delete = (
            part and recorded(node, part, name, capture)
            for part in (target.fget, target.fset, target.fdel)
        )
        return type(target)(get, set_, delete, target.__doc__)
    if isinstance(target, functools.cached_property):
        again = functools.cached_property(recorded(node, target.func, name, capture))
        again.attrname = target.attrname
        return again
    if isinstance(target, functools.partialmethod):
        return functools.partialmethod(
            recorded(node, target.func, name, capture), *target.args, **target.keywords
        )
    if isinstance(target, type):
        return _class(node, target, name)
    if not callable(target):
        return _other(node, target, name)
    bind = _IMPLICIT.get(target.__name__) if isinstance(target, FunctionType) else None
    made = _callable(node, target, name, capture)
    return made if bind is None else bind(made)


def reduce(made: Any, node: Node, target: Any, name: str | None) -> Any:
    """How a recorded callable is pickled and copied: by name if that finds it, like a function,
    else by its parts. With cloudpickle, the receiver has another main program."""
    qualified = getattr(target, "__qualname__", None)
    module = getattr(target, "__module__", None) or ""
    asks = str(sys._getframe(1).f_globals.get("__name__"))
    if module == "__main__" and asks.endswith("cloudpickle.cloudpickle"):
        return recorded, (node, target, name)
    found: Any = sys.modules.get(module)
    for part in (qualified or "").split("."):
        found = getattr(found, part, None)
    if found is made:
        return qualified
    return recorded, (node, target, name)

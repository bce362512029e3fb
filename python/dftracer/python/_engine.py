"""Chooses between the types of the extension and those that do nothing."""

from __future__ import annotations

from dftracer.python._switch import ON

TYPE_CHECKING = False
if TYPE_CHECKING or ON:
    from dftracer._core import (
        KIND_ASYNC_GENERATOR,
        KIND_COROUTINE,
        KIND_GENERATOR,
        KIND_ITERABLE_COROUTINE,
        KIND_PLAIN,
        Callable,
        CallableObject,
        Function,
        Iter,
        Node,
    )
else:
    from dftracer.python._off import Function, Iter, Node

    Callable = CallableObject = Function
    KIND_PLAIN = KIND_GENERATOR = KIND_COROUTINE = KIND_ASYNC_GENERATOR = 0
    KIND_ITERABLE_COROUTINE = 0

__all__ = [
    "KIND_ASYNC_GENERATOR",
    "KIND_COROUTINE",
    "KIND_GENERATOR",
    "KIND_ITERABLE_COROUTINE",
    "KIND_PLAIN",
    "Callable",
    "CallableObject",
    "Function",
    "Iter",
    "Node",
]

"""Chooses between the types of the extension and those that do nothing."""

from __future__ import annotations

from dftracer.python._switch import ON

TYPE_CHECKING = False
if TYPE_CHECKING or ON:
    from dftracer._core import Callable, CallableObject, Function, Iter, Node
else:
    from dftracer.python._off import Function, Iter, Node

    Callable = CallableObject = Function

__all__ = ["Callable", "CallableObject", "Function", "Iter", "Node"]

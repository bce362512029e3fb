"""dft_fn: events of a user-defined category, named after the functions that they time."""

from __future__ import annotations

import sys

from dftracer.python._engine import Iter, Node
from dftracer.python._older import Looked
from dftracer.python._switch import ON
from dftracer.python.names import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing would take longer than all the rest
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, Protocol, TypeVar, overload

    from dftracer.python._wrap import Capture
    from dftracer.python.ai import DFTracerAI

    F = TypeVar("F", bound=Callable[..., Any])
    T = TypeVar("T")
    Self = TypeVar("Self", bound="dft_fn")

    class Decorator(Protocol):
        def __call__(self, function: F, /) -> F: ...

else:

    def overload(function):
        return function


__all__ = ["dft_fn"]

# Arguments that are captured from parameters, or from attributes of the object.
_CAPTURED = ("epoch", "step", "image_idx", "image_size")


def _inner(target: Any) -> Any:
    while isinstance(target, (staticmethod, classmethod)):
        target = target.__func__
    return target


def _parameters(target: Any) -> Capture:
    """Positions of the captured names among the parameters of a function."""
    function = _inner(target)
    code = getattr(function, "__code__", None)
    if code is None:
        return []
    count = code.co_argcount
    names = code.co_varnames
    defaults = getattr(function, "__defaults__", None) or ()
    keyword_defaults = getattr(function, "__kwdefaults__", None) or {}
    found: Capture = []
    for name in _CAPTURED:
        if name in names[:count]:
            at = names.index(name)
            given = at - (count - len(defaults))
            found.append((name, at, *defaults[given : given + 1]) if given >= 0 else (name, at))
        elif name in names[count : count + code.co_kwonlyargcount]:
            found.append((name, -1, keyword_defaults.get(name)))
    return found


class dft_fn(Node, Looked):
    """Events of category `cat`: decorates functions, and is a context manager itself."""

    def __init__(
        self,
        cat: str,
        name: str | None = None,
        epoch: int | None = None,
        step: int | None = None,
        image_idx: int | None = None,
        image_size: Any = None,
        enable: bool = True,
    ) -> None:
        if not name:
            name = sys._getframe(1).f_code.co_name
        self._define(text_of(cat), text_of(name))
        self.enabled = bool(enable)
        self.update(epoch=epoch, step=step, image_idx=image_idx, image_size=image_size)
        self.reset()

    # ---- Decorators ----------------------------------------------------------------------------

    @overload
    def log(self, func: F, name: str | None = ...) -> F: ...
    @overload
    def log(self, func: None = ..., name: str | None = ...) -> Decorator: ...
    def log(self, func: Any = None, name: str | None = None) -> Any:
        """Record each call, named `name` or after the function. Parameters named epoch, step,
        image_idx and image_size, and attributes of `self` with these names, are recorded too."""
        return self._decorate(func, name, _with_attributes)

    @overload
    def log_init(self, init: F, name: str | None = ...) -> F: ...
    @overload
    def log_init(self, init: None = ..., name: str | None = ...) -> Decorator: ...
    def log_init(self, init: Any = None, name: str | None = None) -> Any:
        """The same for a constructor: only its parameters are recorded."""
        return self._decorate(init, name, _parameters)

    @overload
    def log_static(self, func: F, name: str | None = ...) -> F: ...
    @overload
    def log_static(self, func: None = ..., name: str | None = ...) -> Decorator: ...
    def log_static(self, func: Any = None, name: str | None = None) -> Any:
        """The same for a static method, above or below @staticmethod; without arguments."""
        return self._decorate(func, name, lambda target: [])

    def _decorate(self, target: Any, name: str | None, capture: Callable[[Any], Capture]) -> Any:
        if target is None:
            return lambda late: self._decorate(late, name, capture)
        if isinstance(target, str):  # @x.log("name")
            return lambda late: self._decorate(late, target, capture)
        if not ON:
            return target
        from dftracer.python._wrap import recorded

        found = capture(target)
        return recorded(self, target, name or _name_of(target), found or None)

    def __call__(self, target: F) -> F:
        """`@x` on a function is the same as `@x.log`."""
        decorated: F = self.log(target)
        return decorated

    # ---- Loops, and explicit calls --------------------------------------------------------------

    def iter(self, func: Iterable[T], name: str = "loop", iter_name: str = "step") -> Iterator[T]:
        """Record two events per item: NAME.iter, the wait for it, and NAME.yield, the loop body,
        with the number of the item as the argument `iter_name`."""
        name = text_of(name or "loop")
        key = text_of(iter_name or "step")
        return Iter(self, func, f"{name}.iter", f"{name}.yield", key, False)

    def log_metadata(self, key: str, value: Any) -> None:
        """Record a key and a value as metadata of the process."""
        from dftracer.python.logger import dftracer

        dftracer.get_instance().log_metadata_event(key, value)

    def enable(self: Self) -> Self:
        self.enabled = True
        return self

    def disable(self: Self) -> Self:
        self.enabled = False
        return self

    # ---- Provenance, accepted and not recorded yet ---------------------------------------------

    def uses(self, type: str, key: Any, store: Any = 0, uri: str = "") -> int:
        return 0

    def generates(self, type: str, key: Any, store: Any = 0, uri: str = "") -> int:
        return 0

    def relate(self: Self, relation: Any, entity: int) -> Self:
        return self

    def relate_entity(
        self, relation: Any, type: str, key: Any, store: Any = 0, uri: str = ""
    ) -> int:
        return 0

    def __reduce__(self) -> Any:
        return _rebuild, (type(self), self.cat, self.name, self.enabled, self._export())

    def __copy__(self: Self) -> Self:
        return self

    def __deepcopy__(self: Self, memo: Any) -> Self:
        return self

    def __repr__(self) -> str:
        state = "" if self.enabled else ", disabled"
        return f"<dft_fn cat={self.cat!r} name={self.name!r}{state}>"


class NodeFunction(dft_fn):
    """A node of the ai tree as a dft_fn: its events use the category, arguments and switch of the
    node, and arguments set here are set on the node."""

    def __init__(self, node: DFTracerAI) -> None:
        self._node = node
        self._define(node.cat, node.name, node)
        self.enabled = node.enabled
        self.reset()

    def update(self: Self, *args: Any, **kwargs: Any) -> Self:
        self._node.update(*args, **kwargs)  # type: ignore[attr-defined]
        return self

    def enable(self: Self) -> Self:
        self._node.enable()  # type: ignore[attr-defined]
        return self

    def disable(self: Self) -> Self:
        self._node.disable()  # type: ignore[attr-defined]
        return self

    def __reduce__(self) -> Any:
        return NodeFunction, (self._node,)


def _rebuild(
    kind: type[dft_fn], cat: str, name: str, enabled: bool, arguments: list[tuple[str, bytes]]
) -> dft_fn:
    made = kind(cat, name, enable=enabled)
    for key, value in arguments:
        made._adopt(key, value)
    return made


def _with_attributes(target: Any) -> Capture:
    """Parameters, else attributes of `self` with the same names."""
    found = _parameters(target)
    function = _inner(target)
    code = getattr(function, "__code__", None)
    if code is not None and code.co_argcount > 0 and code.co_varnames[0] == "self":
        known = {entry[0] for entry in found}
        found += [(name, None) for name in _CAPTURED if name not in known]
    return found


def _name_of(target: Any) -> str:
    function = _inner(target)
    if isinstance(function, property):
        function = function.fget
    for attribute in ("__qualname__", "__name__"):
        name = getattr(function, attribute, None)
        if isinstance(name, str):
            return name
    return type(function).__name__

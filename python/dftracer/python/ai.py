"""The ai tree: a vocabulary for training programs, usable as decorator, context manager, iterator,
or by explicit calls.

The arguments and the switch of a node apply to the nodes below it. The class bodies define the
vocabulary: each annotation is a child, and its name is the name of the event.
"""

from __future__ import annotations

import sys

from dftracer.python._engine import Iter, Node
from dftracer.python._switch import ON
from dftracer.python.names import ROOT_NAME, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing would take longer than all the rest
    import weakref
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any, ClassVar, TypeVar, overload

    from dftracer.python.function import dft_fn

    F = TypeVar("F", bound=Callable[..., Any])
    P = TypeVar("P", bound=property)
    T = TypeVar("T")
    Self = TypeVar("Self", bound="DFTracerAI")
    Arguments = Mapping[str, Any]
    # For each node: its path, its switch, and its arguments.
    _Snapshot = list[tuple[tuple[str, ...], bool, list[tuple[str, bytes]]]]
else:

    def overload(function):
        return function


__all__ = [
    "AI",
    "IO",
    "Checkpoint",
    "Communication",
    "Compute",
    "DFTracerAI",
    "Data",
    "DataLoader",
    "Device",
    "Other",
    "Pipeline",
    "ai",
    "checkpoint",
    "comm",
    "compute",
    "data",
    "dataloader",
    "device",
    "pipeline",
]

_hinted = False


def _hint(node: DFTracerAI) -> None:
    """Warns once that a switch does not affect what the user may expect."""
    global _hinted
    if not _hinted:
        _hinted = True
        print(
            f"dftracer: disable() does not affect functions decorated with parentheses, "
            f"@{node.path}(...): omit the parentheses, or disable before they are defined",
            file=sys.stderr,
        )


class DFTracerAI(Node):
    """One kind of event: its category and name, and the arguments that its events have."""

    _parent: DFTracerAI | None
    _children: dict[str, DFTracerAI]

    def __init__(
        self,
        *,
        cat: str,
        name: str | None = None,
        epoch: int | None = None,
        step: int | None = None,
        image_idx: int | None = None,
        image_size: Any = None,
        enable: bool = True,
        args: Arguments | None = None,
    ) -> None:
        self._define(text_of(cat), text_of(name or cat))
        self._set_up(None, enable)
        self.update(epoch=epoch, step=step, image_idx=image_idx, image_size=image_size, args=args)

    def _set_up(self, parent: DFTracerAI | None, enable: bool) -> None:
        self._parent = parent
        self._children = {}
        self._decorated: weakref.WeakSet[DFTracerAI] | None = None
        self.enabled = bool(enable)

    def _child(self, key: str, name: str, kind: type[Self]) -> Self:
        child = kind.__new__(kind)
        child._define(self._category_of(name), name, self)
        child._set_up(self, self.enabled)
        child._grow()
        self._children[key] = child
        return child

    def _category_of(self, name: str) -> str:
        return self.cat

    def _grow(self) -> None:
        """Creates the children that a predefined node has from the start."""

    @property
    def path(self) -> str:
        """The path of the node, such as `ai.compute.forward`."""
        way = self._way()
        return self.name if way is None else ".".join(("ai", *way))

    # ---- Recording -----------------------------------------------------------------------------

    @overload
    def __call__(self, fn: F) -> F: ...
    @overload
    def __call__(self, fn: P) -> P: ...
    @overload
    def __call__(
        self: Self,
        fn: None = ...,
        *,
        epoch: int | None = ...,
        step: int | None = ...,
        image_idx: int | None = ...,
        image_size: Any = ...,
        enable: bool | None = ...,
        args: Arguments | None = ...,
    ) -> Self: ...
    def __call__(
        self,
        fn: Any = None,
        *,
        epoch: int | None = None,
        step: int | None = None,
        image_idx: int | None = None,
        image_size: Any = None,
        enable: bool | None = None,
        args: Arguments | None = None,
    ) -> Any:
        """`@node` records every call of a function. `node(...)` is the same event with a switch and
        arguments of its own, as a decorator or context manager."""
        if fn is not None:
            if not ON:
                return fn
            from dftracer.python._wrap import recorded

            if self._made_by is not None and self._follows_no_switch:
                self._made_by._remember(self)
            return recorded(self, fn)
        if not ON:
            return self
        kind = type(self)
        one = kind.__new__(kind)
        one._define(self.cat, self.name, self, True)
        one._parent = None
        one._children = {}
        one._decorated = None
        one._made_by = self
        one._follows_no_switch = enable is None
        one.enabled = self.enabled if enable is None else bool(enable)
        if (
            args is not None
            or epoch is not None
            or step is not None
            or image_idx is not None
            or image_size is not None
        ):
            one.update(
                epoch=epoch, step=step, image_idx=image_idx, image_size=image_size, args=args
            )
        return one

    _made_by: DFTracerAI | None = None
    _follows_no_switch = False

    def _remember(self, decorating: DFTracerAI) -> None:
        """A function was decorated with parentheses: disable() of this node does not affect it."""
        if self._decorated is None:
            import weakref

            self._decorated = weakref.WeakSet()
        self._decorated.add(decorating)

    def iter(
        self,
        iterator: Iterable[T],
        include_iter: bool = True,
        include_block: bool = True,
        iter_name: str | None = None,
        block_name: str | None = None,
    ) -> Iterator[T]:
        """Record two events per item: NAME.iter, the wait for it, and NAME.block, the loop body,
        both with the number of the item as `count`. If `break` or an exception leaves the body,
        they are named NAME.iter.last and NAME.block.last."""
        wait = text_of(iter_name or f"{self.name}.iter") if include_iter else None
        body = text_of(block_name or f"{self.name}.block") if include_block else None
        return Iter(self, iterator, wait, body, "count")

    @property
    def init(self) -> DFTracerAI:
        """The child for initialization: `@node.init` on a constructor, `with node.init:`."""
        return self.derive("init")

    def derive(self, name: str) -> DFTracerAI:
        """The child named NAME.`name`, created at its first use."""
        name = text_of(name)
        known = self._children.get(name)
        if known is not None:
            return known
        return self._child(name, f"{self.name}.{name}", DFTracerAI)

    # ---- Switches ------------------------------------------------------------------------------

    def enable(self: Self) -> Self:
        """Record events of this node and of the nodes below it."""
        return self._switch(True)

    def disable(self: Self) -> Self:
        """Record no events of this node and of the nodes below it."""
        return self._switch(False)

    def _switch(self: Self, on: bool) -> Self:
        self.enabled = on
        if not on and self._decorated:
            _hint(self)
        if self._profiler is not None:
            self._profiler.enabled = on
        for child in self._children.values():
            child._switch(on)
        return self

    # ---- Explicit calls --------------------------------------------------------------------------

    def get_time(self) -> int:
        """The time in the unit of events, microseconds by default; 0 while nothing is recorded."""
        from dftracer.python.logger import dftracer

        return dftracer.get_instance().get_time()

    def create_children(self, names: Mapping[str, str]) -> None:
        """Create a child per entry: an attribute of this node, and the name of its events."""
        for key, name in names.items():
            setattr(self, key, self._child(key, text_of(name), DFTracerAI))

    @property
    def profiler(self) -> dft_fn:
        """This node as a `dft_fn`, with its decorators."""
        if self._profiler is None:
            from dftracer.python.function import NodeFunction

            self._profiler = NodeFunction(self)
        return self._profiler

    _profiler: dft_fn | None = None

    def __repr__(self) -> str:
        state = "" if self.enabled else ", disabled"
        return f"<{type(self).__name__} cat={self.cat!r} name={self.name!r}{state}>"

    def __reduce__(self) -> Any:
        """A node of the tree is pickled as its path from the root; others are created again."""
        way = self._way()
        if way is not None:
            return _find, (way,)
        if self._made_by is not None:
            return _make, (self._made_by, self.enabled, self._export())
        return _rebuild, (type(self), self.cat, self.name, self.enabled, self._export())

    def __copy__(self: Self) -> Self:
        return self

    def __deepcopy__(self: Self, memo: Any) -> Self:
        return self

    def _way(self) -> tuple[str, ...] | None:
        if self is ai:
            return ()
        above = self._parent._way() if self._parent is not None else None
        if self._parent is None or above is None:
            return None
        key = next((k for k, child in self._parent._children.items() if child is self), None)
        return None if key is None else (*above, key)

    # ---- For spawned processes -------------------------------------------------

    def _snapshot(self) -> _Snapshot:
        found: _Snapshot = [((), self.enabled, self._export())]
        for key, child in self._children.items():
            found += [((key, *path), on, args) for path, on, args in child._snapshot()]
        return found

    def _restore(self, snapshot: _Snapshot) -> None:
        for path, on, arguments in snapshot:
            node: DFTracerAI = self
            for key in path:
                node = node.derive(key)
            node.enabled = on
            for key, value in arguments:
                node._adopt(key, value)


def _find(way: tuple[str, ...]) -> DFTracerAI:
    node: DFTracerAI = ai
    for key in way:
        node = node.derive(key)
    return node


def _make(node: DFTracerAI, enabled: bool, arguments: list[tuple[str, bytes]]) -> DFTracerAI:
    return _with(node(enable=enabled), arguments)


def _rebuild(
    kind: type[DFTracerAI],
    cat: str,
    name: str,
    enabled: bool,
    arguments: list[tuple[str, bytes]],
) -> DFTracerAI:
    return _with(kind(cat=cat, name=name, enable=enabled), arguments)


def _with(node: DFTracerAI, arguments: list[tuple[str, bytes]]) -> DFTracerAI:
    for key, value in arguments:
        node._adopt(key, value)
    return node


class _Table(type):
    """Gives each annotated child a slot, because children are looked up at every event."""

    def __new__(mcs, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> _Table:
        body["__slots__"] = _children_of(body)
        return super().__new__(mcs, name, bases, body)


def _children_of(body: Mapping[str, Any]) -> dict[str, str]:
    found = body.get("__annotations__", {})
    return {key: kind for key, kind in found.items() if not key.startswith("_")}


class _Category(DFTracerAI, metaclass=_Table):
    """A node whose children are the annotations of its class."""

    _word: ClassVar[str] = ""  # category and name of a new one
    _dotted: ClassVar[bool] = False  # children's names begin with this node's

    def __init__(
        self,
        epoch: int | None = None,
        step: int | None = None,
        image_idx: int | None = None,
        image_size: Any = None,
        enable: bool = True,
        *,
        cat: str | None = None,
        name: str | None = None,
        args: Arguments | None = None,
    ) -> None:
        super().__init__(
            cat=cat or self._word,
            name=name or self._word,
            epoch=epoch,
            step=step,
            image_idx=image_idx,
            image_size=image_size,
            enable=enable,
            args=args,
        )
        self._grow()

    def _grow(self) -> None:
        for key, kind in _children_of(vars(type(self))).items():
            name = f"{self.name}.{key}" if self._dotted or key == "io" else key
            setattr(self, key, self._child(key, name, globals()[kind]))


class IO(_Category):
    _word = "io"
    _dotted = True
    open: DFTracerAI
    read: DFTracerAI
    write: DFTracerAI
    close: DFTracerAI

    def __init__(
        self, *, cat: str, parent_name: str | None = None, name: str | None = None, **options: Any
    ) -> None:
        if parent_name is not None:
            name = f"{text_of(parent_name)}.{self._word}"
        super().__init__(cat=cat, name=name, **options)


class Compute(_Category):
    _word = "compute"
    forward: DFTracerAI
    backward: DFTracerAI
    step: DFTracerAI


class Data(_Category):
    _word = "data"
    preprocess: DFTracerAI
    item: DFTracerAI
    io: IO


class DataLoader(_Category):
    _word = "dataloader"
    fetch: DFTracerAI
    batch: DFTracerAI
    arrive: DFTracerAI
    pin: DFTracerAI
    start_workers: DFTracerAI


class Communication(_Category):
    _word = "comm"
    send: DFTracerAI
    receive: DFTracerAI
    barrier: DFTracerAI
    bcast: DFTracerAI
    reduce: DFTracerAI
    all_reduce: DFTracerAI
    gather: DFTracerAI
    all_gather: DFTracerAI
    scatter: DFTracerAI
    reduce_scatter: DFTracerAI
    all_to_all: DFTracerAI
    wait: DFTracerAI


class Device(_Category):
    _word = "device"
    transfer: DFTracerAI


class Checkpoint(_Category):
    _word = "checkpoint"
    capture: DFTracerAI
    restart: DFTracerAI
    io: IO


class Pipeline(_Category):
    _word = "pipeline"
    epoch: DFTracerAI
    train: DFTracerAI
    evaluate: DFTracerAI
    test: DFTracerAI


class Other(_Category):
    _word = "other"
    _dotted = True
    log: DFTracerAI
    io: IO


class AI(_Category):
    """The root. Each child is a category."""

    _word = ROOT_NAME
    compute: Compute
    data: Data
    dataloader: DataLoader
    comm: Communication
    device: Device
    checkpoint: Checkpoint
    pipeline: Pipeline
    other: Other

    def _category_of(self, name: str) -> str:
        return name


ai = AI()
compute = ai.compute
data = ai.data
dataloader = ai.dataloader
comm = ai.comm
device = ai.device
checkpoint = ai.checkpoint
pipeline = ai.pipeline


def __getattr__(name: str) -> Any:
    """Other names of the package, which other releases have here as well."""
    import dftracer.python as python

    return python._find(name)

"""PyTorch: the operations of a compiled model, as events of the category "dynamo".

Importing this does not import torch. The switch and the arguments (epoch, step, ...) belong to a
tracer and are looked up when a graph runs: changing them does not recompile anything.
"""

from __future__ import annotations

from dftracer.errors import DFTracerError
from dftracer.python._switch import ON
from dftracer.python.ai import DFTracerAI, ai

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing would take longer than all the rest
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar, Union

    from torch.fx import GraphModule

    Inner = Union[str, Callable[..., Any], None]
    B = TypeVar("B", bound="Backend")

__all__ = ["Backend", "Dynamo", "TorchError", "create_backend", "dftracer_dynamo_backend", "dynamo"]

CAT_DYNAMO = "dynamo"
_OLDEST = (2, 5, 1)


class TorchError(DFTracerError, ImportError, RuntimeError):
    """PyTorch is missing or too old. Other releases raise a RuntimeError."""


def _torch() -> Any:
    needed = ".".join(map(str, _OLDEST))
    try:
        import torch
    except ImportError as error:
        raise TorchError(
            f"PyTorch is not available ({error}): tracing a compiled model needs PyTorch {needed} "
            "or later: pip install 'pydftracer[dynamo]'"
        ) from None
    import re

    version = tuple(int(part) for part in re.findall(r"\d+", torch.__version__)[:3])
    if version < _OLDEST:
        raise TorchError(
            f"tracing a compiled model needs PyTorch {needed} or later, and this is "
            f"{torch.__version__}: pip install --upgrade 'pydftracer[dynamo]'"
        )
    return torch


class Dynamo(DFTracerAI):
    """A tracer of compiled models: name of the model, switch, and arguments of its events.

    Arguments that are not set here are taken from the `ai` tree, so that
    `ai.update(epoch=3, step=7)` applies to the operations as well.
    """

    def __init__(
        self,
        name: str | None = None,
        epoch: int | None = None,
        step: int | None = None,
        image_idx: int | None = None,
        image_size: Any = None,
        enable: bool = True,
    ) -> None:
        self.model = None if name is None else str(name)
        self._define(CAT_DYNAMO, self.model or CAT_DYNAMO, ai, True)
        self._set_up(None, enable)
        self.update(epoch=epoch, step=step, image_idx=image_idx, image_size=image_size)

    def backend(self, autograd: bool = True, inner: Inner = None) -> Backend:
        """A backend for torch.compile(model, backend=...)."""
        return Backend(self, autograd, inner)

    def compile(
        self,
        f_py: Any = None,
        autograd: bool = True,
        *,
        inner: Inner = None,
        **options: Any,
    ) -> Any:
        """`@tracer.compile` or `@tracer.compile(...)` on a function, a method or a module:
        torch.compile with this tracer's backend. `options` are those of torch.compile.

        While tracing is off, the function itself is returned; with `inner`, it is compiled by
        that compiler and not traced.
        """
        if f_py is None:
            return lambda late: self.compile(late, autograd=autograd, inner=inner, **options)
        if not ON and inner is None:
            return f_py
        torch = _torch()
        backend = self.backend(autograd, inner) if ON else inner
        return torch.compile(f_py, backend=backend, **options)

    def add_enhanced_timing_to_graph(self, gm: GraphModule) -> Any:
        """A graph with each of its operations recorded."""
        if not ON:
            return gm
        return self.backend(autograd=False)(gm, ())

    def count_parameters(self, module: Any) -> int | None:
        """The number of parameters of a module."""
        return sum(int(weights.numel()) for weights in module.parameters())

    def __reduce__(self) -> Any:
        return Dynamo, (self.model, None, None, None, None, self.enabled)

    def __repr__(self) -> str:
        state = "" if self.enabled else ", disabled"
        return f"<Dynamo name={self.model!r}{state}>"


class Backend:
    """Compiles the graphs that torch.compile finds, for one tracer.

    Backends with the same name that compile in the same way are equal, so that a model that is
    compiled with a new one in every epoch is compiled once. Its events have the arguments of the
    backend that the model was called through.
    """

    def __init__(self, tracer: Dynamo, autograd: bool = True, inner: Inner = None) -> None:
        self.tracer = tracer
        self.autograd = bool(autograd)
        self.inner = inner
        self.__name__ = "dftracer"

    def __call__(
        self, graph: GraphModule, example_inputs: Sequence[Any], **options: Any
    ) -> Callable[..., Any]:
        _torch()
        from dftracer.python.torch import _graphs

        if not ON:
            return _graphs.plain(self, graph, example_inputs, options)
        try:
            return _graphs.traced(self, graph, example_inputs, options)
        finally:
            self._forget()

    # PyTorch compares the backend that code was compiled for with the one that the model is called
    # through. This comparison is the only hook at a call, so it is noted: if the code fits, its
    # graph runs next on this thread.
    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Backend) or self._identity != other._identity:
            return False
        if ON:
            from dftracer import _core

            _core._asked(self.tracer, other.tracer)
        return True

    def _forget(self) -> None:
        from dftracer import _core

        _core._asked()

    @property
    def _identity(self) -> tuple[Any, ...]:
        return (self.tracer.model, self.autograd, self.inner)

    def __hash__(self) -> int:
        return hash(self._identity)

    def __deepcopy__(self: B, memo: Any) -> B:
        """A copy of a compiled module is traced like the original."""
        return self

    def update(self: B, **arguments: Any) -> B:
        """Set epoch, step, image_idx, image_size, or anything else as args={...}."""
        self.tracer.update(**arguments)
        return self

    def enable(self: B) -> B:
        self.tracer.enable()
        return self

    def disable(self: B) -> B:
        self.tracer.disable()
        return self

    def __repr__(self) -> str:
        return f"<dftracer backend {self._identity!r}>"


def create_backend(
    name: str | None = None,
    epoch: int | None = None,
    step: int | None = None,
    image_idx: int | None = None,
    image_size: Any = None,
    enable: bool = True,
    autograd: bool = True,
    inner: Inner = None,
) -> Backend:
    """A backend for torch.compile(model, backend=...).

    `autograd=True` records the ATen operations of forward and backward, `False` those that the
    model itself calls, forward only. `inner` ("inductor", "aot_eager", "eager", or any other
    backend) is the compiler that runs the model; its graphs are recorded, with the operations that
    it exposes.
    """
    _torch()
    return Dynamo(name, epoch, step, image_idx, image_size, enable).backend(autograd, inner)


dynamo = Dynamo()
dftracer_dynamo_backend = dynamo.backend()


# ---- Names that other releases have here ---------------------------------------------------------


class CallStackRecord:
    """One operation of a graph."""

    def __init__(
        self, op_name: str, op_type: str, target: str, timestamp_us: int, grad_enabled: bool
    ) -> None:
        self.op_name = op_name
        self.op_type = op_type
        self.target = target
        self.timestamp_us = timestamp_us
        self.grad_enabled = grad_enabled


def create_detailed_op_name(node: Any, gm: GraphModule) -> str:
    """The event name of an operation of a graph."""
    from dftracer.python.torch import _graphs

    return _graphs.name_of(node, gm)


def __getattr__(name: str) -> Any:
    if name == "TORCH_AVAILABLE":
        from importlib.util import find_spec

        return find_spec("torch") is not None
    if name == "torch":
        return _torch()
    if name == "make_boxed_func":
        _torch()
        from functorch.compile import make_boxed_func  # type: ignore[import-untyped]

        return make_boxed_func
    if name == "aot_autograd":
        _torch()
        from torch._dynamo.backends.common import aot_autograd

        return aot_autograd
    import dftracer.python as python

    return python._find(name)

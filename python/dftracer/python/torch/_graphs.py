"""FX graphs of torch.compile, with every call replaced by a recorded one.

PyTorch generates the code of a graph as usual, with its last uses and its calling convention; only
the targets of the calls differ. This module imports torch.
"""

from __future__ import annotations

import copy
import functools
import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import fx

if TYPE_CHECKING:
    from dftracer._core import Graph
    from dftracer.python.dynamo import Backend

__all__ = ["Recording", "plain", "traced"]

Compiled = Callable[..., Any]

# Operators that run a given graph unchanged. Others trace it or take it apart.
_RUN_THEIR_GRAPHS = frozenset(
    ("tag_activation_checkpoint", "wrap", "wrap_with_autocast", "wrap_with_set_grad_enabled")
)
_ROOT = re.compile(r"^[LG]\[(['\"]).*?\1\]\.?")
_CHILD = re.compile(r"_modules\[(['\"])(.*?)\1\]")  # how PyTorch 2.5 writes a child
_numbers: defaultdict[str | None, Iterator[int]] = defaultdict(itertools.count)


def plain(
    backend: Backend, graph: fx.GraphModule, inputs: Sequence[Any], options: dict[str, Any]
) -> Compiled:
    """What torch.compile would run without tracing."""
    inner = backend.inner
    if inner is None:
        inner = "aot_eager" if backend.autograd else "eager"
    if inner == "inductor":
        from dftracer.python.torch import _inductor

        optimized: Compiled = _inductor.plain(graph, inputs, options)
        return optimized
    from torch._dynamo.backends.registry import lookup_backend

    compiled: Compiled = lookup_backend(inner)(graph, inputs, **options)
    return compiled


def traced(
    backend: Backend, graph: fx.GraphModule, inputs: Sequence[Any], options: dict[str, Any]
) -> Compiled:
    recording = Recording(backend, spans=backend.inner is not None)
    inner = backend.inner
    if inner == "inductor":
        from dftracer.python.torch import _inductor

        optimized: Compiled = _inductor.traced(recording, graph, inputs, options)
        return optimized
    if inner == "eager" or (inner is None and not backend.autograd):
        return recording.operations(
            graph, lambda: plain(backend, graph, inputs, options), "forward", boxed=False
        )
    if inner is None or inner == "aot_eager":
        return _aot(recording, graph, inputs, options)
    return recording.span(plain(backend, graph, inputs, options), "forward")


def _aot(
    recording: Recording, graph: fx.GraphModule, inputs: Sequence[Any], options: dict[str, Any]
) -> Compiled:
    """Like aot_eager: its decompositions, partitioner, settings and way to run a graph."""
    from torch._dynamo.backends import debugging

    # Only newer releases have a choice.
    nop = getattr(debugging, "get_nop_func", lambda: debugging.boxed_nop)()

    def compiler(phase: str) -> Callable[..., Compiled]:
        def compile(part: fx.GraphModule, example_inputs: Sequence[Any]) -> Compiled:
            return recording.operations(part, lambda: nop(part, example_inputs), phase, boxed=True)

        return compile

    backend = _aot_eager(debugging, compiler("forward"), compiler("backward"))
    compiled: Compiled = backend(graph, inputs, **options)
    return compiled


def _aot_eager(debugging: Any, forward: Any, backward: Any) -> Any:
    """aot_eager with our compilers. Up to PyTorch 2.5 it is an object with fixed compilers: one
    with the same settings is created."""
    aot_eager = debugging.aot_eager
    compilers = {"fw_compiler": forward, "bw_compiler": backward}
    settings = getattr(aot_eager, "kwargs", None)
    if not isinstance(settings, dict):
        return functools.partial(aot_eager, **compilers)
    taken = (*compilers, "inference_compiler")
    kept = {name: value for name, value in settings.items() if name not in taken}
    return debugging.aot_autograd(**kept, **compilers)


class Recording:
    """One compilation: its graphs, and what their events have in common."""

    def __init__(self, backend: Backend, spans: bool) -> None:
        from dftracer import _core

        self._core = _core
        self._compiled = _core.Compiled(backend.tracer)
        self._model = backend.tracer.model
        self._name = f"graph.{next(_numbers[self._model])}" if spans else None

    def _common(self, phase: str) -> dict[str, Any]:
        common = {"phase": phase}
        if self._model is not None:
            common["model"] = self._model
        return common

    def graph(self, phase: str) -> Graph:
        """A callable without code; set(plain, recorded) adds it."""
        common = {"op": "graph", **self._common(phase)}
        return self._core.Graph(
            self._compiled,
            torch.is_grad_enabled,
            phase == "forward",
            self._name,
            common,
        )

    def span(self, compiled: Compiled, phase: str) -> Compiled:
        """`compiled`, recorded as a whole."""
        graph = self.graph(phase)
        graph.set(compiled, compiled)
        return graph

    def call(
        self,
        graph: Graph,
        phase: str,
        target: Any,
        name: str,
        arguments: dict[str, Any],
        grad: int = -1,
    ) -> Any:
        """An operation of `graph`."""
        python_name = re.sub(r"\W", "_", name)
        details = {**arguments, **self._common(phase)}
        method = arguments["op"] == "call_method"
        return self._core.Op(graph, target, method, name, details, python_name, grad)

    def operations(
        self,
        module: fx.GraphModule,
        make_plain: Callable[[], Compiled],
        phase: str,
        boxed: bool,
    ) -> Compiled:
        """A graph whose operations are recorded if the tracer is enabled when it runs.
        `boxed`: it takes its inputs in a list, which it empties."""
        graph = self.graph(phase)
        recorded = self._instrument(module, graph, phase, _boxed_codegen() if boxed else None)
        if boxed:
            graph._boxed_call = True
        # Last, because this may change the module.
        graph.set(make_plain(), recorded.forward)
        return graph

    def _instrument(
        self,
        module: fx.GraphModule,
        graph: Graph,
        phase: str,
        codegen: Any = None,
        grad: int = -1,
    ) -> fx.GraphModule:
        """A copy of `module` whose calls are operations of `graph`; `module` stays as it is."""
        new = fx.Graph()
        values: dict[fx.Node, fx.Node] = {}
        result = new.graph_copy(module.graph, values)
        new.output(result)
        new.set_codegen(codegen or copy.deepcopy(module.graph._codegen))
        inside: dict[str, int] = {}
        for node in new.nodes:
            if node.op not in ("call_function", "call_method", "call_module"):
                continue
            target: Any = node.target
            call = self._operation(module, node, graph, phase, grad)
            if target is torch._C._set_grad_enabled and isinstance(node.args[0], bool):
                grad = int(node.args[0])
            name = getattr(target, "__name__", None)
            if name in _RUN_THEIR_GRAPHS and isinstance(target, torch._ops.HigherOrderOperator):
                fixed = grad
                if name == "wrap_with_set_grad_enabled" and isinstance(node.args[0], bool):
                    fixed = int(node.args[0])
                for value in node.args:
                    if isinstance(value, fx.Node) and value.op == "get_attr":
                        inside[str(value.target)] = fixed
            node.op = "call_function"
            node.target = call
        made = fx.GraphModule(module, new)
        made.meta.update(getattr(module, "meta", {}))
        for path, fixed in inside.items():
            part = getattr(module, path, None)
            if isinstance(part, fx.GraphModule):
                setattr(made, path, self._instrument(part, graph, phase, grad=fixed))
        return made

    def _operation(
        self, module: fx.GraphModule, node: fx.Node, graph: Graph, phase: str, grad: int
    ) -> Any:
        target: Any = node.target
        name = name_of(node, module)
        shown = str(target)
        if node.op == "call_module":
            target = module.get_submodule(shown)
        elif node.op == "call_function":
            shown = _qualified(target)
            target = _shortcut(target)
        arguments: dict[str, Any] = {"op": node.op, "target": shown}
        path = _module_path(node)
        if path:
            arguments["module"] = path
        return self.call(graph, phase, target, name, arguments, grad)


def name_of(node: fx.Node, module: fx.GraphModule) -> str:
    """The event name of an operation."""
    target: Any = node.target
    flat = str(target).replace(".", "_")
    if node.op == "call_method":
        return f"method.{flat}"
    if node.op == "call_module":
        return f"{target}.{type(module.get_submodule(str(target))).__name__}_{flat}"
    if node.op == "call_function":
        return f"function.{getattr(target, '__name__', None) or type(target).__name__}"
    return f"{node.op}.{flat}"


# OpOverload.__call__ is a Python function that passes its arguments to `_op` and costs more than
# recording. If it does nothing else, it is bypassed.
_CALL = torch._ops.OpOverload.__call__
_HANDS_ON = getattr(getattr(_CALL, "__code__", None), "co_names", None) == ("_op",)


def _shortcut(target: Any) -> Any:
    if _HANDS_ON and type(target).__call__ is _CALL:
        return target._op
    return target


def _qualified(target: Any) -> str:
    if isinstance(target, torch._ops.OpOverload):
        return str(target)
    try:
        return str(fx.node._get_qualified_name(target))
    except Exception:  # an unusual callable without a better name
        return str(getattr(target, "__name__", type(target).__name__))


def _module_path(node: fx.Node) -> str:
    """Where in the model: "conv1", "layers.0"; of the forward operation, for one of backward."""
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack")
    if not stack:
        return str(node.target) if node.op == "call_module" else ""
    path = list(stack.values())[-1][0]
    return _CHILD.sub(r"\2", _ROOT.sub("", str(path)))


def _boxed_codegen() -> Any:
    known = getattr(fx.graph, "_BoxedCodeGen", None)
    return known() if known is not None else _Boxed()


class _Boxed(fx.graph.CodeGen):
    """For releases that have none: inputs in a list, which is emptied so that each input can be
    freed after its last use."""

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        names = [name.split(":")[0].split("=")[0].strip() for name in free_vars]
        names = [name for name in names if name != "self"]
        unpack = f"{', '.join(names)}, = args" if names else "pass"
        return f"def forward(self, args){maybe_return_annotation}:\n    {unpack}\n    args.clear()"

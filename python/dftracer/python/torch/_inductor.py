"""Graphs that Inductor compiles, and the kernels in them. This module imports torch.

Inductor writes a Python function that calls its kernels and those of libraries by name. A second
copy of this function records these calls; if it cannot be made, the graph is recorded as a whole.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Sequence
from types import MethodType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import fx

    from dftracer.python.torch._graphs import Recording

__all__ = ["plain", "traced"]

# A fused kernel, a kernel of a library, an operator without a kernel here.
_CALL = re.compile(
    r"(?<![\w.])"
    r"(cpp_\w+|extern_kernels\.\w+|(?:torch\.ops|aten)(?:\.\w+){2,3})"
    r"(?=\()"
)


def _patches(options: dict[str, Any]) -> dict[str, Any]:
    """Inductor's settings for torch.compile(mode=, options=)."""
    import torch

    wrapper = torch._TorchCompileInductorWrapper(options.get("mode"), options.get("options"), None)
    return dict(wrapper.config)


def plain(graph: fx.GraphModule, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    from torch._inductor.compile_fx import compile_fx

    return compile_fx(graph, inputs, config_patches=_patches(options))


def traced(
    recording: Recording, graph: fx.GraphModule, inputs: Sequence[Any], options: dict[str, Any]
) -> Any:
    from torch._functorch import config
    from torch._inductor.compile_fx import compile_fx, compile_fx_inner

    def compile_part(part: fx.GraphModule, example_inputs: Sequence[Any], **how: Any) -> Any:
        made = compile_fx_inner(part, example_inputs, **how)
        run = getattr(made, "current_callable", None)
        if run is not None:
            phase = "backward" if how.get("is_backward") else "forward"
            made.current_callable = _recorded(recording, run, phase)
        return made

    # A hit in AOTAutograd's cache would not come by compile_part. Inductor's own cache, which
    # spares the C++ compiler, is used as ever.
    with config.patch(enable_autograd_cache=False):
        return compile_fx(
            graph, inputs, inner_compile=compile_part, config_patches=_patches(options)
        )


def _recorded(recording: Recording, run: Callable[..., Any], phase: str) -> Any:
    graph = recording.graph(phase)
    graph.set(run, _with_kernels(recording, graph, run, phase) or run)
    return graph


def _with_kernels(
    recording: Recording, graph: Any, run: Callable[..., Any], phase: str
) -> Callable[..., Any] | None:
    function: Any = getattr(run, "__func__", run)
    known = getattr(function, "__globals__", None)
    if known is None or not known.get("__name__", "").startswith("torch._inductor."):
        return None
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        return None
    made = dict(known)
    names: dict[str, str] = {}

    def replace(match: re.Match[str]) -> str:
        path = match[1]
        if path not in names:
            target = _look_up(known, path)
            if not callable(target):
                return path
            name = f"_dftracer_{len(names)}"
            kernel = re.sub(r"^(torch\.ops\.\w+|aten|extern_kernels)\.", "", path)
            made[name] = recording.call(
                graph, phase, target, f"kernel.{kernel}", {"op": "kernel", "target": path}
            )
            names[path] = name
        return names[path]

    text = _CALL.sub(replace, source)
    if not names:
        return None
    space: dict[str, Any] = {}
    try:
        exec(compile(text, f"<recorded {function.__code__.co_filename}>", "exec"), made, space)
    except SyntaxError:
        return None
    again = space.get(function.__name__)
    if not callable(again):
        return None
    bound = getattr(run, "__self__", None)
    return MethodType(again, bound) if bound is not None else again


def _look_up(known: dict[str, Any], path: str) -> Any:
    first, *rest = path.split(".")
    found = known.get(first)
    for part in rest:
        found = getattr(found, part, None)
    return found

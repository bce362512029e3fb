"""Maps calls of torch to events. Imports torch; used only by auto.install()."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

import torch
from torch.compiler import is_dynamo_compiling

from dftracer import _core
from dftracer._core import Region
from dftracer.python.torch._checkpoints import instrument_checkpoints
from dftracer.python.torch._collections import record_collections
from dftracer.python.torch._collectives import bytes_of, instrument_collectives
from dftracer.python.torch._data import instrument_data
from dftracer.python.torch._gradients import Gradients, instrument_gradients
from dftracer.python.torch._patch import Patches
from dftracer.python.torch._progress import Progress

__all__ = ["install", "start_once"]

Call = Callable[..., Any]
_OUR_MODULES = ("dftracer.python.torch.", "dftracer.python.logger", "dftracer.python._children")
_TRANSFERS = ("to", "cuda", "cpu", "xpu", "hpu", "npu")


class _Inside(threading.local):
    """Calls in progress in this thread: only the outermost call is an event."""

    model = False

    def __init__(self) -> None:
        # Optimizers in the middle of a step, and the event of the outermost one.
        self.steps: list[tuple[int, Any]] = []


_inside = _Inside()
_started = False


def _start() -> None:
    """The first event starts the trace if the program has not: a program that calls initialize_log
    itself does so before it trains, with its own arguments."""
    global _started
    _started = True
    if not _core.active():
        from dftracer.python.logger import dftracer

        dftracer.initialize_log()


def install(patches: Patches) -> Progress:
    progress = Progress(torch.is_grad_enabled)
    collectives = instrument_collectives(patches, progress, start_once)
    gradients = instrument_gradients(patches, progress, collectives)
    _forward(patches, progress)
    _backward(patches, progress, gradients)
    _step(patches, progress)
    instrument_data(patches, progress, start_once)
    _transfers(patches, progress)
    instrument_checkpoints(patches, progress, start_once)
    record_collections(patches)
    _hide_from_dynamo()
    return progress


def _codes(value: Any) -> Iterator[CodeType]:
    """The code of a function, a class or another piece of code, and all inside it."""
    if isinstance(value, type):
        for member in vars(value).values():
            yield from _codes(member)
    code = value if isinstance(value, CodeType) else getattr(value, "__code__", None)
    if isinstance(code, CodeType):
        yield code
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                yield from _codes(constant)


def _skip_code() -> Callable[[CodeType], Any] | None:
    """Dynamo's own way to skip a function, from its C module, whose import is free."""
    frames: Any = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    if hasattr(frames, "set_code_exec_strategy"):
        action = frames._FrameAction
        strategy = frames._FrameExecStrategy(action.SKIP, action.DEFAULT)
        return lambda code: frames.set_code_exec_strategy(code, strategy)
    return getattr(frames, "skip_code", None)


def _hide_from_dynamo() -> None:
    """Keeps Dynamo from compiling our functions between two graphs of a compiled function: that
    would take time and show as graphs and graph breaks that the program does not have.
    """
    skip = _skip_code()
    if skip is None:
        return
    for name, module in list(sys.modules.items()):
        if name.startswith(_OUR_MODULES):
            for value in list(vars(module).values()):
                if getattr(value, "__module__", None) == name:
                    for code in _codes(value):
                        skip(code)


def start_once() -> None:
    if not _started:
        _start()


# ---- Compute -----------------------------------------------------------------------------------


def _forward(patches: Patches, progress: Progress) -> None:
    inside = _inside
    in_backward: Call = getattr(torch._C, "_current_graph_task_id", lambda: -1)

    def is_model(module: Any) -> bool:
        """Losses, activations and transforms are modules too: a model has weights.

        Searched by hand: the first weight of `parameters()` costs five generators.
        """
        for weight in module._parameters.values():
            if weight is not None:
                return True
        return any(child is not None and is_model(child) for child in module._modules.values())

    def outermost(original: Call, module: Any, args: Any, kwargs: Any) -> Any:
        if in_backward() != -1 or not is_model(module):
            return original(module, *args, **kwargs)
        start_once()
        progress.forward()
        inside.model = True
        region = Region(progress.nodes.forward)
        try:
            return original(module, *args, **kwargs)
        finally:
            region.end({"module": type(module).__name__, "training": module.training})
            inside.model = False

    def make(original: Call) -> Call:
        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
            if is_dynamo_compiling() or inside.model:
                return original(self, *args, **kwargs)
            return outermost(original, self, args, kwargs)

        return __call__

    patches.replace((torch.nn.Module,), "__call__", make)


def _backward(patches: Patches, progress: Progress, gradients: Gradients) -> None:
    inside = _inside

    def make(original: Call) -> Call:
        def backward(*args: Any, **kwargs: Any) -> Any:
            if is_dynamo_compiling() or inside.model:
                return original(*args, **kwargs)
            start_once()
            progress.backward()
            inside.model = True
            region = Region(progress.nodes.backward)
            gradients.enter()
            failed = True
            try:
                result = original(*args, **kwargs)
                failed = False
                return result
            finally:
                gradients.leave(failed)
                region.end()
                inside.model = False

        return backward

    # Tensor.backward calls this.
    patches.replace((torch.autograd,), "backward", make)


def _step(patches: Patches, progress: Progress) -> None:
    from torch.optim import optimizer as optimizers

    inside = _inside

    def is_nested() -> bool:
        """Whether another step really encloses this one: a failed step may have left its mark."""
        frame = sys._getframe(2)
        found = 0
        while frame is not None and found < 2:
            code = frame.f_code
            if code.co_name == "wrapper" and code.co_filename == optimizers.__file__:
                found += 1
            frame = frame.f_back  # type: ignore[assignment]
        return found > 1

    def before(optimizer: Any, args: Any, kwargs: Any) -> None:
        if is_dynamo_compiling():
            return
        steps = inside.steps
        if steps and not is_nested():
            for _, region in steps:
                if region is not None:
                    region.drop()
            steps.clear()
        region = None
        if not steps:
            start_once()
            progress.update(optimizer)
            region = Region(progress.nodes.step)
        steps.append((id(optimizer), region))

    def after(optimizer: Any, args: Any, kwargs: Any) -> None:
        if is_dynamo_compiling():
            return
        steps = inside.steps
        while steps:
            identity, region = steps.pop()
            if identity == id(optimizer):
                if region is not None:
                    region.end({"optimizer": type(optimizer).__name__})
                break

    patches.undo_with(optimizers.register_optimizer_step_pre_hook(before).remove)
    patches.undo_with(optimizers.register_optimizer_step_post_hook(after).remove)


# ---- Devices -----------------------------------------------------------------------------------


def _transfers(patches: Patches, progress: Progress) -> None:
    """Data that moves between devices, without weights that move with their model."""
    plain = torch.Tensor

    def make(original: Call) -> Call:
        def move(self: Any, *args: Any, **kwargs: Any) -> Any:
            if is_dynamo_compiling() or type(self) is not plain:
                return original(self, *args, **kwargs)
            region = Region(progress.nodes.transfer)
            try:
                moved = original(self, *args, **kwargs)
                if moved is self or type(moved) is not plain or moved.device == self.device:
                    return moved
                says = {
                    "bytes": bytes_of(moved),
                    "source": str(self.device),
                    "target": str(moved.device),
                }
                region.end(says)
                return moved
            finally:
                region.drop()

        return move

    for name in _TRANSFERS:
        if hasattr(plain, name):
            patches.replace((plain,), name, make)

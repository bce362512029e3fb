"""A callback for the Trainer of Hugging Face's transformers.

    trainer = transformers.Trainer(..., callbacks=[DFTracerCallback()])

Fetching, forward, backward, optimizer steps, collectives and checkpoints are recorded while the
trainer works, inside spans for its phases (train, epoch, evaluate). Epoch and step are those of the
trainer's state. The trainer has no hook for the beginning of an evaluation: its span starts with
the first predicted batch.
"""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from dftracer.python.torch._phases import Phases

__all__ = ["DFTracerCallback"]


def _epoch(state: Any) -> int:
    """The trainer counts epochs as a fraction; at the beginning of one it is an integer."""
    return int(round(state.epoch or 0, 6))


class DFTracerCallback(TrainerCallback):  # type: ignore[misc]
    def __init__(self) -> None:
        self._phases = Phases()
        self._phases.set_up()

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._phases = Phases()

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._phases.set_up()
        self._phases.set_counters(_epoch(state), state.global_step)
        self._phases.begin("train")

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._phases.end("train")

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._phases.set_counters(_epoch(state), state.global_step)
        self._phases.begin("epoch")

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._phases.end("epoch")

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._phases.set_counters(step=state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._phases.set_counters(step=state.global_step)

    def on_prediction_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._phases.begin("evaluate")

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._phases.end("evaluate")

    def on_predict(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._phases.end("evaluate")

"""A callback for Lightning's Trainer.

    trainer = lightning.Trainer(callbacks=[DFTracerCallback()])

Fetching, forward, backward, optimizer steps, collectives and checkpoints are recorded while the
trainer works, inside spans for its phases (train, epoch, evaluate, test). Epoch and step are
`trainer.current_epoch` and `trainer.global_step`.
"""

from __future__ import annotations

from typing import Any

try:
    from lightning.pytorch import Callback
except ImportError:
    from pytorch_lightning import Callback

from dftracer.python.torch._phases import Phases

__all__ = ["DFTracerCallback"]


class DFTracerCallback(Callback):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self._phases = Phases()

    def __getstate__(self) -> dict[str, Any]:
        """Trainers that start processes pickle their callbacks."""
        return {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._phases = Phases()

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        self._phases.set_up()

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        self._phases.tear_down()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._phases.tear_down()

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._phases.set_counters(trainer.current_epoch, trainer.global_step)
        self._phases.begin("train")

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._phases.end("train")

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self._phases.set_counters(trainer.current_epoch, trainer.global_step)
        self._phases.begin("epoch")

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self._phases.end("epoch")

    def on_train_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int
    ) -> None:
        self._phases.set_counters(step=trainer.global_step)

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self._phases.set_counters(step=trainer.global_step)

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        self._phases.begin("evaluate")

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        self._phases.end("evaluate")

    def on_test_start(self, trainer: Any, pl_module: Any) -> None:
        self._phases.begin("test")

    def on_test_end(self, trainer: Any, pl_module: Any) -> None:
        self._phases.end("test")

"""Counts the epochs and steps of a training script from what it does.

An epoch is a pass over the loader that training draws from; a step is an update of the weights.
Both count from 0. A script that calls ai.update(epoch=..., step=...) itself keeps its own numbers.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Callable

from dftracer.python.ai import AI, DFTracerAI, ai
from dftracer.python.names import ROOT_CAT, ROOT_NAME

__all__ = ["Nodes", "Progress"]

_NUMBER = struct.Struct("q")
_NONE = -1


class Nodes:
    """The events that torch's own calls become."""

    def __init__(self, tree: AI) -> None:
        self.tree = tree
        self.fetch: DFTracerAI = tree.dataloader.fetch
        self.batch: DFTracerAI = tree.dataloader.batch
        self.arrive: DFTracerAI = tree.dataloader.arrive
        self.pin: DFTracerAI = tree.dataloader.pin
        self.start_workers: DFTracerAI = tree.dataloader.start_workers
        self.item: DFTracerAI = tree.data.item
        self.collate: DFTracerAI = tree.data.preprocess.derive("collate")
        self.forward: DFTracerAI = tree.compute.forward
        self.backward: DFTracerAI = tree.compute.backward
        self.step: DFTracerAI = tree.compute.step
        self.transfer: DFTracerAI = tree.device.transfer
        self.capture: DFTracerAI = tree.checkpoint.capture
        self.restart: DFTracerAI = tree.checkpoint.restart
        self.comm = tree.comm
        self.wait: DFTracerAI = tree.comm.wait


class Progress:
    """The counters of one process; `external` while the trainer of a framework sets them."""

    def __init__(self, grad_enabled: Callable[[], bool]) -> None:
        self.nodes = Nodes(ai)
        self.external = False
        self._grad_enabled = grad_enabled
        self._epoch = _NONE
        self._step = 0
        self._set: dict[str, int] = {}
        self._theirs: set[str] = set()
        # Datasets whose batches were followed by a backward pass: the training data.
        self._training: set[int] = set()
        self._latest = 0  # the dataset of the latest batch
        self._trained = False  # in this pass
        self._fetched = False  # since the step began
        self._stepped: set[int] = set()  # optimizers, since the step began
        # Shared memory: forked workers read the epoch here, even persistent ones.
        self._shared = mmap.mmap(-1, _NUMBER.size)
        self._owner = os.getpid()
        self._passes = 0
        self._share()

    # ---- Events --------------------------------------------------------------------------

    def begin_pass(self, dataset: object) -> None:
        """A pass over a loader begins. It counts if its dataset is, or may be, training data."""
        if self.external or not self._grad_enabled():
            return
        if self._training and id(dataset) not in self._training:
            return
        self._next_epoch()

    def fetch(self, dataset: object) -> None:
        self._latest = id(dataset)
        if self.external or not self._grad_enabled():
            return
        if self._training and self._latest not in self._training:
            return
        if self._stepped:
            self._next_step()
        self._fetched = True

    def forward(self) -> None:
        """Without a loader a step begins with the first forward pass after an update."""
        if self.external or not self._grad_enabled():
            return
        if self._stepped and not self._fetched:
            self._next_step()
        elif not self._set:
            self._publish("step", self._step)

    def backward(self) -> None:
        if self.external:
            return
        if self._latest and self._latest not in self._training:
            late = bool(self._training)  # counted as evaluation until now
            self._training.add(self._latest)
            if late:
                self._next_epoch()
        self._trained = True

    def update(self, optimizer: object) -> None:
        """An optimizer is about to step. The same one twice is two steps; several are one."""
        if self.external:
            return
        if id(optimizer) in self._stepped:
            self._next_step()
        self._stepped.add(id(optimizer))

    def set_counters(self, epoch: int | None = None, step: int | None = None) -> None:
        """Sets the counters, from the trainer of a framework."""
        if epoch is not None:
            self._epoch = epoch
            self._share()
            self._publish("epoch", epoch)
        if step is not None:
            self._step = step
            self._publish("step", step)

    def close(self) -> None:
        """Resets what was set and not replaced since."""
        for key in self._set:
            if self._is_ours(key):
                ai._forget(key)
        self._set.clear()

    # ---- Workers of a loader -------------------------------------------------------------------

    def enter_worker(self) -> None:
        """A worker begins a pass. It works ahead, so only the epoch is meaningful there."""
        forked = os.getpid() != self._owner
        if self._passes == 0:
            epoch = self._seen_epoch() if forked else self._inherited_epoch()
            self.nodes = Nodes(AI(cat=ROOT_CAT, name=ROOT_NAME))
        else:
            epoch = self._seen_epoch() if forked else self._epoch + 1
        self._passes += 1
        if epoch != _NONE:
            self._epoch = epoch
            self.nodes.tree.update(epoch=epoch)

    def _seen_epoch(self) -> int:
        return int(_NUMBER.unpack_from(self._shared)[0])

    def _inherited_epoch(self) -> int:
        """A spawned process has its parent's arguments, encoded."""
        for key, value in ai._export():
            if key == "epoch" and len(value) == 2 * _NUMBER.size:
                return int(_NUMBER.unpack_from(value, _NUMBER.size)[0])
        return _NONE

    # ---- Counting ------------------------------------------------------------------------------

    def _share(self) -> None:
        _NUMBER.pack_into(self._shared, 0, self._epoch)

    def _next_epoch(self) -> None:
        if self._epoch == _NONE or self._trained:
            self._epoch += 1
            self._trained = False
            self._share()
            self._publish("epoch", self._epoch)
            self._publish("step", self._step)

    def _next_step(self) -> None:
        self._stepped.clear()
        self._fetched = False
        self._step += 1
        self._publish("step", self._step)

    def _publish(self, key: str, value: int) -> None:
        if key in self._theirs:
            return
        if not self._is_ours(key):
            self._theirs.add(key)
            return
        ai.update(**{key: value})  # type: ignore[arg-type]
        self._set[key] = value

    def _is_ours(self, key: str) -> bool:
        """Whether the program itself has not set it."""
        now = dict(ai._export()).get(key)
        if now is None:
            return True
        return key in self._set and now[_NUMBER.size :] == _NUMBER.pack(self._set[key])

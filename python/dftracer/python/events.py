"""Categories and events of the ai vocabulary, as enums of the strings in the trace."""

from __future__ import annotations

from enum import Enum
from typing import Any

__all__ = [
    "CheckpointEvent",
    "CommunicationEvent",
    "ComputeEvent",
    "DataEvent",
    "DataLoaderEvent",
    "DeviceEvent",
    "IOEvent",
    "OtherEvent",
    "PipelineEvent",
    "ProfileCategory",
    "StringEnum",
]


class StringEnum(str, Enum):
    """A member is the string in the trace; auto() is its name in lower case."""

    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[Any]) -> str:
        return name.lower()

    def __str__(self) -> str:
        return str(self.value)


class ProfileCategory(StringEnum):
    COMPUTE = "compute"
    DATA = "data"
    DATALOADER = "dataloader"
    COMM = "comm"
    DEVICE = "device"
    CHECKPOINT = "checkpoint"
    PIPELINE = "pipeline"
    OTHER = "other"


class ComputeEvent(StringEnum):
    FORWARD = "forward"
    BACKWARD = "backward"
    STEP = "step"


class DataEvent(StringEnum):
    PREPROCESS = "preprocess"
    ITEM = "item"


class DataLoaderEvent(StringEnum):
    FETCH = "fetch"


class CommunicationEvent(StringEnum):
    SEND = "send"
    RECEIVE = "receive"
    BARRIER = "barrier"
    BCAST = "bcast"
    REDUCE = "reduce"
    ALL_REDUCE = "all_reduce"
    GATHER = "gather"
    ALL_GATHER = "all_gather"
    SCATTER = "scatter"
    REDUCE_SCATTER = "reduce_scatter"
    ALL_TO_ALL = "all_to_all"


class DeviceEvent(StringEnum):
    TRANSFER = "transfer"


class CheckpointEvent(StringEnum):
    CAPTURE = "capture"
    RESTART = "restart"


class PipelineEvent(StringEnum):
    EPOCH = "epoch"
    TRAIN = "train"
    EVALUATE = "evaluate"
    TEST = "test"


class IOEvent(StringEnum):
    OPEN = "open"
    READ = "read"
    WRITE = "write"
    CLOSE = "close"


class OtherEvent(StringEnum):
    LOG = "log"

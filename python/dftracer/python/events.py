"""Categories and events of the ai vocabulary, as members: each is the string in the trace."""

from __future__ import annotations

from enum import Enum

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
]


class _Word(str, Enum):
    """A member is the string that stands in the trace."""

    def __str__(self) -> str:
        return str(self.value)


class ProfileCategory(_Word):
    COMPUTE = "compute"
    DATA = "data"
    DATALOADER = "dataloader"
    COMM = "comm"
    DEVICE = "device"
    CHECKPOINT = "checkpoint"
    PIPELINE = "pipeline"
    OTHER = "other"


class ComputeEvent(_Word):
    FORWARD = "forward"
    BACKWARD = "backward"
    STEP = "step"


class DataEvent(_Word):
    PREPROCESS = "preprocess"
    ITEM = "item"


class DataLoaderEvent(_Word):
    FETCH = "fetch"


class CommunicationEvent(_Word):
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


class DeviceEvent(_Word):
    TRANSFER = "transfer"


class CheckpointEvent(_Word):
    CAPTURE = "capture"
    RESTART = "restart"


class PipelineEvent(_Word):
    EPOCH = "epoch"
    TRAIN = "train"
    EVALUATE = "evaluate"
    TEST = "test"


class IOEvent(_Word):
    OPEN = "open"
    READ = "read"
    WRITE = "write"
    CLOSE = "close"


class OtherEvent(_Word):
    LOG = "log"

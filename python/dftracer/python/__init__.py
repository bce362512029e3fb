"""The Python face: start a trace, annotate functions, loops and regions, end it.

Importing this has no effect. Nothing is recorded unless DFTRACER_ENABLE=1 is set.
"""

from __future__ import annotations

from dftracer.python._switch import ON as DFTRACER_ENABLE
from dftracer.python.ai import (
    AI,
    IO,
    Checkpoint,
    Communication,
    Compute,
    Data,
    DataLoader,
    Device,
    DFTracerAI,
    Other,
    Pipeline,
    ai,
    checkpoint,
    comm,
    compute,
    data,
    dataloader,
    device,
    pipeline,
)
from dftracer.python.dynamo import Dynamo, create_backend, dftracer_dynamo_backend, dynamo
from dftracer.python.function import dft_fn
from dftracer.python.logger import dftracer
from dftracer.python.names import (
    BLOCK_NAME,
    CTX_SEPARATOR,
    INIT_NAME,
    ITER_COUNT_NAME,
    ITER_NAME,
    ROOT_CAT,
    ROOT_NAME,
    START_METADATA_NAME,
    STOP_METADATA_NAME,
    get_iter_block_name,
    get_iter_handle_name,
)

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing would take longer than all the rest
    from typing import Any

    from dftracer.python.compat import (
        DFTRACER_ENABLE_ENV,
        DFTRACER_INIT_ENV,
        DFTRACER_INIT_PRELOAD,
        DFTRACER_LOG_LEVEL,
        DFTRACER_LOG_LEVEL_ENV,
        NoOpProfiler,
        ProfilerProtocol,
        capture_signal,
        get_default_args,
        get_time_scale,
        setup_logger,
        setup_stream_logger,
    )
    from dftracer.python.entities import EntityID, EntityRelation, EntityRole, EntityStore
    from dftracer.python.events import (
        CheckpointEvent,
        CommunicationEvent,
        ComputeEvent,
        DataEvent,
        DataLoaderEvent,
        DeviceEvent,
        IOEvent,
        OtherEvent,
        PipelineEvent,
        ProfileCategory,
    )
    from dftracer.python.tags import TagDType, TagType, TagValue

# Names that few programs ask for, by the module that holds them: only who asks pays for it.
_LATE = {
    "compat": (
        "DFTRACER_ENABLE_ENV DFTRACER_INIT_ENV DFTRACER_INIT_PRELOAD DFTRACER_LOG_LEVEL "
        "DFTRACER_LOG_LEVEL_ENV NoOpProfiler ProfilerProtocol capture_signal get_default_args "
        "get_time_scale setup_logger setup_stream_logger"
    ),
    "entities": "EntityID EntityRelation EntityRole EntityStore",
    "events": (
        "CheckpointEvent CommunicationEvent ComputeEvent DataEvent DataLoaderEvent DeviceEvent "
        "IOEvent OtherEvent PipelineEvent ProfileCategory"
    ),
    "tags": "TagDType TagType TagValue",
}
_MODULE_OF = {name: module for module, names in _LATE.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})


__all__ = [
    "AI",
    "BLOCK_NAME",
    "CTX_SEPARATOR",
    "DFTRACER_ENABLE",
    "DFTRACER_ENABLE_ENV",
    "DFTRACER_INIT_ENV",
    "DFTRACER_INIT_PRELOAD",
    "DFTRACER_LOG_LEVEL",
    "DFTRACER_LOG_LEVEL_ENV",
    "INIT_NAME",
    "IO",
    "ITER_COUNT_NAME",
    "ITER_NAME",
    "ROOT_CAT",
    "ROOT_NAME",
    "START_METADATA_NAME",
    "STOP_METADATA_NAME",
    "Checkpoint",
    "CheckpointEvent",
    "Communication",
    "CommunicationEvent",
    "Compute",
    "ComputeEvent",
    "DFTracerAI",
    "Data",
    "DataEvent",
    "DataLoader",
    "DataLoaderEvent",
    "Device",
    "DeviceEvent",
    "Dynamo",
    "EntityID",
    "EntityRelation",
    "EntityRole",
    "EntityStore",
    "IOEvent",
    "NoOpProfiler",
    "Other",
    "OtherEvent",
    "Pipeline",
    "PipelineEvent",
    "ProfileCategory",
    "ProfilerProtocol",
    "TagDType",
    "TagType",
    "TagValue",
    "ai",
    "capture_signal",
    "checkpoint",
    "comm",
    "compute",
    "create_backend",
    "data",
    "dataloader",
    "device",
    "dft_fn",
    "dftracer",
    "dftracer_dynamo_backend",
    "dynamo",
    "get_default_args",
    "get_iter_block_name",
    "get_iter_handle_name",
    "get_time_scale",
    "pipeline",
    "setup_logger",
    "setup_stream_logger",
]

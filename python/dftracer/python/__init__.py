"""The Python API: start a trace, annotate functions, loops and regions, end the trace.

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

    from dftracer.python.common import (
        NoOpProfiler,
        P,
        ProfilerProtocol,
        R,
        T,
        capture_signal,
        get_default_args,
        get_time_scale,
        profiler,
        setup_logger,
    )
    from dftracer.python.entities import EntityID, EntityRelation, EntityRole, EntityStore
    from dftracer.python.env import (
        DFTRACER_ENABLE_ENV,
        DFTRACER_INIT_ENV,
        DFTRACER_INIT_PRELOAD,
        DFTRACER_LOG_LEVEL,
        DFTRACER_LOG_LEVEL_ENV,
        DFTRACER_TIME_METRIC_ENV,
        setup_stream_logger,
    )
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
        StringEnum,
    )
    from dftracer.python.tags import TagDType, TagType, TagValue, TagValueTuple

    __version__: str

# Names that few programs use, by module; loaded on first use.
_LATE = {
    "common": (
        "NoOpProfiler P ProfilerProtocol R T capture_signal get_default_args get_time_scale "
        "profiler setup_logger"
    ),
    "entities": "EntityID EntityRelation EntityRole EntityStore",
    "env": (
        "DFTRACER_ENABLE_ENV DFTRACER_INIT_ENV DFTRACER_INIT_PRELOAD DFTRACER_LOG_LEVEL "
        "DFTRACER_LOG_LEVEL_ENV DFTRACER_TIME_METRIC_ENV setup_stream_logger"
    ),
    "events": (
        "CheckpointEvent CommunicationEvent ComputeEvent DataEvent DataLoaderEvent DeviceEvent "
        "IOEvent OtherEvent PipelineEvent ProfileCategory StringEnum"
    ),
    "tags": "TagDType TagType TagValue TagValueTuple",
}
_MODULE_OF = {name: module for module, names in _LATE.items() for name in names.split()}
_ALIASES = {"dft_fn_orig": "dft_fn", "dftracer_orig": "dftracer"}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        import dftracer

        return dftracer.__version__
    if name in _ALIASES:
        return globals()[_ALIASES[name]]
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def _find(name: str) -> Any:
    """A public name, for the modules that alias this one."""
    if name in __all__ or name in _ALIASES:
        return globals()[name] if name in globals() else __getattr__(name)
    raise AttributeError(f"dftracer.python has no name {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF, *_ALIASES, "__version__"})


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
    "DFTRACER_TIME_METRIC_ENV",
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
    "P",
    "Pipeline",
    "PipelineEvent",
    "ProfileCategory",
    "ProfilerProtocol",
    "R",
    "StringEnum",
    "T",
    "TagDType",
    "TagType",
    "TagValue",
    "TagValueTuple",
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
    "profiler",
    "setup_logger",
    "setup_stream_logger",
]

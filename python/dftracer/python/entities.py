"""Provenance of data, from programs written for newer releases. Accepted, but not recorded yet."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["EntityID", "EntityRelation", "EntityRole", "EntityStore"]

EntityID = int  # 0: none


class EntityStore(IntEnum):
    """Where the data is."""

    MEMORY = 0
    GPU_MEMORY = 1
    LOCAL_DISK = 2
    PARALLEL_FS = 3
    BURST_BUFFER = 4
    OBJECT_STORE = 5
    DATABASE = 6
    NETWORK = 7
    OTHER = 8


class EntityRole(IntEnum):
    """What the data is for."""

    UNKNOWN = 0
    INPUT = 1
    OUTPUT = 2
    INTERMEDIATE = 3
    PARAMETER = 4
    REFERENCE = 5


class EntityRelation(IntEnum):
    """Relation of an event to data; from 16 on, of data to other data."""

    USED = 0
    GENERATED = 1
    INVALIDATED = 2
    UPDATED = 3
    DERIVED_FROM = 16
    REVISION_OF = 17
    CONTAINS = 18
    PART_OF = 19
    SPECIALIZATION_OF = 20
    ALTERNATE_OF = 21
    DEPENDS_ON = 22

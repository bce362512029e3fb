"""The functions of safetensors.torch, as simple as can be."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any


def save_file(tensors: dict[str, Any], filename: str, metadata: Any = None) -> None:
    Path(filename).write_bytes(pickle.dumps(tensors))


def load_file(filename: str, device: str = "cpu") -> Any:
    return pickle.loads(Path(filename).read_bytes())


def save_model(model: Any, filename: str, metadata: Any = None) -> None:
    save_file(model.state_dict(), filename)


def load_model(model: Any, filename: str, strict: bool = True) -> Any:
    return model.load_state_dict(load_file(filename), strict=strict)

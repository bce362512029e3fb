"""Stands in for the package of this name: it writes tensors into archives by torch.save."""

from __future__ import annotations

import io
from typing import Any

import torch


def write(sample: Any) -> None:
    torch.save(sample, io.BytesIO())

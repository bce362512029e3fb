"""Runs programs that import PyTorch. That alone takes seconds, so that each does all that belongs
together."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from support.run import Result, run

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "tests" / "pytorch" / "programs"
EXAMPLES = ROOT / "examples" / "torch"

NEEDS_TORCH = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None,
    reason="PyTorch is not installed: pip install 'pydftracer[dynamo]'",
)


def torch_program(
    directory: Path,
    name: str | Path,
    *words: Any,
    env: dict[str, str] | None = None,
    **more: Any,
) -> Result:
    """Runs tests/pytorch/programs/NAME.py, or the file that is given, in the test's directory."""
    path = name if isinstance(name, Path) else PROGRAMS / f"{name}.py"
    # Inductor keeps what it compiled; nothing of it goes beyond the test.
    own = {"TORCHINDUCTOR_CACHE_DIR": str(directory / "inductor"), "OMP_NUM_THREADS": "1"}
    return run(
        sys.executable,
        path,
        *words,
        cwd=directory,
        env={**own, **(env or {})},
        **{"stderr": None, "timeout": 850, **more},
    )

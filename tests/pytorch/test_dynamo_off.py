"""Switched off, or without PyTorch: nothing of ours is in the way, and what is missing is named."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from support.run import run
from support.torch_program import NEEDS_TORCH, torch_program


@NEEDS_TORCH
def test_off_means_untouched(tmp_path: Path) -> None:
    found = json.loads(torch_program(tmp_path, "off", enable=False, stderr="").stdout)
    assert found == {
        "torch at import": False,
        "bare": True,
        "parentheses": True,
        "tracer": True,
        "torch after decorating": False,
        "aot_eager": [3.0, 3.0],
        "eager": [3.0, 3.0],
        "inner": [3.0, 3.0],
        "compiler": [3.0, 3.0],
        "registered": [3.0, 3.0],
        "extension": False,
    }
    assert not list(tmp_path.glob("*.pfw*"))


USES = {
    "decorator": "dynamo.compile(abs)",
    "tracer": "Dynamo(name='m').compile(abs)",
    "backend": "create_backend(name='m')",
    "ready-made": "dftracer_dynamo_backend(None, [])",
}
MISSING = "sys.modules['torch'] = None"
OLD = "sys.modules['torch'] = type(sys)('torch'); sys.modules['torch'].__version__ = '2.5.0+cpu'"


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize(("torch", "named"), [(MISSING, "is not available"), (OLD, "2.5.0+cpu")])
def test_without_torch(tmp_path: Path, use: str, torch: str, named: str) -> None:
    code = f"""
import sys
{torch}
from dftracer.python import Dynamo, create_backend, dftracer_dynamo_backend, dynamo
from dftracer.python.dynamo import create_backend as same
from dftracer.errors import DFTracerError
assert same is create_backend and isinstance(dynamo, Dynamo)
try:
    {USES[use]}
except ImportError as error:
    assert isinstance(error, DFTracerError)
    assert isinstance(error, RuntimeError)  # as other releases raise
    print(error)
"""
    said = run(sys.executable, "-c", code, cwd=tmp_path).stdout
    assert said.count("\n") == 1, said
    for word in ("PyTorch 2.5.1 or later", "pydftracer[dynamo]", named):
        assert word in said


def test_names_in_any_order(tmp_path: Path) -> None:
    code = """
import sys
from dftracer.python.dynamo import create_backend
from dftracer.python import Dynamo, dynamo
import dftracer.python.dynamo as also
assert isinstance(dynamo, Dynamo) and also is dynamo
assert "torch" not in sys.modules
"""
    run(sys.executable, "-c", code, cwd=tmp_path)

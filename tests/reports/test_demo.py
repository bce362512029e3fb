"""What `make demo` runs, on little data: with PyTorch where it is, and without."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from support.command import environment
from support.limits import HANG

DEMO = Path(__file__).parents[2] / "examples" / "demo"


def run_demo(where: Path, **env: str) -> str:
    subprocess.run(
        [sys.executable, DEMO / "make_data.py", where / "data", "128"], check=True, timeout=HANG
    )
    done = subprocess.run(
        [DEMO / "run.sh", where],
        env=environment(env),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "Traceback" not in done.stdout
    assert list((where / "trace").glob("*.pfw.gz"))
    assert 'data-figure="steps"' in (where / "report.html").read_text("utf-8")
    return done.stdout


def test_with_pytorch(tmp_path: Path) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed (group torch)")
    told = run_demo(tmp_path)
    assert "dftracer run --torch -- python train.py data" in told
    assert "12 steps in 3 epochs" in told
    assert "open it in a browser" in told


@pytest.mark.long
def test_without_pytorch(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "torch.py").write_text("raise ImportError")
    told = run_demo(tmp_path / "demo", PYTHONPATH=str(tmp_path / "none"))
    assert "PyTorch is not there" in told
    assert "12 steps in 3 epochs" in told

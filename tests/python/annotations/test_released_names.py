"""Every module, name and signature of the releases that programs were written for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.python_face import run_python

HERE = Path(__file__).parent
NAMES = HERE.parents[1] / "data" / "released_names.json"
RELEASES = json.loads(NAMES.read_text(encoding="utf-8"))


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("enable", [True, False])
def test_what_a_release_offers_is_offered(release: str, enable: bool, tmp_path: Path) -> None:
    done = run_python(
        HERE / "programs" / "released_names.py", NAMES, release, cwd=tmp_path, enable=enable
    )
    assert json.loads(done.stdout) == []
    assert list(tmp_path.iterdir()) == []


def test_the_list_of_names_is_whole() -> None:
    """The list was made by make_released_names.py; what users reported missing must be in it."""
    modules = RELEASES["pydftracer 2.0.6, dftracer 2.2.0"]["modules"]
    assert {
        "dftracer.python.env",
        "dftracer.python.common",
        "dftracer.python.dbg.torch",
        "dftracer.python.torch.common",
        "dftracer.python.ai_init",
    } <= set(modules)
    assert "dft_fn" in modules["dftracer.python.logger"]
    assert "ProfileCategory" in modules["dftracer.python.ai"]
    assert "__version__" in modules["dftracer.python"]
    assert "dftracer.dbg.logger" in RELEASES["pydftracer 1.0.11"]["modules"]

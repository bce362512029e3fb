"""tools/check_imports.py: each arrow that a file could break is one that the check sees."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHECK = ROOT / "tools" / "check_imports.py"


def check(package: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, CHECK, package], capture_output=True, text=True, check=False
    )


def make(package: Path, files: dict[str, str]) -> Path:
    known = {
        "__init__.py": "__version__ = '1'\n",
        "errors.py": "",
        "_format.py": "from dftracer import errors\n",
        "_reader.pyi": "",
        "_core.pyi": "",
        "trace/__init__.py": "from dftracer import _reader, _format\n",
        "reports/__init__.py": "from dftracer.trace import files\n",
        "reports/render/__init__.py": "from dftracer.reports import model\n",
        "commands/__init__.py": "",
        "commands/_cli/main.py": "from dftracer.trace import files\n",
        "commands/info.py": "from dftracer.commands._cli import main\n",
        "python/__init__.py": "from dftracer import _core\n",
        "_entry.py": "def main():\n    from dftracer.commands._cli.main import main\n",
    }
    for name, text in {**known, **files}.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return package


def test_the_package_keeps_its_arrows() -> None:
    done = check(ROOT / "python" / "dftracer")
    assert (done.returncode, done.stderr) == (0, "")


def test_arrows_that_are_allowed(tmp_path: Path) -> None:
    late = (
        "TYPE_CHECKING = False\nif TYPE_CHECKING:\n    from dftracer.reports.render import page\n"
        "def html():\n    from dftracer.reports.render import page\n"
    )
    package = make(tmp_path / "dftracer", {"reports/model.py": late})
    assert check(package).stderr == ""


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("_format.py", "import dftracer.trace\n", "leaves must not import dftracer.trace"),
        ("_format.py", "def f():\n    import dftracer.trace\n", "leaves must not import"),
        ("_format.py", "from . import trace\n", "leaves must not import dftracer.trace"),
        ("trace/files.py", "from ..reports import model\n", "trace must not import"),
        ("trace/files.py", "from dftracer.reports import model\n", "trace must not import"),
        ("reports/model.py", "from dftracer.commands import info\n", "reports must not import"),
        (
            "reports/model.py",
            "from dftracer.reports.render import page\n",
            "reports may import reports.render only inside a function",
        ),
        (
            "reports/model.py",
            "try:\n    from dftracer.reports.render import page\nexcept ImportError:\n    pass\n",
            "only inside a function",
        ),
        ("python/ai.py", "from dftracer import _reader\n", "python must not import"),
        ("python/ai.py", "def f():\n    from dftracer import trace\n", "python must not import"),
        ("python/ai.py", "from dftracer import _format\n", "python must not import"),
        ("logger.py", "from dftracer import reports\n", "root must not import dftracer.reports"),
        ("_entry.py", "from dftracer.commands import info\n", "only inside a function"),
        (
            "commands/stats.py",
            "def run():\n    from dftracer.commands.info import width\n",
            "the verb stats must not import the verb info",
        ),
        (
            "commands/top/_live.py",
            "from dftracer.commands import info\n",
            "the verb top must not import the verb info",
        ),
        (
            "commands/_cli/terminal.py",
            "from dftracer.commands import info\n",
            "commands._cli must not import the verb info",
        ),
    ],
)
def test_an_arrow_that_is_broken(tmp_path: Path, file: str, text: str, expected: str) -> None:
    done = check(make(tmp_path / "dftracer", {file: text}))
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"dftracer/{file}:")
    assert expected in line

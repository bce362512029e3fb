"""The documents show code that runs and lines that it writes: both come from the examples."""

from __future__ import annotations

import json
import os
import re
import sys
import textwrap
from pathlib import Path

import pytest
from support.python_face import EXAMPLES, ROOT, own, run_python
from support.run import run
from support.traces import Trace, files, read

DOCUMENTS = [ROOT / "docs" / "python.md", ROOT / "docs" / "ai.md"]
# The programs whose lines are shown.
SHOWN = [
    *["ai/training_loop", "ai/metadata_streaming", "ai/init_events"],
    *["python/functions", "python/suspended", "python/arguments"],
]


def blocks(document: Path, language: str) -> list[str]:
    found = re.findall(
        rf"^```{language}\n(.*?)^```$", document.read_text(), re.DOTALL | re.MULTILINE
    )
    assert found, f"{document} has no {language}"
    return found


def occurs(block: str, text: str) -> bool:
    """As a run of whole lines, wherever it is indented."""
    wanted = textwrap.dedent(block).rstrip("\n").split("\n")
    lines = text.split("\n")
    first = wanted[0]
    for at, line in enumerate(lines):
        if line.strip() == first.strip():
            run = textwrap.dedent("\n".join(lines[at : at + len(wanted)])).split("\n")
            if run == wanted:
                return True
    return False


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_code_is_that_of_the_examples(document: Path) -> None:
    texts = [path.read_text() for path in sorted(EXAMPLES.glob("*/*.py"))]
    for block in blocks(document, "python"):
        assert any(occurs(block, text) for text in texts), f"in no example:\n{block}"


def shape(record: dict[str, object]) -> str:
    """A line without what differs from run to run."""
    if record["name"] == "CM":
        assert isinstance(record["args"], dict)
        return f"CM {record['args']['name']}"
    args = json.dumps(own(record), sort_keys=True)
    return f"{record['cat']} {record['name']} {list(record)} {args}"


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> list[Trace]:
    where = tmp_path_factory.mktemp("shown")
    for name in SHOWN:
        run_python(EXAMPLES / f"{name}.py", cwd=where)
    return [read(path) for path in files(where)]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_lines_are_what_the_examples_write(document: Path, traces: list[Trace]) -> None:
    written = {shape(record) for trace in traces for record in trace.records}
    for block in blocks(document, "json"):
        for line in block.splitlines():
            assert shape(json.loads(line)) in written, line


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_links_lead_somewhere(document: Path) -> None:
    for target, anchor in re.findall(
        r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)", document.read_text()
    ):
        path = (document.parent / target).resolve() if target else document
        assert path.exists(), target
        if anchor:
            titles = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
            anchors = {re.sub(r"[^a-z0-9 -]", "", t.lower()).replace(" ", "-") for t in titles}
            assert anchor in anchors, anchor


def test_the_table_has_the_whole_vocabulary() -> None:
    text = DOCUMENTS[1].read_text()
    table = text[text.index("| category | node |") : text.index("An event has the category")]
    words = set(re.findall(r"[a-z_]+", " ".join(re.findall(r"`([^`]*)`", table))))
    expected = (
        "forward backward step preprocess item fetch send receive barrier bcast reduce all_reduce "
        "gather all_gather scatter reduce_scatter all_to_all transfer capture restart epoch train "
        "evaluate test compute data dataloader comm device checkpoint pipeline"
    )
    assert set(expected.split()) <= words


def test_the_readme_shows_a_program_and_how_to_run_it(tmp_path: Path) -> None:
    """As a reader would: the block as train.py, and the lines below it, in one directory."""
    text = (ROOT / "README.md").read_text()
    section = text[text.index("### Python") : text.index("### PyTorch")]
    (program,) = re.findall(r"^```python\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    (tmp_path / "train.py").write_text(program)
    indented = re.findall(r"^    (\S.*)$", section[section.index("log.finalize") :], re.MULTILINE)
    commands = [line for line in indented if "python train.py" in line or line[:9] == "dftracer "]
    assert len(commands) == 2, commands
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    shell = "sh", "-c", "\n".join(commands)
    done = run(*shell, cwd=tmp_path, env={"PATH": path}, enable=False, stderr=None)
    shown = re.findall(r"^ +(\w+ +[\w.]+ +\d+) .*us", section, re.MULTILINE)
    assert len(shown) > 3
    wide = re.sub(" +", " ", done.stdout)
    for line in shown:
        assert re.sub(" +", " ", line) + " " in wide, line

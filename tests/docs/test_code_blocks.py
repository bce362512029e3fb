"""Every code block of README.md and docs/** runs when it is pasted; see blocks.py for the rules."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import command_line
import pytest
import yaml
from blocks import DOCS, PROGRAMS, SHELL, Block, Page, pages, read_blocks
from support.run import GLOO_ABORTED

# Fragments by nature: output, transcripts, formats.
FRAGMENTS = {"text", "console", "json", "yaml", "ini", "sql", "toml", "diff", "dockerfile", "cmake"}
FRAGMENTS |= {"html", "mermaid", "ipython"}
# What a machine that runs the tests may lack.
REASONS = {
    "depends on timing",
    "installs packages",
    "needs a GPU",
    "needs a browser",
    "needs another host",
    "needs Apptainer",
    "needs a module system",
    "needs Docker",
    "needs Lustre",
    "needs MPI",
    "needs network",
    "needs PBS",
    "needs Podman",
    "needs several nodes",
    "needs Slurm",
    "needs the repository",
    "needs the traces of a killed job",
}
PAGES = pages()
ALL = {page: read_blocks(page) for page in PAGES}
WITH_PROGRAMS = [
    page
    for page, blocks in ALL.items()
    if any(b.language in PROGRAMS and b.reason is None for b in blocks)
]
QUICK = [
    page
    for page in WITH_PROGRAMS
    if any(b.language in PROGRAMS and b.reason is None and not b.long for b in ALL[page])
]
LONG = [page for page in WITH_PROGRAMS if any(b.long and b.reason is None for b in ALL[page])]


def every_block() -> Iterator[Block]:
    for blocks in ALL.values():
        yield from blocks


def imported(page: str) -> set[str]:
    """Which of the large packages the programs of a page need."""
    code = "\n".join(b.code for b in ALL[page] if b.language == "python" and b.reason is None)
    return set(re.findall(r"^\s*(?:import|from) (torch|lightning|transformers)\b", code, re.M))


@pytest.mark.parametrize("page", QUICK)
def test_blocks_run_when_pasted(page: str, tmp_path: Path) -> None:
    Page(page, tmp_path, with_long=False).run()


@pytest.mark.long
@pytest.mark.parametrize("page", LONG)
def test_blocks_with_heavy_imports_run_when_pasted(page: str, tmp_path: Path) -> None:
    missing = [name for name in imported(page) if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    for number in range(3):
        place = tmp_path / str(number)
        place.mkdir()
        try:
            assert Page(page, place, with_long=True).run() > 0
        except AssertionError as error:
            if GLOO_ABORTED not in str(error) or number == 2:
                raise
        else:
            return


def test_every_block_says_what_it_is() -> None:
    """But for diagrams of the design, which no highlighter knows."""
    known = {*PROGRAMS, *FRAGMENTS}
    unknown = [
        f"{block} {block.language!r}"
        for block in every_block()
        if block.language not in known
        and not (block.language == "" and block.page.startswith(("docs/design/", "docs/adr/")))
    ]
    assert not unknown, f"tag these blocks, as `text` or `console` if nothing else: {unknown}"


def test_blocks_are_left_out_for_known_reasons_only() -> None:
    unknown = {
        f"{block}: {block.reason}"
        for block in every_block()
        if block.reason is not None and block.reason not in REASONS
    }
    assert not unknown


def test_most_blocks_run() -> None:
    programs = [block for block in every_block() if block.language in PROGRAMS]
    left_out = [str(block) for block in programs if block.reason is not None]
    assert len(left_out) < len(programs) / 2, left_out


def test_python_blocks_compile() -> None:
    """Also those that are not run here."""
    for block in every_block():
        if block.language == "python":
            compile(block.code, str(block), "exec")


def test_data_blocks_parse() -> None:
    for block in every_block():
        if block.language == "yaml":
            yaml.safe_load(block.code)
        elif block.language == "json":
            read_json(block)


def read_json(block: Block) -> None:
    try:
        json.loads(block.code)
    except ValueError:
        for line in block.code.splitlines():
            try:
                json.loads(line)
            except ValueError as error:
                raise AssertionError(f"{block}: {line}") from error


def commands(block: Block) -> Iterator[list[str]]:
    """The words of the `dftracer` commands in a block, up to the program that they run."""
    text = block.code.replace("\\\n", " ")
    for line in text.splitlines():
        if block.language == "console":
            if not line.startswith("$ "):
                continue
            line = line[2:]
        for found in re.finditer(r"(?:^|[\s;&|(])dftracer ([a-z]+ .*)$", line):
            try:
                words = shlex.split(found[1], comments=True)
            except ValueError:  # a quotation that goes on in the next line
                words = found[1].split()
            for at, word in enumerate(words):
                if word in ("--", "|", ";", "&&", "||", ">", "&"):
                    words = words[:at]
                    break
            yield words


def test_every_option_in_the_documents_exists() -> None:
    parsers = command_line.parsers()
    wrong = []
    for block in every_block():
        if block.language not in (*SHELL, "console"):
            continue
        for words in commands(block):
            parser = parsers.get(words[0])
            if parser is None:
                wrong.append(f"{block}: no verb {words[0]}")
                continue
            options = [w.split("=")[0].rstrip("])") for w in words[1:] if w.startswith("--")]
            known = parser._option_string_actions
            wrong += [f"{block}: {words[0]} {o}" for o in options if o not in known]
    assert not wrong


def test_the_pages_are_found() -> None:
    assert "README.md" in PAGES
    assert len(PAGES) > len(list(DOCS.glob("*.md")))

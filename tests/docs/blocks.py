"""Code blocks of README.md and docs/**: finds them, and runs them as a reader would paste them.

Blocks of a page share one directory, empty at first, and run in their order:

- `python` blocks are programs. A block with a file name is saved under it; unless a shell block
  below runs that file, it runs as `DFTRACER_ENABLE=1 python FILE`. A block without a name runs in
  an empty directory of its own.
- `sh` and `bash` blocks run under `bash -euo pipefail`.
- `c` and `cpp` blocks are saved, for the shell block below that compiles them; without one they are
  compiled alone.
- A block in any other language that has a file name is saved under it.

The file name is the `title="..."` of the fence, that of a comment `<!-- file: NAME -->`, a first
line that is a comment with a file name, or the file that the next shell block names.

HTML comments before a block instruct the runner: `<!-- not run: REASON -->`, `<!-- long -->` for
one that takes seconds (as the first line of a page: for all its blocks), and
`<!-- trace: forward=2, fetch.iter -->` for the events that its trace must hold. A `json` block
after `<!-- written above -->` shows lines that the blocks before it have written.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.build import prefix
from support.limits import HANG

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
FENCE = re.compile(r"^(?P<indent> *)(?P<mark>```+)(?P<language>[\w+-]*)(?P<info>[^`]*)$")
COMMENT = re.compile(r"^ *<!--\s*(.*?)\s*-->$")
ENDINGS = {"python": ("py",), "c": ("c",), "cpp": ("cpp", "cc", "cxx")}
SHELL = ("sh", "bash")
PROGRAMS = ("python", "c", "cpp", *SHELL)
SLOW = re.compile(r"\b(torch|torchvision|lightning|transformers|tensorflow)\b")


@dataclass
class Block:
    page: str
    line: int
    language: str
    code: str
    name: str = ""
    notes: list[str] = field(default_factory=list)

    def note(self, key: str) -> str | None:
        """The value of an instruction, "" for one without, None if it is not there."""
        for note in self.notes:
            head, _, value = note.partition(":")
            if head.strip() == key:
                return value.strip()
        return None

    @property
    def reason(self) -> str | None:
        return self.note("not run")

    @property
    def long(self) -> bool:
        return self.note("long") is not None or (
            self.language == "python" and SLOW.search(self.code) is not None
        )

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[str]:
    found = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
    return [path.relative_to(ROOT).as_posix() for path in found]


def read_blocks(page: str) -> list[Block]:
    blocks: list[Block] = []
    notes: list[str] = []
    open_block: Block | None = None
    mark = indent = ""
    text = (ROOT / page).read_text(encoding="utf-8")
    whole_page = ["long"] if text.startswith("<!-- long -->") else []
    for number, line in enumerate(text.split("\n"), 1):
        fence = FENCE.match(line)
        if open_block is not None:
            if fence and fence["mark"] == mark and not fence["language"]:
                blocks.append(open_block)
                open_block = None
            else:
                open_block.code += line.removeprefix(indent) + "\n"
        elif fence:
            title = re.search(r'title="([^"]+)"', fence["info"])
            open_block = Block(page, number, fence["language"], "", notes=[*notes, *whole_page])
            open_block.name = title[1] if title else open_block.note("file") or ""
            mark, indent, notes = fence["mark"], fence["indent"], []
        elif comment := COMMENT.match(line):
            notes = [*notes, comment[1]]
        elif line.strip():
            notes = []
    assert open_block is None, f"{page}: a code block has no end"
    for at, block in enumerate(blocks):
        block.name = block.name or implied_name(block, blocks[at + 1 :])
    return blocks


def implied_name(block: Block, later: list[Block]) -> str:
    endings = ENDINGS.get(block.language)
    if endings is None:
        return ""
    name = rf"[\w./-]+\.(?:{'|'.join(endings)})"
    first = re.match(rf"(?:#|//|/\*) ({name})(?: \*/)?$", block.code.split("\n", 1)[0])
    if first:
        return first[1]
    if later and later[0].language in SHELL:
        used = re.search(rf"(?<![\w./-])({name})\b", later[0].code)
        return used[1] if used else ""
    return ""


def environment(home: Path) -> dict[str, str]:
    """A reader's: the package and the C library are installed, and nothing is set."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("DFTRACER_", "PYTEST_", "COV_")) and key != "LD_PRELOAD"
    }
    home.mkdir(exist_ok=True)
    library = prefix() / "lib"
    return {
        **kept,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(home),
        "PKG_CONFIG_PATH": str(library / "pkgconfig"),
        "CMAKE_PREFIX_PATH": str(prefix()),
        "LD_LIBRARY_PATH": str(library),
        "PYTHONDONTWRITEBYTECODE": "1",
        "COLUMNS": "100",
    }


def records(directory: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(directory.rglob("*.pfw*")):
        data = path.read_bytes()
        text = gzip.decompress(data) if path.suffix == ".gz" else data
        for line in text.decode().splitlines():
            if line.startswith("{"):
                yield json.loads(line)


def event_names(directory: Path) -> Counter[str]:
    return Counter(str(record["name"]) for record in records(directory))


def shape(record: dict[str, Any]) -> str:
    """A line without what differs from run to run."""
    changing = ("hhash", "p_idx", "level", "busy")
    args = {key: value for key, value in record["args"].items() if key not in changing}
    if record["name"] == "CM":
        args.pop("value")
    return f"{record['cat']} {record['name']} {list(record)} {json.dumps(args, sort_keys=True)}"


def expected_events(text: str) -> Iterator[tuple[str, int | None]]:
    """`forward=2, fetch.iter`: so many of one name, and at least one of another."""
    for part in text.split(","):
        name, _, count = part.partition("=")
        yield name.strip(), int(count) if count else None


class Page:
    """One page being pasted, block by block."""

    def __init__(self, page: str, directory: Path, *, with_long: bool) -> None:
        self.blocks = read_blocks(page)
        self.directory = directory / "page"
        self.directory.mkdir()
        self.scratch = directory
        self.environment = environment(directory / "home")
        self.with_long = with_long
        self.skipped: set[str] = set()  # files that were not written

    def run(self) -> int:
        """Runs what can be run here, and returns how many blocks that were."""
        ran = 0
        for at, block in enumerate(self.blocks):
            if block.note("written above") is not None:
                self.compare(block)
            if block.reason is not None:
                continue
            if block.language not in PROGRAMS:
                if block.name:
                    self.save(block, self.directory, block.name)
                continue
            if self.left_out(block):
                self.skipped |= {block.name} - {""}
                continue
            self.run_block(block, self.blocks[at + 1 :])
            ran += 1
        return ran

    def compare(self, block: Block) -> None:
        written = {shape(record) for record in records(self.scratch)}
        for line in block.code.splitlines():
            assert shape(json.loads(line)) in written, (
                f"{block} shows what was not written:\n{line}"
            )

    def left_out(self, block: Block) -> bool:
        if self.with_long:
            return False
        return block.long or any(
            re.search(rf"(?<![\w./-]){re.escape(name)}\b", block.code) for name in self.skipped
        )

    def run_block(self, block: Block, later: list[Block]) -> None:
        where = self.directory
        if block.language in SHELL:
            self.call(block, where, ["bash", "-euo", "pipefail", "-c", block.code])
        else:
            if not block.name:
                where = self.scratch / f"block-{block.line}"
                where.mkdir()
            name = block.name or f"block.{ENDINGS[block.language][0]}"
            self.save(block, where, name)
            used = any(b.language in SHELL and b.reason is None and name in b.code for b in later)
            if block.name and used:
                return
            self.call(block, where, self.alone(block.language, name))
        expected = block.note("trace")
        if expected is not None:
            counts = event_names(where)
            for name, count in expected_events(expected):
                found = counts[name]
                wrong = f"{block}: {found} events {name!r}, not {count or 'one or more'}: {counts}"
                assert found == count if count is not None else found > 0, wrong

    def save(self, block: Block, where: Path, name: str) -> None:
        (where / name).parent.mkdir(parents=True, exist_ok=True)
        (where / name).write_text(block.code, encoding="utf-8")

    def alone(self, language: str, name: str) -> list[str]:
        if language == "python":
            return ["env", "DFTRACER_ENABLE=1", sys.executable, name]
        compiler = ["cc", "-std=c99"] if language == "c" else ["c++", "-std=c++11"]
        return [*compiler, "-Wall", "-Werror", f"-I{prefix() / 'include'}", "-c", name]

    def call(self, block: Block, where: Path, command: list[str]) -> None:
        done = subprocess.run(
            command,
            cwd=where,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=HANG,
            check=False,
        )
        shown = f"{block} ended with {done.returncode}\n{block.code}\n{done.stdout[-3000:]}"
        assert done.returncode == 0, shown
        assert "was not recorded" not in done.stdout, shown
        assert "were not recorded" not in done.stdout, shown

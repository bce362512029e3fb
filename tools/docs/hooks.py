"""The hooks of mkdocs.yml: generated reference pages, and links out of docs/.

Reference pages that can be derived from the code exist only in the site. A link to a file of the
repository outside docs/ leads to a page of the site that shows the file, so that the site is
complete offline; the Markdown sources keep links that work in a checkout.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import c_api
import command_line
import python_api
import report_tables
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
LINK = re.compile(r"(?<!!)(\[[^\]]*\]\()([^)#\s]+)(#[^)\s]*)?(\))")
FENCE = re.compile(r"^( *)(```+|~~~+)")

GENERATED: dict[str, Callable[[], str]] = {
    "reference/command-line.md": command_line.make_page,
    "reference/python-api.md": python_api.make_page,
    "reference/c-api.md": c_api.make_page,
    "reference/report-tables.md": report_tables.make_page,
}
# Documents outside docs/ that are pages of the site.
PROJECT = {
    "README.md": "index.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "examples/README.md": "project/examples.md",
}
LANGUAGES = {
    ".py": "python",
    ".pyi": "python",
    ".cpp": "cpp",
    ".hpp": "cpp",
    ".h": "c",
    ".c": "c",
    ".def": "c",
    ".sql": "sql",
    ".sh": "bash",
    ".json": "json",
    ".yml": "yaml",
    ".toml": "toml",
}


def outside_fences(text: str) -> Iterator[tuple[bool, str]]:
    """The lines of a page, each with whether it is prose."""
    fence = ""
    for line in text.split("\n"):
        mark = FENCE.match(line)
        if fence:
            yield False, line
            if mark and mark[2].startswith(fence) and line.strip() == mark[2]:
                fence = ""
        else:
            yield mark is None, line
            if mark:
                fence = mark[2]


def source_page(path: Path) -> str:
    """The page that shows a file or a directory of the repository."""
    name = path.relative_to(ROOT).as_posix()
    head = f"---\nsearch:\n  exclude: true\nhide:\n  - toc\n---\n\n# `{name}`\n\n"
    if path.is_dir():
        files = sorted(item.name for item in path.iterdir() if not item.name.startswith((".", "_")))
        return head + "\n".join(f"- `{file}`" for file in files) + "\n"
    language = LANGUAGES.get(path.suffix, "text")
    body = path.read_text(encoding="utf-8", errors="replace").rstrip("\n")
    return f"{head}````{language}\n{body}\n````\n"


def site_path(target: Path) -> str | None:
    """Where the site shows a path of the repository; None for what is no part of it."""
    if not target.exists() or ROOT not in (target, *target.parents):
        return None
    name = target.relative_to(ROOT).as_posix()
    if DOCS in target.parents:
        return target.relative_to(DOCS).as_posix()
    return PROJECT.get(name) or f"source/{name}.md"


def rewrite(text: str, folder: Path, page: str) -> tuple[str, dict[str, Path]]:
    """The text with links as the site needs them, and the files that it leads to.

    `folder` is where the text lies in the repository, `page` what it is called in the site.
    """
    found: dict[str, Path] = {}

    def replace(match: re.Match[str]) -> str:
        target = match[2]
        if re.match(r"[a-z]+:|/", target):
            return match[0]
        path = (folder / target).resolve()
        shown = site_path(path)
        if shown is None:
            return match[0]
        outside = DOCS not in path.parents
        if outside:
            found[shown] = path
        anchor = "" if shown.startswith("source/") else match[3] or ""
        return match[1] + posixpath.relpath(shown, posixpath.dirname(page)) + anchor + match[4]

    lines = []
    before = ""
    for prose, line in outside_fences(text):
        # GitHub begins a list without a blank line before it; Python-Markdown does not.
        if prose and re.match(r"(?:[-*]|\d+\.) ", line) and before and not list_line(before):
            lines.append("")
        lines.append(LINK.sub(replace, line) if prose else line)
        before = line.strip() and line
    return "\n".join(lines), found


def list_line(line: str) -> bool:
    return re.match(r"\s*(?:[-*]|\d+\.) |\s+\S|#", line) is not None


def titled(entry: str) -> dict[str, str]:
    text = (DOCS / entry).read_text(encoding="utf-8")
    title = re.search(r"^# (.+)$", text, re.MULTILINE)
    return {title[1].replace("`", "") if title else entry: entry}


def reading_order(name: str) -> tuple[int, str]:
    """The index and the glossary first, then the pages that walk through the code."""
    stem = posixpath.basename(name).removesuffix(".md")
    first = ("index", "README", "glossary")
    if stem in first:
        return first.index(stem), stem
    return 3 if stem.startswith("life-of-an") else 4 if stem.startswith("life-of") else 5, stem


def expand(nav: list[Any], named: set[str]) -> list[Any]:
    """`adr/*` stands for all pages of that directory that the nav does not name."""
    made: list[Any] = []
    for item in nav:
        if isinstance(item, dict):
            key, value = next(iter(item.items()))
            made.append({key: expand(value, named) if isinstance(value, list) else value})
        elif item.endswith("/*"):
            pages = [page.relative_to(DOCS).as_posix() for page in DOCS.glob(f"{item[:-1]}*.md")]
            made += [titled(name) for name in sorted(pages, key=reading_order) if name not in named]
        else:
            made.append(item)
    return made


def on_config(config: Any) -> Any:
    config.nav = expand(config.nav, set(re.findall(r"[\w/-]+\.md", str(config.nav))))
    return config


def on_files(files: Files, config: Any) -> Files:
    pages: dict[str, str] = {name: make() for name, make in GENERATED.items()}
    wanted: dict[str, Path] = {}
    for file in files.documentation_pages():
        if file.abs_src_path is not None:
            path = Path(file.abs_src_path)
            text = path.read_text(encoding="utf-8")
            wanted |= rewrite(text, path.parent, file.src_uri)[1]
    for name, page in PROJECT.items():
        if page != "index.md" and (ROOT / name).is_file():
            path = ROOT / name
            text, found = rewrite(path.read_text(encoding="utf-8"), path.parent, page)
            pages[page] = text
            wanted |= found
    for page, path in wanted.items():
        if page.startswith("source/"):
            pages.setdefault(page, source_page(path))
    for page, text in pages.items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Files) -> str:
    if page.file.generated_by is not None:
        return markdown
    return rewrite(markdown, Path(page.file.abs_src_path).parent, page.file.src_uri)[0]

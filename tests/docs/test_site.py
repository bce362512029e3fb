"""The site has every page, and every page a way to it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
# Made when the site is built, by tools/docs/hooks.py.
GENERATED = re.compile(r"reference/(command-line|python-api|c-api|report-tables)\.md|project/.*")


class Loader(yaml.SafeLoader):
    """mkdocs.yml names a Python function, which these tests need not have."""


Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: None)


def configuration() -> dict[str, Any]:
    loaded = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Loader)
    assert isinstance(loaded, dict)
    return loaded


def entries(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict):
        for value in nav.values():
            yield from entries(value)
    else:
        for item in nav:
            yield from entries(item)


def named() -> set[str]:
    found: set[str] = set()
    for entry in entries(configuration()["nav"]):
        if entry.endswith("/*"):
            found |= {page.relative_to(DOCS).as_posix() for page in DOCS.glob(f"{entry[:-1]}*.md")}
        else:
            found.add(entry)
    return found


def test_no_page_is_an_orphan() -> None:
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    assert not pages - named(), "not in the nav of mkdocs.yml"


def test_the_nav_names_only_pages_that_exist() -> None:
    missing = {page for page in named() if not GENERATED.fullmatch(page)}
    assert not {page for page in missing if not (DOCS / page).is_file()}


def test_nothing_is_loaded_from_elsewhere() -> None:
    site = configuration()
    assert site["theme"]["font"] is False
    assert "offline" in site["plugins"]
    assert site["strict"] is True
    for name in site.get("extra_css", []) + site.get("extra_javascript", []):
        assert (DOCS / name).is_file(), name


@pytest.mark.parametrize("page", ["docs/ai.md", "docs/command.md", "docs/report.md", "README.md"])
def test_headings_are_unique(page: str) -> None:
    """A link to a heading that is there twice leads to the first."""
    prose = re.sub(
        r"^```.*?^```$", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.S | re.M
    )
    titles = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    assert len(titles) == len(set(titles))

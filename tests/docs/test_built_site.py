"""The built site in a browser, opened from disk: nothing from a network, and search works."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support import chromium
from support.chromium import Chromium

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.long

SEARCH = """
(() => {
  const input = document.querySelector(".md-search__input");
  input.focus();
  document.querySelector("#__search").click();
  input.value = "metadata storm";
  input.dispatchEvent(new Event("input", { bubbles: true }));
  input.dispatchEvent(new KeyboardEvent("keyup", { bubbles: true }));
  const links = document.querySelectorAll(".md-search-result__link");
  return [...links].map((link) => link.href).join(" ");
})()
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs", reason="mkdocs is not installed (make docs)")
    where = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(where)]
    done = subprocess.run(
        words, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()
    return where


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    loads = re.compile(r'(?:src|rel="stylesheet" href)="(https?:[^"]*)"')
    for page in site.rglob("*.html"):
        found = loads.findall(page.read_text(encoding="utf-8"))
        assert not found, page.name


@pytest.mark.skipif(chromium.find() is None, reason="chromium is not installed (apt)")
def test_search_works_from_disk(site: Path, tmp_path: Path) -> None:
    with Chromium(tmp_path) as browser:
        browser.go((site / "reference" / "findings.html").as_uri())
        browser.wait_for("document.querySelector('iframe') !== null")
        found = browser.wait_for(SEARCH)
        assert "findings.html?h=metadata+storm#metadata-storm" in found
        assert not [url for url in browser.requests if not url.startswith(("file:", "data:"))]
        fits = "String(document.documentElement.scrollWidth <= innerWidth)"
        for page in ("performance", "interception", "reference/command-line"):
            browser.go((site / f"{page}.html").as_uri())
            assert browser.wait_for(f'document.readyState === "complete" && {fits}') == "true", page

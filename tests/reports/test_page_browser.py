"""The page in a real browser: drawn whole, in every light, by keyboard, without a network.

DFTRACER_REPORT_IMAGE=docs/images/report.png pytest tests/reports/test_page_browser.py
makes the picture of the documents again, of the report that DFTRACER_REPORT_PAGE names.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import chromium, report_tables
from support.chromium import Chromium
from support.synthetic_program import build

from dftracer import reports
from dftracer.reports.compare import compare
from dftracer.reports.render.page import write_page

pytestmark = pytest.mark.skipif(chromium.find() is None, reason="chromium is not installed (apt)")

DATA = Path(__file__).parents[1] / "data"
DRAWN = "document.documentElement && document.documentElement.dataset.drawn"
# The boxes in which no mark is to be seen.
UNDRAWN = """
[...document.querySelectorAll(".draw")].filter((box) => {
  const marks = box.querySelectorAll(".point path, .js-line, .hm image, .points path, .fills path");
  return ![...marks].some((mark) => {
    const { width, height } = mark.getBoundingClientRect();
    return width > 0 || height > 0;
  });
}).map((box) => box.dataset.figure)
"""
GROUND = "getComputedStyle(document.body).backgroundColor"
BAR = "getComputedStyle(document.querySelector('#epochs .point path')).fill"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    where = tmp_path_factory.mktemp("pages")
    slow = report_tables.training(seed=2, slower_fetch=1.5)
    usual = report_tables.training(findings=False)
    made: dict[str, Any] = {
        "training": (report_tables.training(), None),
        "hostile": (report_tables.training(names=report_tables.HOSTILE, ranks=5), None),
        "empty": (report_tables.empty(), None),
        "compared": (slow, compare(slow, usual)),
    }
    paths = {name: where / f"{name}.html" for name in made}
    for name, (report, comparison) in made.items():
        write_page(str(paths[name]), report, comparison)
    return paths


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with Chromium(tmp_path_factory.mktemp("profile")) as page:
        yield page


def show(page: Chromium, path: Path, *, width: int = 1280, dark: bool = False) -> None:
    page.console.clear()
    page.requests.clear()
    page.call(
        "Emulation.setDeviceMetricsOverride",
        width=width,
        height=900,
        deviceScaleFactor=1,
        mobile=False,
    )
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    page.call("Emulation.setEmulatedMedia", media="", features=[scheme])
    page.go("about:blank")
    page.go(path.as_uri())
    assert page.wait_for(DRAWN) == "yes"


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("name", ["training", "hostile", "empty", "compared"])
def test_every_plot_is_drawn_and_nothing_is_asked_for(
    name: str, pages: dict[str, Path], browser: Chromium
) -> None:
    show(browser, pages[name])
    boxes = browser.evaluate("document.querySelectorAll('.draw').length")
    assert (boxes > 10) == (name != "empty")
    assert browser.evaluate(UNDRAWN) == []
    assert browser.console == []
    asked = [url for url in browser.requests if not url.startswith(("data:", "blob:", "about:"))]
    assert asked == [pages[name].as_uri()]
    assert "owned" not in browser.evaluate("document.title").replace("document.title='owned'", "")


def test_the_page_of_a_build_shows_programs_files_and_the_tree_first(
    tmp_path: Path, browser: Chromium
) -> None:
    build(tmp_path)
    path = tmp_path / "build.html"
    write_page(str(path), reports.load(tmp_path))
    show(browser, path)
    sections = browser.evaluate("[...document.querySelectorAll('main section')].map(s => s.id)")
    assert sections[:4] == ["findings", "overview", "programs-section", "files-section"]
    assert "training" not in sections
    # Each process stands further right than the one that started it.
    left = """[...document.querySelectorAll("#table-process_tree tbody tr")].map((row) => {
      const text = document.createRange();
      const node = row.querySelector("bdi").firstChild;
      text.setStart(node, node.data.search(/[a-z/]/));
      text.setEnd(node, node.data.length);
      return text.getBoundingClientRect().left;
    })"""
    shell, make, first, second = browser.evaluate(left)
    assert shell < make < first == second
    assert browser.evaluate(UNDRAWN) == []
    assert browser.console == []


def test_each_view_of_a_plot_can_be_had_by_keyboard(
    pages: dict[str, Path], browser: Chromium
) -> None:
    show(browser, pages["training"])
    count = browser.evaluate("document.querySelectorAll('.views button').length")
    assert count > 10
    for at in range(count):
        browser.evaluate(f"document.querySelectorAll('.views button')[{at}].focus()")
        press(browser, "Enter", "\r")
    assert browser.evaluate(UNDRAWN) == []
    assert browser.evaluate("document.querySelectorAll('.views [aria-pressed=true]').length") == (
        browser.evaluate("document.querySelectorAll('.views').length")
    )
    assert browser.console == []


LOADED = """
addEventListener("load", () => {
  window.atLoad = { drawn: document.documentElement.dataset.drawn,
                    plots: document.querySelectorAll(".draw .main-svg").length };
});
"""


@pytest.mark.long
@pytest.mark.parametrize("name", ["training", "compared"])
def test_plots_are_there_when_the_page_is_captured_whole(
    name: str, pages: dict[str, Path], tmp_path: Path
) -> None:
    """What takes a picture or a PDF of a page waits for its load event and scrolls nowhere."""
    with Chromium(tmp_path / "profile") as page:
        page.call("Page.addScriptToEvaluateOnNewDocument", source=LOADED)
        page.go(pages[name].as_uri())
        found = page.wait_for("window.atLoad")
        assert found["drawn"] == "yes"
        assert found["plots"] >= page.evaluate("document.querySelectorAll('.draw').length")
        assert page.evaluate(UNDRAWN) == []
        assert page.evaluate("document.querySelectorAll('iframe').length") == 0


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("name", ["training", "hostile"])
@pytest.mark.parametrize("width", [400, 800, 1400])
def test_no_short_word_or_number_is_broken(
    name: str, width: int, pages: dict[str, Path], browser: Chromium
) -> None:
    show(browser, pages[name], width=width)
    browser.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    assert browser.evaluate(BROKEN) == []
    # A long name has room for a word before anything in it is broken.
    # Rows beyond the first are shown on demand.
    shown = "[...document.querySelectorAll('tbody .long bdi')].filter((e) => e.offsetParent)"
    narrow = f"{shown}.map((e) => e.offsetWidth)"
    assert min(browser.evaluate(narrow)) >= 160


# Cells that take more than one line and are no long texts.
BROKEN = """
[...document.querySelectorAll("thead th, tbody td:not(.long), tbody th:not(.long)")]
  .filter((cell) => {
    const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    const range = document.createRange();
    for (let text = texts.nextNode(); text; text = texts.nextNode()) {
      range.selectNode(text);
      if (range.getClientRects().length > 1) return true;
    }
    return false;
  }).map((cell) => cell.textContent)
"""
# Tables that reach beyond the paper, and numbers on two lines.
OFF_PAPER = """
(() => {
  const edge = document.documentElement.clientWidth + 1;
  const wide = [...document.querySelectorAll("table")]
    .filter((table) => table.getBoundingClientRect().right > edge).map((table) => table.id);
  const broken = [...document.querySelectorAll("td.n")].filter((cell) => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    return range.getClientRects().length > 1;
  }).map((cell) => cell.textContent);
  return [wide, broken];
})()
"""


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("name", ["training", "hostile", "compared"])
def test_no_column_is_cut_by_the_edge_of_the_paper(
    name: str, pages: dict[str, Path], browser: Chromium
) -> None:
    show(browser, pages[name], width=688)  # what A4 leaves between its margins
    browser.evaluate("dispatchEvent(new Event('beforeprint'))")
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert browser.evaluate(OFF_PAPER) == [[], []]
    browser.evaluate("dispatchEvent(new Event('afterprint'))")
    browser.call("Emulation.setEmulatedMedia", media="")


def test_a_narrow_plot_has_its_legend_beside_it_and_room_for_its_bars(
    pages: dict[str, Path], browser: Chromium
) -> None:
    show(browser, pages["hostile"], width=400)
    sizes = browser.evaluate(
        """[...document.querySelectorAll(".draw")].map((box) => {
          const plot = box.querySelector(".bglayer, .plot").getBoundingClientRect();
          const inner = box._fullLayout._size;
          return [box.dataset.figure, inner.w, inner.h, !!box.querySelector(".legend")];
        })"""
    )
    for name, width, height, legend in sizes:
        assert width > 120, name
        assert height > 40, name
        assert not legend, name
    assert browser.evaluate("document.querySelectorAll('ul.legend li i').length") > 10
    assert browser.console == []


def press(page: Chromium, key: str, char: str = "") -> None:
    codes = {"Enter": 13, "Tab": 9}
    for kind in ("keyDown", "keyUp"):
        more = {"text": char} if char and kind == "keyDown" else {}
        page.call(
            "Input.dispatchKeyEvent",
            type=kind,
            key=key,
            code=key,
            windowsVirtualKeyCode=codes[key],
            **more,
        )


def test_a_table_is_sorted_and_filtered_by_keyboard(
    pages: dict[str, Path], browser: Chromium
) -> None:
    show(browser, pages["training"])
    table = "document.querySelector('#data-files')"
    browser.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    heads = browser.evaluate(f"[...{table}.tHead.rows[0].cells].map((c) => c.innerText.trim())")
    reads = heads.index("reads")
    column = f"[...{table}.tBodies[0].rows].map((r) => r.cells[{reads}].textContent)"
    before = [int(value) for value in browser.evaluate(column)]
    browser.evaluate(f"{table}.tHead.rows[0].cells[{reads}].querySelector('button').focus()")
    press(browser, "Enter", "\r")
    sort = f"{table}.tHead.rows[0].cells[{reads}].getAttribute('aria-sort')"
    assert browser.evaluate(sort) == "descending"
    assert [int(v) for v in browser.evaluate(column)] == sorted(before, reverse=True)
    press(browser, "Enter", "\r")
    assert browser.evaluate(sort) == "ascending"
    assert [int(v) for v in browser.evaluate(column)] == sorted(before)
    browser.evaluate("document.querySelector('[data-filter=data-files]').focus()")
    browser.call("Input.insertText", text="CLASS-3/")
    shown = browser.evaluate(
        f"[...{table}.tBodies[0].rows].filter((r) => r.offsetHeight).map((r) => r.innerText)"
    )
    assert 0 < len(shown) < len(before)
    assert all("class-3/" in row for row in shown)


def test_dark_by_wish_of_the_system_and_of_the_reader(
    pages: dict[str, Path], browser: Chromium
) -> None:
    show(browser, pages["training"])
    light = (browser.evaluate(GROUND), browser.evaluate(BAR))
    show(browser, pages["training"], dark=True)
    dark = (browser.evaluate(GROUND), browser.evaluate(BAR))
    assert light[0] == "rgb(255, 255, 255)"
    assert all(one != other for one, other in zip(light, dark))
    # From the system's dark: light, dark, and back to the system's.
    for ground in (light[0], dark[0], dark[0]):
        browser.evaluate("document.querySelector('#theme').click()")
        assert browser.evaluate(GROUND) == ground
    browser.evaluate("localStorage.clear()")
    assert browser.console == []


def test_paper_is_light_with_the_tables_opened(pages: dict[str, Path], browser: Chromium) -> None:
    show(browser, pages["training"], dark=True)
    browser.evaluate("dispatchEvent(new Event('beforeprint'))")
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert browser.evaluate(GROUND) == "rgb(255, 255, 255)"
    browser.wait_for(f"{BAR} === 'rgb(0, 158, 115)'")
    hidden = "getComputedStyle(document.querySelector('header')).display"
    assert browser.evaluate(hidden) == "none"
    assert browser.evaluate("document.querySelectorAll('details.data:not([open])').length") == 0
    assert browser.evaluate(UNDRAWN) == []
    pdf = browser.call("Page.printToPDF", printBackground=True)["data"]
    assert len(pdf) > 50_000
    browser.evaluate("dispatchEvent(new Event('afterprint'))")
    browser.call("Emulation.setEmulatedMedia", media="")
    assert browser.evaluate("document.querySelectorAll('details.data[open]').length") == 0


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("name", ["ours.pfw.gz", "dftracer-2.2.0.pfw.gz", "torch-2.13.trace.json"])
def test_real_traces_and_those_of_others_are_drawn(
    name: str, tmp_path: Path, browser: Chromium
) -> None:
    write_page(str(tmp_path / "page.html"), reports.load(DATA / name))
    show(browser, tmp_path / "page.html")
    assert browser.evaluate("document.querySelectorAll('.draw').length") >= 5
    assert browser.evaluate(UNDRAWN) == []
    assert browser.console == []


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("width", [360, 768])
def test_a_narrow_window_needs_no_sideways_scrolling(
    width: int, pages: dict[str, Path], browser: Chromium
) -> None:
    show(browser, pages["hostile"], width=width)
    wide = browser.evaluate("document.documentElement.scrollWidth")
    assert wide <= width
    assert browser.evaluate(UNDRAWN) == []


def test_where_plots_cannot_be_drawn_the_tables_stay(
    pages: dict[str, Path], browser: Chromium, tmp_path: Path
) -> None:
    made = pages["training"].read_text("utf-8").replace('"gzip"', '"unknown"')
    (tmp_path / "old.html").write_text(made, "utf-8")
    browser.go((tmp_path / "old.html").as_uri())
    assert browser.wait_for(f"{DRAWN} === 'failed'")
    assert "cannot draw" in browser.evaluate("document.querySelector('#epochs').innerText")
    assert browser.evaluate("document.querySelectorAll('#data-epochs tbody tr').length") == 6


def test_figures_show_themselves_in_a_notebook(tmp_path: Path, browser: Chromium) -> None:
    found = report_tables.training(names=report_tables.HOSTILE[:3]).figures
    pieces = [found[name]._repr_html_() for name in ("steps", "heat", "calls")]
    assert sum(len(piece) > 1_000_000 for piece in pieces) <= 1  # the library comes once
    (tmp_path / "notebook.html").write_text(f"<meta charset=utf-8>{''.join(pieces)}", "utf-8")
    browser.console.clear()
    browser.go((tmp_path / "notebook.html").as_uri())
    browser.wait_for("document.querySelectorAll('.main-svg').length >= 6")
    assert browser.console == []


@pytest.mark.skipif("DFTRACER_REPORT_IMAGE" not in os.environ, reason="makes a picture")
def test_the_picture_of_the_documents(browser: Chromium) -> None:
    show(browser, Path(os.environ["DFTRACER_REPORT_PAGE"]).resolve(), width=1180)
    browser.call("Emulation.setScrollbarsHidden", hidden=True)
    size = {"width": 1180, "height": 1480, "deviceScaleFactor": 1, "mobile": False}
    browser.call("Emulation.setDeviceMetricsOverride", **size)
    browser.evaluate("new Promise((done) => setTimeout(done, 1000))")
    Path(os.environ["DFTRACER_REPORT_IMAGE"]).write_bytes(browser.screenshot())

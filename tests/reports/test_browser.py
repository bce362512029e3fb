"""The browser of these tests itself: a page that goes while it is asked is no failure."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import chromium
from support.chromium import Chromium, Gone

pytestmark = pytest.mark.skipif(chromium.find() is None, reason="chromium is not installed (apt)")

# Asked in the first document, it is never answered; in the second, at once.
NEVER_IN_THE_FIRST = "document.title === 'second' || new Promise(() => {})"


def a_page_that_goes(tmp_path: Path) -> str:
    (tmp_path / "second.html").write_text("<title>second</title>")
    first = tmp_path / "first.html"
    first.write_text(
        "<title>first</title><script>setTimeout(() => { location = 'second.html' }, 500)</script>"
    )
    return first.as_uri()


def test_a_page_that_goes_is_waited_for(tmp_path: Path) -> None:
    with Chromium(tmp_path / "profile") as page:
        page.go(a_page_that_goes(tmp_path))
        assert page.wait_for(NEVER_IN_THE_FIRST) is True


def test_an_answer_that_cannot_come_is_told(tmp_path: Path) -> None:
    with Chromium(tmp_path / "profile") as page:
        page.go(a_page_that_goes(tmp_path))
        with pytest.raises(Gone):
            page.evaluate("new Promise(() => {})")


def test_the_document_is_there_after_going(tmp_path: Path) -> None:
    with Chromium(tmp_path / "profile") as page:
        for n in range(20):
            path = tmp_path / f"{n}.html"
            path.write_text(f"<title>{n}</title>")
            page.go(path.as_uri())
            assert page.evaluate("location.href") == path.as_uri()
            page.go("about:blank")
            assert page.evaluate("location.href") == "about:blank"

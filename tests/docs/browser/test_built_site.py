"""The built site without a network: `make site` runs this on what it built."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.docs.pages import ROOT
from tests.labeling.app.browser.conftest import MISSING

SITE = ROOT / "site"
pytestmark = [
    pytest.mark.skipif(MISSING is not None, reason=f"{MISSING} is missing"),
    pytest.mark.skipif(
        not (SITE / "index.html").exists(), reason="there is no site: `make site` builds it"
    ),
]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(params=["files", "server"])
def site(request: pytest.FixtureRequest) -> Iterator[str]:
    """Yield the address of the site: its folder, or that of a server on this machine."""
    if request.param == "files":
        yield SITE.resolve().as_uri()
        return
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def page(browser: Any, site: str) -> Iterator[Any]:
    """Yield a window; fail if it asked another site for something, or a script failed."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    requests: list[str] = []
    errors: list[str] = []
    context.on("request", lambda request: requests.append(request.url))
    opened = context.new_page()
    opened.on("pageerror", lambda error: errors.append(str(error)))
    yield opened
    context.close()
    assert [url for url in requests if not url.startswith((site, "data:"))] == []
    # From files, pages that were found have no excerpts: browsers let no script read other files.
    assert set(errors) <= ({"Failed to fetch"} if site.startswith("file:") else set())


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ("supervised kemeny", "Aggregate rankings"),
        ("ListMLE", "fp.ListMLE"),
        ("label restore", "firstpage label"),
    ],
)
def test_search_finds_pages_offline(page: Any, site: str, words: str, title: str) -> None:
    page.goto(f"{site}/train.html")
    page.keyboard.press("Control+k")
    page.keyboard.type(words)
    page.keyboard.press("Enter")
    page.locator("#search-results").get_by_role("link", name=title, exact=True).first.click()
    page.get_by_role("heading", level=1).filter(has_text=title).wait_for()
    assert "search.html" not in page.url


def test_pictures_follow_the_theme(page: Any, site: str) -> None:
    for theme in ("dark", "light"):
        page.emulate_media(color_scheme=theme)
        page.goto(f"{site}/index.html")
        (picture,) = [each for each in page.locator("main img").all() if each.is_visible()]
        assert theme in picture.get_attribute("src")
        assert picture.evaluate("image => image.naturalWidth") > 0

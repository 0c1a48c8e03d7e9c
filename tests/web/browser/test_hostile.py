"""Documents are untrusted: whatever they contain, they send and change nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from unittest.mock import patch

import pytest
from playwright.sync_api import Page, expect

from firstpage.web import frames
from firstpage.web.store.texts import DocumentRecord, QueryRecord
from tests.web.browser.hands import answer, ready
from tests.web.browser.live import Live


@pytest.fixture
def trap() -> Iterator[tuple[str, list[str]]]:
    """Somebody else's server, which remembers who called."""
    calls: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            calls.append(self.path)
            self.send_response(200)
            self.end_headers()

        do_POST = do_GET

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", calls
    server.shutdown()
    server.server_close()
    thread.join(5)


def evil(there: str, here: str) -> str:
    return f"""
    <html><head><base href="{there}/base/">
    <meta http-equiv="refresh" content="0; url={there}/refresh">
    <link rel="prefetch" href="{there}/prefetch"><link rel="dns-prefetch" href="{there}">
    <link rel="preconnect" href="{there}"><link rel="stylesheet" href="{there}/sheet.css">
    <style>@import url({there}/import.css); body {{ background: url({there}/bg.png) }}
      @font-face {{ font-family: x; src: url({there}/font.woff) }} p {{ font-family: x }}</style>
    </head><body onload="top.location='{there}/onload'">
    <p id="words">words of the document</p>
    <script>document.title='ran'; fetch('{there}/fetch'); top.location='{there}/top';
      parent.document.body.innerHTML='gone'</script>
    <img src="{there}/beacon.png" onerror="fetch('{there}/onerror')">
    <img srcset="{there}/set.png 1x"><picture><source srcset="{there}/source.png"><img></picture>
    <iframe src="{there}/frame"></iframe><object data="{there}/object"></object>
    <embed src="{there}/embed"><video src="{there}/video" poster="{there}/poster" autoplay></video>
    <svg><image href="{there}/svg.png"/><a href="{there}/svga"><text y="20">svg</text></a></svg>
    <form id="f" action="{there}/form" method="post" target="_top"><input name="a" value="b">
      <button id="send">send</button></form>
    <form action="{here}/logout" method="post" target="_top"><button id="out">out</button></form>
    <a id="link" href="{there}/link" target="_top" ping="{there}/ping">a link</a>
    <a id="plain" href="{there}/plain">another</a><a id="self" href="/logout">ours</a>
    <a id="js" href="javascript:top.location='{there}/js'">script</a>
    </body></html>"""


def shown(live: Live, there: str) -> tuple[int, Page]:
    """A task with hostile documents, all of whose bait has been taken."""
    documents = tuple(
        DocumentRecord(f"d{i}", f"Evil {i}", "html", evil(there, live.url)) for i in range(4)
    )
    live.bait = there
    live.own("books", [QueryRecord("q0", "hostile", "", documents)], setting={"k": 2})
    task = live.task("books", "ada")
    page = live.open(f"/tasks/{task}")
    ready(page)
    frame = page.frame_locator("#left iframe:not(.hidden)")
    expect(frame.get_by_text("words of the document")).to_be_visible()
    for name in ("send", "out", "link", "plain", "self", "js"):
        part = frame.locator(f"#{name}")
        if part.count():
            part.click(timeout=2000)
    page.wait_for_timeout(400)
    return task, page


@pytest.mark.parametrize("cleaning", [True, False])
def test_hostile_documents_have_no_effect(
    live: Live, trap: tuple[str, list[str]], cleaning: bool
) -> None:
    """The frame's sandbox and policy hold alone, should something slip through the cleaning."""
    there, calls = trap
    with (
        nullcontext() if cleaning else patch.object(frames, "sanitize_document", lambda text: text)
    ):
        task, page = shown(live, there)
        expect(page.get_by_role("heading", name="hostile")).to_be_visible()
        frame = page.frame_locator("#left iframe:not(.hidden)")
        expect(frame.get_by_text("words of the document")).to_be_visible()
        assert live.logged(task) == []
        assert page.title().startswith("Judge")
        answer(page, "ArrowLeft")  # still signed in, still in control
        assert len(live.logged(task)) == 1
        assert calls == []


def test_titles_and_texts_are_text(live: Live) -> None:
    bad = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    documents = tuple(DocumentRecord(f"d{i}", bad, body=bad) for i in range(3))
    live.own("books", [QueryRecord("q0", bad, bad, documents)], setting={"k": 2})
    page = live.open(f"/tasks/{live.task('books', 'ada')}")
    said: list[str] = []
    page.on("dialog", lambda d: (said.append(d.message), d.dismiss()))
    ready(page)
    expect(page.locator("#query")).to_have_text(bad)
    expect(page.locator("#left-title")).to_have_text(bad)
    expect(page.frame_locator("#left iframe:not(.hidden)").locator("p").first).to_have_text(bad)
    assert said == []

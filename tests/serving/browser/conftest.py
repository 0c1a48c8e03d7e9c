"""The page in a real browser, served by a real server on its own port."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from firstpage.serving.app import Serving
from tests.labeling.app.browser.conftest import MISSING, browser
from tests.serving.texts import application

__all__ = ["browser"]
if MISSING is not None:
    collect_ignore_glob = ["test_*.py"]


class LivePage:
    """A server, and the windows of a browser; scripts must not fail and nothing may leave."""

    def __init__(self, app: Serving, started: Any) -> None:
        self.app, self.browser = app, started
        self.problems: list[str] = []
        self._contexts: list[Any] = []
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self._socket.listen(64)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="error", ws="none"))
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True
        )
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)

    def context(self, **options: Any) -> Any:
        context = self.browser.new_context(
            **{"viewport": {"width": 1280, "height": 800}, **options}
        )
        context.set_default_timeout(30_000)
        context.on("request", self._check_address)
        self._contexts.append(context)
        return context

    def open(self, path: str, **options: Any) -> Any:
        page = self.context(**options).new_page()
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", self._check_console)
        page.goto(self.url + path)
        return page

    def _check_console(self, message: Any) -> None:
        if "Content Security Policy" in message.text or "Uncaught" in message.text:
            self.problems.append(message.text)

    def _check_address(self, request: Any) -> None:
        if not request.url.startswith((self.url, "data:")):
            self.problems.append(request.url)

    def stop(self) -> None:
        for context in self._contexts:
            context.close()
        self._server.should_exit = True
        self._thread.join(10)
        self._socket.close()


@pytest.fixture
def feedback(tmp_path: Path) -> Path:
    return tmp_path / "feedback"


@pytest.fixture
def live(shop: tuple[Path, Path], browser: object) -> Iterator[LivePage]:
    """The page without feedback."""
    yield from lives(LivePage(application(*shop), browser))


@pytest.fixture
def asking(shop: tuple[Path, Path], browser: object, feedback: Path) -> Iterator[LivePage]:
    """The page with feedback."""
    yield from lives(LivePage(application(*shop, feedback=feedback), browser))


def lives(live: LivePage) -> Iterator[LivePage]:
    yield live
    live.stop()
    assert not live.problems

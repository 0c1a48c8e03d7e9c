"""A real server on its own port, with people and texts, for a real browser."""

from __future__ import annotations

import socket
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from playwright.sync_api import Browser, BrowserContext, Page

from firstpage.labeling.app.security import COOKIE
from firstpage.labeling.app.store import logins, projects, tasks
from firstpage.labeling.app.store.connect import utc_now
from firstpage.labeling.app.store.projects import Project
from firstpage.labeling.app.store.texts import QueryRecord
from tests.labeling.app.site import Site, add_query, log_rows


@dataclass
class Live(Site):
    """A `Site` on a real port; `open` returns a browser page of a signed-in person."""

    browser: Browser | None = None
    contexts: list[BrowserContext] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    bait: str | None = None  # a URL that documents request and the policy must block

    def __post_init__(self) -> None:
        super().__post_init__()
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self._socket.listen(64)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        config = uvicorn.Config(self.app, log_level="error", ws="none", lifespan="off")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True
        )
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)

    def stop(self) -> None:
        for context in self.contexts:
            context.close()
        self._server.should_exit = True
        self._thread.join(10)
        self._socket.close()

    def context(self, login: str | None = "ada", **options: Any) -> BrowserContext:
        """Return a new browser context with a login that is created in the database.

        Motion is reduced: drawing the frames of transitions takes a sixth of the time of an answer.
        """
        assert self.browser is not None
        usual = {"viewport": {"width": 1280, "height": 800}, "reduced_motion": "reduce"}
        context = self.browser.new_context(**{**usual, **options})
        context.set_default_timeout(30_000)
        self.contexts.append(context)
        context.on("requestfinished", self._left)
        context.on("requestfailed", self._failed)
        if login is not None:
            person = self.person(login)
            with self.store.write() as tx:
                token, _ = logins.start(tx, person)
            context.add_cookies([{"name": COOKIE, "value": token, "url": self.url}])
        return context

    def open(self, path: str, login: str | None = "ada", **options: Any) -> Page:
        page = self.watched(self.context(login, **options).new_page())
        page.goto(self.url + path)
        return page

    def watched(self, page: Page) -> Page:
        """Record script errors and violations of the content security policy in `complaints`."""
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", self._heard)
        return page

    def _heard(self, message: Any) -> None:
        text = message.text
        from_page = "/documents/" not in (message.location or {}).get("url", "")
        if self.bait is not None and self.bait in text:  # the message may not name the document
            from_page = False
        if from_page and ("Content Security Policy" in text or "Uncaught" in text):
            self.complaints.append(text)

    def _left(self, request: Any) -> None:
        if not request.url.startswith((self.url, "data:", "blob:")):
            self.strangers.append(request.url)

    def _failed(self, request: Any) -> None:
        """Record a failed request, unless the content security policy blocked it."""
        if request.failure != "csp":
            self._left(request)

    def add_project(self, slug: str, queries: list[QueryRecord], **options: Any) -> Project:
        """Create an open project with these queries, all assigned to ada."""
        project = self.project(slug, queries=0, opened=False, **options)
        person, lead = self.person("ada"), self.person("lena")
        with self.store.write() as tx:
            for number, query in enumerate(queries):
                row = add_query(tx, project.id, query, number)
                tasks.add(tx, project, row, person.id, project.tool, 0, number)
            return projects.set_state(tx, project, "open", lead)

    def logged(self, task: int) -> list[dict[str, Any]]:
        """Return the rows of a task's log."""
        with self.store.read() as tx:
            return [dict(row) for row in log_rows(tx, task)]


def new_live(store: Any, browser: Browser) -> Live:
    return Live(store, utc_now, browser=browser)  # type: ignore[arg-type]

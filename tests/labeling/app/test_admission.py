"""Requests are authorized before their body is read, on every route that changes something."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Iterator, MutableMapping
from typing import Any

import pytest
from starlette.routing import Route

from firstpage.core.http import FORM_HEAD, SMALL_BODY
from firstpage.labeling.app import pages
from firstpage.labeling.app.api.reference import DESCRIBED
from firstpage.labeling.app.programs import API
from firstpage.labeling.app.security import COOKIE, GUEST
from firstpage.labeling.app.store import logins
from tests.labeling.app.site import HOST, PASSWORD, Site, body
from tests.narrow import present

PIECE = b"x" * 10_000
PIECES = 200  # of a body: 2 MB
PUBLIC = {  # routes that people use before they are signed in
    ("POST", f"{API}/login"),
    ("POST", f"{API}/invitations/accept"),
    ("POST", f"{API}/reset"),
    ("POST", "/login"),
    ("POST", "/invitation/{token}"),
    ("POST", "/reset/{token}"),
}
VALUES = {"slug": "books", "token": "x"}


def routes() -> Iterator[tuple[str, str]]:
    """Yield (method, path) of all routes that may have a body."""
    for group in (*DESCRIBED, *(module.routes for module in pages.MODULES)):
        for route in group:
            assert isinstance(route, Route)
            for method in sorted(present(route.methods) - {"GET", "HEAD"}):
                yield method, route.path


ROUTES = sorted(set(routes()))


class Sender:
    """A client with an endless body, which counts the bytes that the server reads."""

    def __init__(self, first: bytes = b"") -> None:
        self.pieces = [first + PIECE, *[PIECE] * (PIECES - 1)]
        self.taken = 0

    async def receive(self) -> dict[str, Any]:
        piece = self.pieces.pop(0)
        self.taken += len(piece)
        return {"type": "http.request", "body": piece, "more_body": bool(self.pieces)}

    def send_to(
        self, site: Site, method: str, path: str, headers: dict[str, str] | None = None
    ) -> int:
        """Return the status of the response."""
        all_headers = {
            "host": HOST,
            "content-type": "multipart/form-data; boundary=b",
            **(headers or {}),
        }
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method,
            "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "",
            "scheme": "http", "server": (HOST, 80), "client": ("127.0.0.1", 1), "state": {},
            "headers": [(name.encode(), value.encode()) for name, value in all_headers.items()],
        }  # fmt: skip
        statuses: list[int] = []

        async def send(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        asyncio.run(site.app(scope, self.receive, send))
        return statuses[0]


def address(path: str) -> str:
    return re.sub(r"{(\w+)(:\w+)?}", lambda m: VALUES.get(m[1], "1"), path)


def signed_in(site: Site, login: str) -> tuple[dict[str, str], str]:
    """Return headers with the cookie of a login and its CSRF token."""
    person = site.person(login)
    with site.store.write() as tx:
        cookie, row = logins.start(tx, person)
    return {"cookie": f"{COOKIE}={cookie}"}, row.csrf


def test_every_route_with_a_body_is_covered() -> None:
    assert len(ROUTES) > 30
    assert set(ROUTES) >= PUBLIC
    assert ("POST", f"{API}/projects/{{slug}}/import") in ROUTES
    assert ("POST", "/p/{slug}/import") in ROUTES


def test_anonymous_bodies_are_not_read(site: Site) -> None:
    site.project()
    for route in (r for r in ROUTES if r not in PUBLIC):
        sender = Sender()
        status = sender.send_to(site, route[0], address(route[1]))
        assert status == (401 if route[1].startswith(API) else 303), route
        assert sender.taken == 0, route


def test_the_body_of_a_forged_request_is_not_read(site: Site) -> None:
    """A request with the cookie alone, as another site can send it, or with a wrong token."""
    site.project()
    headers, _ = signed_in(site, "lena")
    _, other = signed_in(site, "carl")
    for route in (r for r in ROUTES if r not in PUBLIC and r[1].startswith(API)):
        for token in ({}, {"x-csrf-token": "guessed"}, {"x-csrf-token": other}):
            sender = Sender()
            status = sender.send_to(site, route[0], address(route[1]), {**headers, **token})
            assert status == 403, route
            assert sender.taken == 0, route


@pytest.mark.parametrize("route", [r for r in sorted(PUBLIC) if r[1].startswith(API)], ids=" ".join)
def test_anonymous_bodies_are_limited(site: Site, route: tuple[str, str]) -> None:
    """The limit is enough for a login and a password, and lower than that of signed-in people."""
    sender = Sender()
    assert sender.send_to(site, *route, {"content-type": "application/json"}) == 413
    assert sender.taken <= SMALL_BODY + len(PIECE)


def test_anonymous_forms_are_limited(site: Site) -> None:
    guest = {"cookie": f"{GUEST}=guest", "content-type": "application/x-www-form-urlencoded"}
    token = hashlib.sha256(b"guest:guest").hexdigest()
    sender = Sender(f"csrf={token}&login=".encode())
    assert sender.send_to(site, "POST", "/login", guest) == 413
    assert sender.taken <= SMALL_BODY + 2 * len(PIECE)


def test_a_client_that_disconnects_during_an_upload_is_no_error(site: Site) -> None:
    site.project(opened=False)
    headers, token = signed_in(site, "lena")
    sender = Sender(
        b'--b\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n%b\r\n' % token.encode()
    )

    async def receive() -> dict[str, Any]:
        if sender.taken > 100_000:
            return {"type": "http.disconnect"}
        return await Sender.receive(sender)

    sender.receive = receive  # type: ignore[method-assign]
    with pytest.raises(IndexError):  # there is no response and no exception
        sender.send_to(site, "POST", "/p/books/import", headers)


UPLOADS = [r[1] for r in ROUTES if r[1].endswith("/import")]


@pytest.mark.parametrize("path", UPLOADS)
def test_only_a_lead_of_the_project_may_upload(site: Site, path: str) -> None:
    site.project()
    site.person("eve")
    for login, status in (("eve", 404), ("ada", 403)):
        headers, token = signed_in(site, login)
        sender = Sender()
        headers["x-csrf-token"] = token
        assert sender.send_to(site, "POST", address(path), headers) == status
        assert sender.taken == 0
    headers, token = signed_in(site, "lena")
    for slug in ("other", "A%00", "x" * 100):
        sender = Sender()
        target = path.replace("{slug}", slug)
        assert sender.send_to(site, "POST", target, {**headers, "x-csrf-token": token}) == 404
        assert sender.taken == 0


FORMS = [r[1] for r in ROUTES if not r[1].startswith(API)]


@pytest.mark.parametrize("path", FORMS)
def test_a_form_without_its_token_is_not_read_to_its_end(site: Site, path: str) -> None:
    site.project()
    headers, _ = signed_in(site, "lena")
    for sent_headers in (headers, {"cookie": f"{GUEST}=guest"}, {}):
        if sent_headers is not headers and ("POST", path) not in PUBLIC:
            continue
        sender = Sender()
        assert sender.send_to(site, "POST", address(path), sent_headers) in (403, 413)
        assert sender.taken <= FORM_HEAD + len(PIECE)


def test_a_form_with_its_token_is_read(site: Site) -> None:
    site.project(opened=False)
    headers, token = signed_in(site, "lena")
    field = f'--b\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n{token}\r\n'
    start = f'{field}--b\r\nContent-Disposition: form-data; name="documents"; filename="d.jsonl"\r\n\r\n'
    sender = Sender(start.encode())
    sender.pieces[-1] += b"\r\n--b--\r\n"
    assert sender.send_to(site, "POST", "/p/books/import", headers) == 400  # not JSON
    assert not sender.pieces


def test_a_repeated_key_is_refused(site: Site) -> None:
    """JSON's parser takes the last one, which a person who reads the log may not expect."""
    site.project()
    ada, task = site.client("ada"), site.task("books", "ada")
    state = ada.state(task)
    kind = {"content-type": "application/json"}
    answer = json.dumps(body(state, 1))[:-1] + ', "outcome": -1}'
    reply = ada.post(f"{API}/tasks/{task}/answers", content=answer, headers=kind)
    assert (reply.status_code, "'outcome' occurs twice" in reply.text) == (422, True)
    assert ada.state(task)["seq"] == state["seq"]
    login = '{"login": "eve", "password": "' + PASSWORD + '", "login": "ada"}'
    reply = site.client().post(f"{API}/login", content=login, headers=kind)
    assert (reply.status_code, "'login' occurs twice" in reply.text) == (422, True)

"""Checks of every request (host, origin, size) and headers of every response."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import select

from firstpage.core.http.same_site import PAGE_POLICY
from firstpage.labeling.app.security import ServeSettings
from firstpage.labeling.app.store.tables import people
from tests.labeling.app.site import HOST, Site, body


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "", "[::1", "testserver.evil"])
def test_an_unknown_host_is_refused(site: Site, host: str) -> None:
    reply = site.client("ada").get("/api/v1/me", headers={"Host": host})
    assert reply.status_code == 421


@pytest.mark.parametrize("host", ["localhost:8210", "127.0.0.1", "[::1]:80", "TESTSERVER"])
def test_allowed_hosts(site: Site, host: str) -> None:
    assert site.client("ada").get("/api/v1/me", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": f"http://{HOST}.evil.example"},
        {"Origin": "http://[::1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_changes_from_other_sites_are_refused(site: Site, headers: dict[str, str]) -> None:
    """Even to /login, which needs no token: another site cannot sign a person in."""
    site.project()
    ada, task = site.client("ada"), site.task("books", "ada")
    sent = body(ada.state(task))
    reply = ada.post(f"/api/v1/tasks/{task}/answers", json=sent, headers=headers)
    assert reply.status_code == 403
    login = site.client().post("/api/v1/login", json={}, headers=headers)
    assert login.status_code == 403


def test_the_same_origin_is_accepted(site: Site) -> None:
    site.project()
    ada, task = site.client("ada"), site.task("books", "ada")
    sent = body(ada.state(task))
    same_origin = {"Origin": f"http://{HOST}", "Sec-Fetch-Site": "same-origin"}
    reply = ada.post(f"/api/v1/tasks/{task}/answers", json=sent, headers=same_origin)
    assert reply.status_code == 200


def test_every_response_has_the_security_headers(site: Site) -> None:
    for path in ("/api/v1/me", "/nothing", "/api/v1/openapi.json"):
        headers = site.client().get(path).headers
        assert headers["content-security-policy"] == PAGE_POLICY
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"


def test_a_large_content_length_is_refused_at_once(site: Site) -> None:
    ada = site.client("ada")
    reply = ada.post("/api/v1/logout", content=b"x" * ((1 << 20) + 1))
    assert reply.status_code == 413
    assert ada.get("/api/v1/me").status_code == 200


def test_a_large_body_without_content_length_is_stopped(site: Site) -> None:
    site.project()
    ada, task = site.client("ada"), site.task("books", "ada")

    def stream():
        for _ in range(20):
            yield b"x" * (1 << 17)

    reply = ada.post(
        f"/api/v1/tasks/{task}/answers", content=stream(), headers={"content-type": "text/json"}
    )
    assert reply.status_code == 413
    assert ada.state(task)["seq"] == 0


def test_uploads_have_their_own_limit(site: Site) -> None:
    site.project(opened=False)
    small = Site(site.store, site.clock, ServeSettings(hosts=(HOST,), max_upload=2000))
    lena = small.client("lena")
    files = {"documents": ("d.jsonl", b"x" * 3000)}
    assert lena.post("/api/v1/projects/books/import", files=files).status_code == 413


def test_proxy_headers_are_trusted_only_if_configured(site: Site) -> None:
    """The last address counts: earlier ones come from the client."""
    forwarded = {"X-Forwarded-For": "6.6.6.6, 9.9.9.9", "X-Forwarded-Proto": "https"}
    credentials = {"login": "nobody", "password": "wrong password"}
    for proxy, expected in ((False, "testclient"), (True, "9.9.9.9")):
        proxied_site = Site(site.store, site.clock, replace(site.settings, proxy=proxy))
        proxied_site.client().post("/api/v1/login", json=credentials, headers=forwarded)
        with site.store.read() as tx:
            from firstpage.labeling.app.store.tables import attempts

            last = tx.all(select(attempts.c.address).order_by(attempts.c.id))[-1]
        assert last["address"] == expected


def test_the_cookie_is_secure_behind_https(site: Site) -> None:
    from firstpage.labeling.app.store import people as accounts

    person = site.person("ada")
    with site.store.write() as tx:
        accounts.set_password(tx, person, accounts.hash_password("a fine password", "ada"))
    proxied_site = Site(site.store, site.clock, replace(site.settings, proxy=True))
    reply = proxied_site.client().post(
        "/api/v1/login",
        json={"login": "ada", "password": "a fine password"},
        headers={"X-Forwarded-Proto": "https"},
    )
    assert "secure" in reply.headers["set-cookie"].lower()


INJECTIONS = [
    "' OR '1'='1", "ada'--", "'; DROP TABLE people;--", "../../etc/passwd", "%00", "..%2f..%2f",
    "{{7*7}}", "${jndi:x}",
]  # fmt: skip


def test_sql_injections_fail(db_site: Site) -> None:
    db_site.project()
    lena = db_site.client("lena")
    for number, text in enumerate(INJECTIONS):
        login = db_site.client().post("/api/v1/login", json={"login": text, "password": text})
        assert login.status_code in (401, 422), text
        for path in (f"/api/v1/projects/{text}", f"/api/v1/tasks/{text}", f"/documents/{text}"):
            assert lena.get(path).status_code in (404, 422), text
        assert lena.get(f"/api/v1/projects/books/export/{text}").status_code in (404, 422), text
        response = lena.post("/api/v1/projects", json={"slug": f"other-{number}", "title": text})
        assert response.status_code == 201, text
    with db_site.store.read() as tx:
        assert {row["login"] for row in tx.all(select(people))} == {"ada", "lena"}


@pytest.mark.parametrize("sign", ["\\ud800", "\\u0000"])
def test_unstorable_texts_are_refused(db_site: Site, sign: str) -> None:
    db_site.project()
    reply = db_site.client("lena").patch(
        "/api/v1/projects/books",
        content=f'{{"title": "{sign}"}}'.encode(),
        headers={"content-type": "application/json"},
    )
    assert reply.status_code == 422

"""API tokens: scopes, forgery, revocation, limits, and that cookies are as strict as before."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select
from starlette.routing import Route

from firstpage.core.http.routes import Endpoint
from firstpage.labeling.app.admission import Access
from firstpage.labeling.app.api.reference import DESCRIBED
from firstpage.labeling.app.store import deletion, tokens
from firstpage.labeling.app.store.logins import token_hash
from firstpage.labeling.app.store.tables import api_tokens
from tests.labeling.app.site import Client, Site, body
from tests.narrow import instance


def token_for(site: Site, login: str, scope: str, **options: Any) -> tuple[str, int]:
    person = site.person(login)
    with site.store.write() as tx:
        secret, row = tokens.create(tx, person, "ci", scope, **options)
    return secret, row.id


def program(site: Site, secret: str) -> Client:
    client = site.client()
    client.headers["Authorization"] = f"Bearer {secret}"
    return client


def test_a_program_judges_without_cookie_and_csrf_token(db_site: Site) -> None:
    db_site.project()
    secret, _row = token_for(db_site, "ada", "judge")
    client, task = program(db_site, secret), db_site.task("books", "ada")
    assert client.answer(client.state(task)).status_code == 200
    assert not client.cookies
    with db_site.store.read() as tx:
        assert tokens.listed(tx)[0].last_used is not None
        stored = tx.first(select(api_tokens))
    assert stored is not None
    assert secret not in str(dict(stored))
    assert client.get("/api/v1/me").json()["csrf"] == ""


@pytest.mark.parametrize(
    ("scope", "expected"), [("read", (200, 403, 403)), ("judge", (200, 200, 403)), ("lead", (200, 200, 200))]
)  # fmt: skip
def test_scopes(site: Site, scope: str, expected: tuple[int, ...]) -> None:
    site.project(assessors=("lena",))
    client, task = program(site, token_for(site, "lena", scope)[0]), site.task("books", "lena")
    state = client.state(task)
    replies = (
        client.get("/api/v1/projects/books/progress"),
        client.answer(state),
        client.patch("/api/v1/projects/books", json={"title": "Other"}),
    )
    assert tuple(reply.status_code for reply in replies) == expected
    for reply in replies:
        assert reply.status_code == 200 or "scope" in reply.json()["detail"]


def test_a_scope_is_no_role(site: Site) -> None:
    """A token with the scope lead of an assessor cannot do more than the assessor."""
    site.project()
    client = program(site, token_for(site, "ada", "lead")[0])
    assert client.patch("/api/v1/projects/books", json={"title": "x"}).status_code == 403
    assert client.get("/api/v1/projects/books/progress").status_code == 403
    assert client.get("/api/v1/audit").status_code == 403


def test_tokens_cannot_touch_accounts(site: Site) -> None:
    client = program(site, token_for(site, "lena", "lead")[0])
    for method, path in (
        ("GET", "/tokens"),
        ("POST", "/tokens"),
        ("DELETE", "/tokens/1"),
        ("POST", "/password"),
        ("POST", "/logout"),
        ("POST", "/people/1/reset"),
        ("DELETE", "/people/1/data"),
    ):
        reply = client.request(method, f"/api/v1{path}", json={})
        assert reply.status_code == 403, path
        assert "cannot" in reply.json()["detail"]


# What a token needs for a change if it is not the scope lead; None: no token may use the route.
SCOPES = {
    "/login": None, "/logout": None, "/password": None, "/reset": None, "/tokens": None,
    "/invitations/accept": None, "/tokens/{token}": None, "/people/{person}/reset": None,
    "/people/{person}/data": None, "/projects/{slug}/training": "judge",
    "/projects/{slug}/tour": "judge", "/tasks/{task}/answers": "judge",
    "/tasks/{task}/undo": "judge", "/tasks/{task}/revise": "judge", "/tasks/{task}/spans": "judge",
    "/tasks/{task}/skip": "judge",
}  # fmt: skip


def test_scopes_of_all_changes(site: Site) -> None:
    """A new route needs the scope lead unless its declaration says otherwise."""
    scopes = {}
    for route in (route for group in DESCRIBED for route in group):
        endpoint = instance(Endpoint, instance(Route, route).app)
        access = instance(Access, endpoint.declared.admit)
        if endpoint.method != "GET" or access.scope is None:
            scopes[endpoint.path.removeprefix("/api/v1")] = access.scope
    assert {path: scope for path, scope in scopes.items() if scope != "lead"} == SCOPES


@pytest.mark.parametrize(
    "forged", ["firstpage_", "firstpage_x", "firstpage_" + "a" * 500, "firstpage_' OR 1=1--", "firstpage_\xff"]
)  # fmt: skip
def test_forged_tokens(site: Site, forged: str) -> None:
    site.project()
    secret, _ = token_for(site, "ada", "judge")
    client = site.client("ada")  # with a valid cookie, which must not help
    for value in (forged, secret[:-1], secret + "x", token_hash(secret)):
        if not value.startswith("firstpage_"):
            value = f"firstpage_{value}"
        header = b"Authorization", f"Bearer {value}".encode("latin-1")
        reply = client.get("/api/v1/me", headers=[header])
        assert reply.status_code == 401
        assert reply.headers["www-authenticate"] == "Bearer"


def test_unknown_tokens_are_limited_and_valid_ones_are_not(site: Site) -> None:
    site.project()
    good = program(site, token_for(site, "ada", "judge")[0])
    bad = program(site, "firstpage_wrong")
    codes = [bad.get("/api/v1/me").status_code for _ in range(12)]
    assert codes == [401] * 10 + [429] * 2
    assert good.get("/api/v1/me").status_code == 200
    login = site.client().post("/api/v1/login", json={"login": "ada", "password": "x"})
    assert login.status_code == 401, "a broken script locks nobody out"


def test_a_token_in_a_page_or_in_another_scheme_is_ignored(site: Site) -> None:
    secret, _ = token_for(site, "ada", "lead")
    client = program(site, secret)
    assert client.get("/account", follow_redirects=False).status_code == 303
    assert (
        site.client().get("/api/v1/me", headers={"Authorization": f"Basic {secret}"}).status_code
        == 401
    )
    assert site.client().get(f"/api/v1/me?token={secret}").status_code == 401
    other = site.client("ada").get("/api/v1/me", headers={"Authorization": "Bearer of-the-proxy"})
    assert other.status_code == 200, "a proxy may send its own"


def test_cookies_still_need_the_csrf_token(site: Site) -> None:
    site.project()
    ada, task = site.client("ada"), site.task("books", "ada")
    sent = body(ada.state(task))
    ada.headers.pop("X-CSRF-Token")
    assert ada.post(f"/api/v1/tasks/{task}/answers", json=sent).status_code == 403
    secret, _ = token_for(site, "ada", "judge")
    with_both = ada.post(
        f"/api/v1/tasks/{task}/answers",
        json=sent,
        headers={"Authorization": f"Bearer {secret}", "Origin": "https://evil.example"},
    )
    assert with_both.status_code == 403, "not even with a token, from a page of another site"


def test_revoked_expired_and_deleted(db_site: Site) -> None:
    site = db_site
    site.project()
    for end in ("revoked", "expired", "deleted"):
        secret, row = token_for(site, "carl" if end == "deleted" else "ada", "read", days=1)
        client = program(site, secret)
        assert client.get("/api/v1/me").status_code == 200
        if end == "revoked":
            owner = site.client("ada")
            assert site.client("lena").delete(f"/api/v1/tokens/{row}").status_code == 404
            assert owner.delete(f"/api/v1/tokens/{row}").status_code == 204
            assert owner.delete(f"/api/v1/tokens/{row}").status_code == 404
        elif end == "expired":
            site.clock.pass_(days=1, seconds=1)
        else:
            carl, lena = site.person("carl"), site.person("lena")
            with site.store.write() as tx:
                deletion.forget(tx, carl, "anonymize", lena)
        assert client.get("/api/v1/me").status_code == 401, end


def test_the_api_shows_a_token_once(site: Site) -> None:
    ada = site.client("ada")
    made = ada.post("/api/v1/tokens", json={"name": "ci", "scope": "judge", "days": 30})
    assert made.status_code == 201
    secret = made.json()["token"]
    assert program(site, secret).get("/api/v1/me").json()["login"] == "ada"
    listed = ada.get("/api/v1/tokens")
    assert secret not in listed.text
    assert [t["name"] for t in listed.json()["tokens"]] == ["ci"]
    assert site.client("lena").get("/api/v1/tokens").json()["tokens"] == []
    assert ada.post("/api/v1/tokens", json={"name": "", "scope": "judge"}).status_code == 422
    assert ada.post("/api/v1/tokens", json={"name": "x", "scope": "admin"}).status_code == 422


def test_the_account_page(site: Site) -> None:
    ada = site.client("ada")
    csrf = ada.headers["X-CSRF-Token"]
    fields = {"csrf": csrf, "name": "<b>nightly", "scope": "read", "days": ""}
    page = ada.post("/account/tokens", data=fields)
    secret = page.text.partition('value="firstpage_')[2].partition('"')[0]
    assert program(site, f"firstpage_{secret}").get("/api/v1/me").status_code == 200
    later = ada.get("/account").text
    assert secret not in later
    assert "&lt;b&gt;nightly" in later
    assert ada.post("/account/tokens", data={**fields, "csrf": "x"}).status_code == 403
    assert ada.post("/account/tokens", data={**fields, "days": "soon"}).status_code == 400
    number = later.partition('name="token" value="')[2].partition('"')[0]
    gone = ada.post("/account/tokens/revoke", data={"csrf": csrf, "token": number})
    assert "no longer works" in gone.text
    assert ada.post("/account/tokens/revoke", data={"csrf": csrf, "token": "²"}).status_code == 404
    assert program(site, f"firstpage_{secret}").get("/api/v1/me").status_code == 401

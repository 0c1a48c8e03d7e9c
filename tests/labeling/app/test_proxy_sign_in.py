"""Sign-in by the header of an authenticating proxy, and attempts to forge it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from firstpage.core.errors import DataError
from firstpage.labeling.app.programs import ProxyHeader, parse_networks
from firstpage.labeling.app.security import COOKIE
from firstpage.labeling.app.store import audit, logins, people
from tests.labeling.app.site import DEFAULT, Client, Site, portal
from tests.logs import captured_log

HEADER = "X-Remote-User"
PROXY, STRANGER = ("10.1.2.3", 4000), ("203.0.113.9", 4000)


def behind(site: Site, **options: Any) -> Site:
    settings = replace(
        DEFAULT, **{"auth_header": HEADER, "auth_from": ("10.0.0.0/8", "::1"), **options}
    )
    return Site(site.store, site.clock, settings)


def from_address(site: Site, address: tuple[str, int], user: str | None = None) -> Client:
    client = Client(site.app, base_url="http://testserver", client=address)
    client.portal = portal()
    if user is not None:
        client.headers[HEADER] = user
    return client


def test_a_trusted_proxy_signs_in(db_site: Site) -> None:
    db_site.project()
    site = behind(db_site)
    ada = from_address(site, PROXY, "ADA")  # folded as logins are
    me = ada.get("/api/v1/me").json()
    assert me["login"] == "ada"
    task = site.task("books", "ada")
    assert ada.answer(ada.state(task)).status_code == 403, "a proxied browser needs the CSRF token"
    ada.headers["X-CSRF-Token"] = me["csrf"]
    assert ada.answer(ada.state(task)).status_code == 200
    assert ada.get("/api/v1/me").json()["csrf"] == me["csrf"], "one session per person"
    page = ada.get("/account").text
    assert "Sign out" not in page
    assert "Change password" not in page


@pytest.mark.parametrize("proxy", [False, True])
def test_the_header_from_elsewhere_is_refused_and_logged(site: Site, proxy: bool) -> None:
    """Addresses that headers report never count, not even with --proxy."""
    site.project()
    behind_proxy = behind(site, proxy=proxy)
    client = from_address(behind_proxy, STRANGER, "lena")
    with captured_log("firstpage.labeling.app") as log:
        for forwarded in ("10.1.2.3", "127.0.0.1", "::1"):
            reply = client.get("/api/v1/me", headers={"X-Forwarded-For": forwarded})
            assert reply.status_code == 403
    assert STRANGER[0] in log.getvalue()
    with site.store.read() as tx:
        rows = [r for r in audit.changes(tx, None) if r["action"] == "sign-in header refused"]
    assert [row["details"] for row in rows] == [{"address": STRANGER[0]}], "one per minute"
    without = from_address(behind_proxy, STRANGER)
    assert without.get("/api/v1/me").status_code == 401, "without the header: the usual sign-in"


def test_a_signed_in_stranger_is_refused_too(site: Site) -> None:
    site.project()
    proxied = behind(site)
    client = from_address(proxied, STRANGER, "lena")
    person = site.person("ada")
    with site.store.write() as tx:
        token, _ = logins.start(tx, person)
    client.cookies.set(COOKIE, token)
    assert client.get("/api/v1/me").status_code == 403
    client.headers.pop(HEADER)
    assert client.get("/api/v1/me").json()["login"] == "ada"


def test_with_the_option_off_the_header_is_ignored(site: Site) -> None:
    site.project()
    client = from_address(site, PROXY, "lena")
    assert client.get("/api/v1/me").status_code == 401


def test_the_header_wins_over_a_cookie_of_somebody_else(site: Site) -> None:
    site.project()
    client = from_address(behind(site), PROXY, "ada")
    person = site.person("lena")
    with site.store.write() as tx:
        token, _ = logins.start(tx, person)
    client.cookies.set(COOKIE, token)
    assert client.get("/api/v1/me").json()["login"] == "ada"


@pytest.mark.parametrize("user", ["nobody", "local", "LOCAL", "a b", "x" * 300, "deleted-1", "'--"])
def test_unknown_people_are_refused(site: Site, user: str) -> None:
    with site.store.write() as tx:
        people.ensure(tx, people.LOCAL, admin=True)  # the account of --open has no password
    client = from_address(behind(site), PROXY, user)
    assert client.get("/api/v1/me").status_code == 403
    page = client.get("/account")
    assert page.status_code == 403
    assert "ask a lead" in page.text


@pytest.mark.parametrize(
    ("user", "status"), [("zoe@example.org", 200), ("local", 403), ("a b", 403), ("", 401)]
)
def test_accounts_are_created_only_by_option(site: Site, user: str, status: int) -> None:
    with site.store.write() as tx:
        people.ensure(tx, people.LOCAL, admin=True)
    client = from_address(behind(site, auth_create=True), PROXY, user)
    assert client.get("/api/v1/me").status_code == status
    if status == 200:
        assert client.get("/api/v1/me").json()["admin"] is False


def test_several_headers_are_refused(site: Site) -> None:
    """A proxy that appends its header to the client's would let clients choose their name."""
    site.project()
    client = from_address(behind(site), PROXY)
    both = [(HEADER, "lena"), (HEADER.lower(), "ada")]
    assert client.get("/api/v1/me", headers=both).status_code == 403
    assert client.get("/api/v1/me", headers={HEADER: "lena, ada"}).status_code == 403


def test_the_session_of_a_proxy_is_no_cookie(site: Site) -> None:
    """What the database stores for it cannot be sent as a cookie."""
    site.project()
    proxied = behind(site)
    from_address(proxied, PROXY, "lena").get("/api/v1/me")
    lena = site.person("lena")
    client = from_address(proxied, STRANGER)
    for value in (f"proxy {lena.id}", f'"proxy {lena.id}"'):
        client.cookies.set(COOKIE, value)
        assert client.get("/api/v1/me").status_code == 401


def test_networks() -> None:
    header = ProxyHeader(HEADER, parse_networks(["192.0.2.7", "2001:db8::/32"]))
    trusted = ["192.0.2.7", "::ffff:192.0.2.7", "2001:db8::9"]
    assert all(header._trusted(a) for a in trusted)
    assert not any(header._trusted(a) for a in ("192.0.2.8", "2001:db9::1", "unix", ""))
    for text in ("10.0.0.5/8", "example.org", "*", ""):
        with pytest.raises(DataError, match="not an address"):
            parse_networks([text])

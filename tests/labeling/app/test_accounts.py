"""Accounts: passwords, sessions, invitations, resets, deletion."""

from __future__ import annotations

import pytest
from sqlalchemy import select, text

from firstpage.core.errors import DataError
from firstpage.labeling.app import sign_in
from firstpage.labeling.app.security import COOKIE
from firstpage.labeling.app.store import attempts, invitations, people, projects
from firstpage.labeling.app.store.tables import attempts as tries
from firstpage.labeling.app.store.tables import audit, events, logins, tasks
from tests.labeling.app.site import PASSWORD, Client, Site

NEW = "another fine password"


def with_password(site: Site, login: str) -> None:
    person = site.person(login)
    with site.store.write() as tx:
        people.set_password(tx, person, people.hash_password(PASSWORD, person.login))


def log_in(client: Client, login: str, password: str = PASSWORD):
    return client.post("/api/v1/login", json={"login": login, "password": password})


def test_log_in_and_out(db_site: Site) -> None:
    with_password(db_site, "ada")
    client = db_site.client()
    assert client.get("/api/v1/me").status_code == 401
    reply = log_in(client, "Ada")
    assert reply.status_code == 200
    cookie = reply.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert "secure" not in cookie
    client.headers["X-CSRF-Token"] = reply.json()["csrf"]
    assert client.get("/api/v1/me").json()["login"] == "ada"
    assert client.post("/api/v1/logout").status_code == 204
    assert client.get("/api/v1/me").status_code == 401


def test_the_token_is_not_in_the_database(site: Site) -> None:
    with_password(site, "ada")
    client = site.client()
    log_in(client, "ada")
    with site.store.read() as tx:
        rows = tx.all(select(logins))
    token = client.cookies[COOKIE]
    assert len(rows) == 1
    assert token not in str([dict(row) for row in rows])


def test_a_session_token_from_before_login_is_replaced(site: Site) -> None:
    """Session fixation: a cookie that an attacker planted does not become a session."""
    with_password(site, "ada")
    attacker = site.client("eve")
    planted = attacker.cookies[COOKIE]
    victim = site.client()
    victim.cookies.set(COOKIE, planted)
    reply = log_in(victim, "ada")
    assert COOKIE in reply.headers["set-cookie"]
    assert planted not in reply.headers["set-cookie"]
    with site.store.read() as tx:
        assert len(tx.all(select(logins))) == 1, "the planted session ended"
    assert attacker.get("/api/v1/me").status_code == 401


def test_a_login_expires(site: Site) -> None:
    ada = site.client("ada")
    site.clock.pass_(days=29)
    assert ada.get("/api/v1/me").status_code == 200
    site.clock.pass_(days=29)
    assert ada.get("/api/v1/me").status_code == 200, "use extends it"
    site.clock.pass_(days=31)
    assert ada.get("/api/v1/me").status_code == 401


def test_guessing_is_limited_by_login(db_site: Site) -> None:
    with_password(db_site, "ada")
    client = db_site.client()
    codes = [log_in(client, "ada", "wrong password").status_code for _ in range(11)]
    assert codes == [401] * attempts.BY_LOGIN_AND_SOURCE + [429]
    assert log_in(client, "ada").status_code == 429, "also with the correct password"
    db_site.clock.pass_(minutes=16)
    assert log_in(client, "ada").status_code == 200


def test_guessing_is_limited_by_address(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "BY_NETWORK", 4)
    client = site.client()
    codes = [log_in(client, f"nobody{i}", "wrong password").status_code for i in range(5)]
    assert codes == [401] * 4 + [429]


def test_a_correct_password_resets_the_failure_count(site: Site) -> None:
    with_password(site, "ada")
    client = site.client()
    for _ in range(2):
        for _ in range(attempts.BY_LOGIN_AND_SOURCE - 1):
            assert log_in(client, "ada", "wrong password").status_code == 401
        assert log_in(client, "ada").status_code == 200


def test_an_unknown_login_takes_as_long_as_a_known_one(
    site: Site, real_passwords: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both compute one hash of the same cost, which is stricter than measuring time."""
    people._dummy_hash.cache_clear()  # the cached one may be of another test, with a low cost
    with_password(site, "ada")
    checked: list[str] = []
    real = people.hasher().verify

    def verify(known: str, password: str) -> bool:
        checked.append(known)
        return real(known, password)

    monkeypatch.setattr(
        type(people.hasher()), "verify", lambda self, *arguments: verify(*arguments)
    )
    for login in ("ada", "nobody"):
        with pytest.raises(sign_in.WrongLogin):
            sign_in.log_in(site.store, login, "wrong password", attempts.network("here"))
    assert len(checked) == 2
    costs = [known.split("$")[1:4] for known in checked]  # kind, version, memory and rounds
    assert costs[0] == costs[1]
    assert checked[0] != checked[1]


def test_changing_the_password_ends_other_sessions(db_site: Site) -> None:
    with_password(db_site, "ada")
    current_client, other_client = db_site.client("ada"), db_site.client("ada")
    wrong = current_client.post("/api/v1/password", json={"old": "not this one", "new": NEW})
    assert wrong.status_code == 400
    done = current_client.post("/api/v1/password", json={"old": PASSWORD, "new": NEW})
    assert done.status_code == 204
    assert current_client.get("/api/v1/me").status_code == 200
    assert other_client.get("/api/v1/me").status_code == 401
    assert log_in(db_site.client(), "ada").status_code == 401
    assert log_in(db_site.client(), "ada", NEW).status_code == 200


@pytest.mark.parametrize("password", ["short", "x" * 501])
def test_password_length_is_bounded(site: Site, password: str) -> None:
    with_password(site, "ada")
    reply = site.client("ada").post("/api/v1/password", json={"old": PASSWORD, "new": password})
    assert reply.status_code == 400
    assert "10 to 500" in reply.json()["detail"]


def test_an_invitation_works_once(db_site: Site) -> None:
    db_site.project()
    lena = db_site.client("lena")
    invitation = lena.post("/api/v1/projects/books/invitations", json={"role": "assessor"}).json()
    form = {"token": invitation["token"], "login": "bob", "name": "Bob", "password": PASSWORD}
    bob = db_site.client()
    reply = bob.post("/api/v1/invitations/accept", json=form)
    assert reply.status_code == 200
    assert reply.json() == {"project": "books"}
    assert bob.get("/api/v1/projects/books").json()["roles"] == ["assessor"]
    second_response = db_site.client().post(
        "/api/v1/invitations/accept", json={**form, "login": "mallory"}
    )
    assert second_response.status_code == 400
    with db_site.store.read() as tx:
        assert people.by_login(tx, "mallory") is None


def test_an_invitation_expires_and_can_be_revoked(site: Site) -> None:
    site.project()
    lena = site.client("lena")
    old = lena.post("/api/v1/projects/books/invitations", json={"days": 1}).json()
    site.clock.pass_(days=2)
    new = lena.post("/api/v1/projects/books/invitations", json={"days": 1}).json()
    listed = lena.get("/api/v1/projects/books/invitations")
    assert new["token"] not in listed.text
    assert lena.delete(f"/api/v1/projects/books/invitations/{new['id']}").status_code == 204
    for invitation in (old, new):
        form = {"token": invitation["token"], "login": "bob", "password": PASSWORD}
        assert site.client().post("/api/v1/invitations/accept", json=form).status_code == 400


def test_a_signed_in_person_accepts_an_invitation(site: Site) -> None:
    site.project()
    with site.store.write() as tx:
        project = projects.by_slug(tx, "books")
        link = invitations.invite(tx, project, "lead", None)
    bob = site.client("bob")
    csrf = bob.headers.pop("X-CSRF-Token")
    assert bob.post("/api/v1/invitations/accept", json={"token": link.token}).status_code == 403
    bob.headers["X-CSRF-Token"] = csrf
    assert bob.post("/api/v1/invitations/accept", json={"token": link.token}).status_code == 200
    assert bob.get("/api/v1/projects/books").json()["is_lead"]


def test_the_first_lead_signs_in_with_a_link(site: Site) -> None:
    with site.store.write() as tx:
        link = invitations.invite(tx, None, "lead", None)
    client = site.client()
    form = {"token": link.token, "login": "chief", "password": PASSWORD}
    assert client.post("/api/v1/invitations/accept", json=form).json() == {"project": None}
    assert client.get("/api/v1/me").json()["admin"]


def test_password_reset_with_a_link(db_site: Site) -> None:
    db_site.project()
    with_password(db_site, "ada")
    ada, lena = db_site.client("ada"), db_site.client("lena")
    number = db_site.person("ada").id
    first = lena.post(f"/api/v1/people/{number}/reset").json()
    second = lena.post(f"/api/v1/people/{number}/reset").json()
    stale = {"token": first["token"], "password": NEW}
    assert db_site.client().post("/api/v1/reset", json=stale).status_code == 400
    form = {"token": second["token"], "password": NEW}
    browser = db_site.client("lena")
    cookie = dict(browser.cookies)
    assert browser.post("/api/v1/reset", json=form).status_code == 204
    assert browser.get("/api/v1/me").json()["login"] == "ada", "the link signs in"
    browser.cookies.clear()
    browser.cookies.update(cookie)
    assert browser.get("/api/v1/me").status_code == 401, "whoever was signed in there is out"
    assert db_site.client().post("/api/v1/reset", json=form).status_code == 400
    assert ada.get("/api/v1/me").status_code == 401, "all sessions end"
    assert log_in(db_site.client(), "ada", NEW).status_code == 200


def test_a_lead_manages_only_their_own_people(site: Site) -> None:
    """Otherwise the lead of one project could take over another by resetting a password."""
    site.project("books")
    site.project("films", lead="fred", assessors=("ada", "carl"))
    site.person("root", admin=True)
    lena = site.client("lena")
    for other in ("ada", "carl", "fred", "root"):
        number = site.person(other).id
        assert lena.post(f"/api/v1/people/{number}/reset").status_code == 404
        reply = lena.request(
            "DELETE", f"/api/v1/people/{number}/data", json={"judgments": "remove"}
        )
        assert reply.status_code == 404


@pytest.mark.parametrize("choice", ["anonymize", "remove"])
def test_deletion_of_a_persons_data(db_site: Site, choice: str) -> None:
    db_site.project()
    with_password(db_site, "ada")
    ada = db_site.client("ada")
    task, number = db_site.task("books", "ada"), db_site.person("ada").id
    ada.answer(ada.state(task), comment="my private thought")
    ada.judge(task)
    ada.post(
        f"/api/v1/tasks/{db_site.task('books', 'ada', 1)}/skip", json={"reason": "my sore eyes"}
    )
    db_site.client().post("/api/v1/login", json={"login": "ada", "password": "wrong, of course"})
    lena = db_site.client("lena")
    assert "sore eyes" in lena.get("/api/v1/projects/books/audit").text
    with db_site.store.read() as tx:
        assert tx.all(select(tries))
    reply = lena.request("DELETE", f"/api/v1/people/{number}/data", json={"judgments": choice})
    assert reply.status_code == 200
    assert reply.json()["tasks"] == 2
    assert ada.get("/api/v1/me").status_code == 401
    with db_site.store.read() as tx:
        rows = tx.all(select(events))
        assert bool(rows) == (choice == "anonymize")
        assert all(row["comment"] is None for row in rows)
        assert bool(tx.all(select(tasks))) == (choice == "anonymize")
        everything = str([dict(r) for r in tx.all(text("SELECT * FROM people"))])
        everything += str([dict(r) for r in tx.all(select(audit))])
        everything += str([dict(r) for r in tx.all(select(tries))])
        everything += str([dict(r) for r in tx.all(select(tasks))])
    everything += lena.get("/api/v1/projects/books/audit").text
    assert "ada" not in everything.lower()
    assert "sore eyes" not in everything
    assert "data deleted" in everything
    if choice == "anonymize":
        assert f"deleted-{number}" in lena.get("/api/v1/projects/books/export/log.jsonl").text


def test_changes_are_audited(site: Site) -> None:
    site.project(opened=False)
    lena = site.client("lena")
    lena.patch("/api/v1/projects/books", json={"title": "Books"})
    lena.post("/api/v1/projects/books/open")
    lena.post("/api/v1/projects/books/invitations", json={})
    rows = lena.get("/api/v1/projects/books/audit").json()["audit"]
    actions = [row["action"] for row in rows]
    assert actions[:3] == ["invitation created", "project open", "project changed"]
    assert {row["person_name"] for row in rows[:3]} == {"Lena"}


def test_logins_are_case_insensitive(db_site: Site) -> None:
    with db_site.store.write() as tx:
        eva = people.create(tx, "Éva")
        assert people.by_login(tx, "ÉVA") == people.by_login(tx, "E\u0301va") == eva
        with pytest.raises(DataError, match="taken"):
            people.create(tx, "éva")

"""Links: who may create, see, use and revoke them, and when they end."""

from __future__ import annotations

import re
from typing import Any

import pytest

from firstpage.labeling.app.security import ServeSettings
from firstpage.labeling.app.server import _invite_first, _public_address
from firstpage.labeling.app.store import audit, deletion, invitations, people, projects
from firstpage.labeling.app.store.invitations import Link
from tests.labeling.app.site import PASSWORD, Client, Site
from tests.narrow import present

NEW = "another fine password"
STRANGER = {"login": "mallory", "name": "Mallory", "password": PASSWORD}


def first_link(site: Site) -> Link:
    with site.store.write() as tx:
        return invitations.invite(tx, None, "lead", None)


def accept(client: Client, link: Any, **fields: Any) -> Any:
    token = link["token"] if isinstance(link, dict) else link.token
    return client.post("/api/v1/invitations/accept", json={"token": token, **fields})


def reset(site: Site, link: Any, password: str = NEW) -> int:
    token = link["token"] if isinstance(link, dict) else link.token
    reply = site.client().post("/api/v1/reset", json={"token": token, "password": password})
    return reply.status_code


def admin(site: Site, login: str = "chief") -> Client:
    person = site.person(login, admin=True)
    with site.store.write() as tx:
        people.set_password(tx, person, people.hash_password(PASSWORD, login))
    return site.client(login)


def first_lead_output(site: Site, capsys: pytest.CaptureFixture[str]) -> str:
    """Return what `label serve` prints about the first lead."""
    _invite_first(site.store, "http://here")
    return capsys.readouterr().out


class TestFirstLead:
    """The link that `label serve` prints creates one admin and cannot be used again."""

    def test_it_does_not_create_the_local_user(self, db_site: Site) -> None:
        """The account `local` is that of `--open`, an admin without a password."""
        link = first_link(db_site)
        reply = accept(db_site.client(), link, **{**STRANGER, "login": "LOCAL"})
        assert reply.status_code == 400
        assert "choose another" in reply.json()["detail"]
        assert accept(db_site.client(), link, **STRANGER).status_code < 300

    def test_it_ends_when_an_admin_has_a_password(self, db_site: Site) -> None:
        other = first_link(db_site)
        with db_site.store.write() as tx:  # not through this link
            lena = people.create(tx, "lena", admin=True)
            entry = invitations.reset_link(tx, lena, None)
        assert reset(db_site, entry) == 204
        assert accept(db_site.client(), other, **STRANGER).status_code == 400
        assert db_site.client().get(f"/invitation/{other.token}").status_code == 400
        with db_site.store.read() as tx:
            assert people.by_login(tx, "mallory") is None

    def test_the_first_one_that_is_used_ends_the_others(self, db_site: Site) -> None:
        """A link that was sent to the lead survives restarts of the server, which print others."""
        old, new = first_link(db_site), first_link(db_site)
        assert accept(db_site.client(), old, login="chief", password=PASSWORD).status_code == 200
        assert accept(db_site.client(), new, **STRANGER).status_code == 400
        with db_site.store.read() as tx:
            assert [link.id for link in invitations.all_links(tx)] == [old.id]

    def test_it_ends_when_an_account_without_a_password_used_another(self, db_site: Site) -> None:
        """An account that a proxy signs in becomes an admin without a password."""
        used, other = first_link(db_site), first_link(db_site)
        assert accept(db_site.client("zoe"), used).status_code == 200
        assert accept(db_site.client(), other, **STRANGER).status_code == 400

    def test_ids_are_not_reused(self, db_site: Site) -> None:
        """The audit log names links by their ids, also links that have ended."""
        links = [first_link(db_site) for _ in range(3)]
        ada, bob = db_site.person("ada"), db_site.person("bob")
        with db_site.store.write() as tx:
            links += [invitations.reset_link(tx, ada, None) for _ in range(2)]
            deletion.forget(tx, ada, "anonymize", ada)
            links.append(invitations.reset_link(tx, bob, None))
            assert invitations.end_all(tx) == 4
            links.append(invitations.invite(tx, None, "lead", None))
            listed = [link.id for link in invitations.all_links(tx)]
        assert len({link.id for link in links}) == len(links)
        assert listed == [links[-1].id], "ended links are not listed"

    def test_it_is_listed_revocable_and_audited(self, site: Site) -> None:
        link = first_link(site)
        root = site.client("root")  # an admin of `--open`, who has no password
        with site.store.write() as tx:
            people.make_admin(tx, site_person(tx, "root"))
        listed = root.get("/api/v1/links")
        assert link.token not in listed.text
        (row,) = listed.json()["links"]
        assert (row["id"], row["project"], row["open"]) == (link.id, None, True)
        assert "first lead" in root.get("/links").text
        token = root.headers.pop("X-CSRF-Token")
        assert root.delete(f"/api/v1/links/{link.id}").status_code == 403
        root.headers["X-CSRF-Token"] = token
        assert root.delete(f"/api/v1/links/{link.id}").status_code == 204
        assert root.delete(f"/api/v1/links/{link.id}").status_code == 404
        assert accept(site.client(), link, **STRANGER).status_code == 400
        actions = [row["action"] for row in root.get("/api/v1/audit").json()["audit"]]
        assert "invitation created" in actions
        assert "invitation revoked" in actions
        assert "invitation revoked" in root.get("/audit").text

    def test_serve_prints_a_link_for_a_new_account(
        self, site: Site, capsys: pytest.CaptureFixture[str]
    ) -> None:
        text = first_lead_output(site, capsys)
        assert "first lead" in text
        token = present(re.search(r"http://here/invitation/(\S+)", text))[1]
        page = site.client().get(f"/invitation/{token}").text
        assert "admin" in page
        form = {"token": token, "login": "chief", "password": PASSWORD}
        assert site.client().post("/api/v1/invitations/accept", json=form).status_code == 200
        assert first_lead_output(site, capsys) == ""

    def test_serve_names_the_admin_who_has_no_password_yet(
        self, site: Site, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """After `label setup --lead lena`, the printed link is for lena, and nobody else becomes admin."""
        with site.store.write() as tx:
            people.create(tx, "lena", admin=True)
        before, text = first_lead_output(site, capsys), first_lead_output(site, capsys)
        assert "lena signs in here" in text
        assert "/invitation/" not in text
        old, new = (present(re.search(r"http://here/reset/(\S+)", t))[1] for t in (before, text))
        for token in (old, new):
            assert "<strong>lena</strong>" in site.client().get(f"/reset/{token}").text
        assert reset(site, {"token": old}) == 204
        assert reset(site, {"token": new}) == 400, "one link sets the password"
        assert first_lead_output(site, capsys) == ""

    @pytest.mark.parametrize(
        ("settings", "address"),
        [
            (ServeSettings(), "http://0.0.0.0:8210"),
            (ServeSettings(hosts=("*",)), "http://0.0.0.0:8210"),
            (ServeSettings(hosts=("labels.example.org",)), "http://labels.example.org:8210"),
            (ServeSettings(hosts=("*", "::1"), proxy=True), "https://[::1]"),
        ],
    )
    def test_printed_links_have_the_name_by_which_people_reach_the_server(
        self, settings: ServeSettings, address: str
    ) -> None:
        assert _public_address(settings, "http://0.0.0.0:8210", 8210) == address

    def test_a_link_for_a_new_password_ends_the_printed_ones(self, db_site: Site) -> None:
        """`label link` and **Reset password** are for links that were lost or seen by others."""
        ada = db_site.person("ada")
        with db_site.store.write() as tx:
            printed = [invitations.first_password_link(tx, ada) for _ in range(2)]
            link = invitations.reset_link(tx, ada, None)
        assert [reset(db_site, old) for old in printed] == [400, 400]
        assert reset(db_site, link) == 204


def site_person(tx: Any, login: str) -> people.Person:
    person = people.by_login(tx, login)
    assert person is not None
    return person


class TestLists:
    """Admins see all links; a lead sees those of the project and of the people they manage."""

    def test_visibility_of_links(self, db_site: Site) -> None:
        db_site.project("books")
        db_site.project("films", lead="fred", assessors=("carl",))
        lena, fred, administrator = db_site.client("lena"), db_site.client("fred"), admin(db_site)
        lena.post("/api/v1/projects/books/invitations", json={"role": "lead"})
        ada = db_site.person("ada").id
        link = lena.post(f"/api/v1/people/{ada}/reset").json()
        carl = db_site.person("carl").id
        fred.post(f"/api/v1/people/{carl}/reset")

        def kinds(client: Client, path: str, key: str) -> list[tuple[str, str | None]]:
            return [(r["kind"], r["login"]) for r in client.get(path).json()[key]]

        lena_links = kinds(lena, "/api/v1/projects/books/invitations", "invitations")
        assert lena_links == [("reset", "ada"), ("join", None)]
        fred_links = kinds(fred, "/api/v1/projects/films/invitations", "invitations")
        assert fred_links == [("reset", "carl")]
        assert len(kinds(administrator, "/api/v1/links", "links")) == 3
        page = lena.get("/p/books/people").text
        assert "new password for ada" in page
        assert "by Lena" in page
        assert "new password for carl" in administrator.get("/links").text
        for client in (fred, db_site.client("ada")):
            path = f"/api/v1/projects/books/invitations/{link['id']}"
            assert client.delete(path).status_code in (403, 404)
        films = f"/api/v1/projects/films/invitations/{link['id']}"
        assert fred.delete(films).status_code == 404, "not through another project either"
        assert lena.delete(f"/api/v1/projects/books/invitations/{link['id']}").status_code == 204
        assert reset(db_site, link) == 400

    def test_links_are_revoked_with_forms(self, site: Site) -> None:
        site.project()
        lena, administrator = site.client("lena"), admin(site)
        for client, path in ((lena, "/p/books/people/revoke"), (administrator, "/links/revoke")):
            link = lena.post("/api/v1/projects/books/invitations", json={}).json()
            assert client.post(path, data={"link": link["id"]}).status_code == 403
            sent = {"csrf": client.headers["X-CSRF-Token"], "link": link["id"]}
            page = client.post(path, data=sent)
            assert page.status_code == 200
            assert "no longer works" in page.text
            assert accept(site.client(), link, **STRANGER).status_code == 400

    @pytest.mark.parametrize("path", ["/links", "/audit"])
    def test_the_pages_are_for_admins(self, site: Site, path: str) -> None:
        site.project()
        assert admin(site).get(path).status_code == 200
        assert path in admin(site).get("/").text
        for login in ("lena", "ada"):
            assert site.client(login).get(path).status_code == 403
        assert path not in site.client("lena").get("/").text
        assert site.client().get(path, follow_redirects=False).status_code == 303

    def test_open_links_are_always_listed(
        self, site: Site, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(invitations, "MAX_LISTED", 3)
        project = site.project()
        with site.store.write() as tx:
            waiting = invitations.invite(tx, project, "assessor", None)
            for number in range(5):
                link = invitations.invite(tx, project, "assessor", None)
                offer = invitations.find_offer(tx, link.token, "join")
                invitations.join(tx, offer, people.ensure(tx, f"p{number}"))
            links = invitations.links_of_project(tx, project, site_person(tx, "lena"))
        assert (links[0].id, links[0].open) == (waiting.id, True)
        assert len(links) == 3


class TestMakers:
    """A link is valid only while its creator could still create it."""

    def test_links_of_a_departed_lead_do_not_work(self, db_site: Site) -> None:
        db_site.project()
        with db_site.store.write() as tx:
            books = projects.by_slug(tx, "books")
            assert books is not None
            projects.join(tx, books, people.ensure(tx, "mark"), "lead")
        mark = db_site.client("mark")
        link = mark.post("/api/v1/projects/books/invitations", json={"role": "lead"}).json()
        number = db_site.person("mark").id
        assert db_site.client("lena").delete(f"/api/v1/projects/books/people/{number}").is_success
        assert accept(mark, link).status_code == 400
        listed = db_site.client("lena").get("/api/v1/projects/books/invitations").json()
        assert [row["open"] for row in listed["invitations"]] == [False]

    def test_a_reset_link_ends_when_the_lead_loses_the_account(self, db_site: Site) -> None:
        db_site.project("books")
        db_site.project("films", lead="fred", assessors=("carl",))
        lena, ada = db_site.client("lena"), db_site.person("ada")
        link = lena.post(f"/api/v1/people/{ada.id}/reset").json()
        films = db_site.client("fred").post("/api/v1/projects/films/invitations", json={}).json()
        assert accept(db_site.client("ada"), films).status_code == 200
        assert reset(db_site, link) == 400

    def test_links_of_a_deleted_account_end(self, site: Site) -> None:
        site.project(lead="mark")
        with site.store.write() as tx:
            books = projects.by_slug(tx, "books")
            link = invitations.invite(tx, books, "lead", site_person(tx, "mark"))
        number = site.person("mark").id
        deletion = {"judgments": "anonymize"}
        path = f"/api/v1/people/{number}/data"
        assert admin(site).request("DELETE", path, json=deletion).status_code == 200
        assert accept(site.client(), link, **STRANGER).status_code == 400


class TestConsent:
    """No account joins a project, and so comes under its lead, without its owner's consent."""

    def add(self, client: Client, login: str, role: str = "assessor", slug: str = "books") -> Any:
        return client.post(f"/api/v1/projects/{slug}/people", json={"login": login, "role": role})

    def test_an_account_is_not_taken_over(self, db_site: Site) -> None:
        """Otherwise a lead could add an account without a project and reset its password."""
        db_site.project("books")
        lena, zoe = db_site.client("lena"), db_site.client("zoe")
        number = db_site.person("zoe").id
        reply = self.add(lena, "ＺＯＥ")
        assert reply.status_code == 201
        assert (reply.json()["id"], reply.json()["joined"]) == (None, False)
        assert zoe.get("/api/v1/projects/books").status_code == 404
        assert lena.post(f"/api/v1/people/{number}/reset").status_code == 404
        link = reply.json()["link"]
        assert "account" in accept(db_site.client(), link, **STRANGER).json()["detail"]
        assert accept(db_site.client("carl"), link).status_code == 400, "only for this account"
        assert "<strong>zoe</strong>" in db_site.client().get(link["path"]).text
        assert accept(zoe, link).status_code == 200
        assert zoe.get("/api/v1/projects/books").json()["roles"] == ["assessor"]
        assert lena.post(f"/api/v1/people/{number}/reset").status_code == 201, (
            "now the lead manages the account"
        )

    @pytest.mark.parametrize("login", ["chief", "fred", "carl"])
    def test_unmanaged_accounts_are_invited(self, site: Site, login: str) -> None:
        site.project("books")
        site.project("films", lead="fred", assessors=("carl",))
        admin(site)
        lena = site.client("lena")
        assert self.add(lena, login).json()["joined"] is False
        assert lena.post(f"/api/v1/people/{site.person(login).id}/reset").status_code == 404

    def test_an_admin_adds_any_account(self, site: Site) -> None:
        site.project("books")
        site.person("zoe")
        assert self.add(admin(site), "zoe").json()["joined"] is True

    def test_a_lead_adds_managed_accounts(self, site: Site) -> None:
        site.project("books")
        lena = site.client("lena")
        new = self.add(lena, "zoe").json()
        assert new["joined"] is True
        assert reset(site, new["link"]) == 204, "a new account sets its password"
        lena.post("/api/v1/projects", json={"slug": "more"})
        assert self.add(lena, "zoe", slug="more").json()["joined"] is True
        assert self.add(lena, "zoe", role="lead").json()["joined"] is True, "a present member"

    def test_a_lead_cannot_manage_another_lead(self, site: Site) -> None:
        site.project("books")
        lena = site.client("lena")
        number = self.add(lena, "mark", role="lead").json()["id"]
        assert lena.post(f"/api/v1/people/{number}/reset").status_code == 404
        assert "only an admin" in lena.get(f"/p/books/people/{number}").text
        assert admin(site).post(f"/api/v1/people/{number}/reset").status_code == 201


class TestAudit:
    """The audit log names people until their data are deleted."""

    def test_people_are_named(self, db_site: Site) -> None:
        db_site.project()
        lena, number = db_site.client("lena"), db_site.person("ada").id
        lena.delete(f"/api/v1/projects/books/people/{number}")
        rows = lena.get("/api/v1/projects/books/audit").json()["audit"]
        departure = next(row for row in rows if row["action"] == "departed")
        assert (departure["person_name"], departure["person_login"]) == ("Lena", "lena")
        assert departure["details"]["account"] == "Ada (ada)"
        assert "account: Ada (ada)" in lena.get("/p/books/audit").text
        administrator = admin(db_site)
        link = administrator.post(f"/api/v1/people/{number}/reset").json()
        assert reset(db_site, link) == 204
        (creation,) = [
            row
            for row in administrator.get("/api/v1/audit").json()["audit"]
            if row["action"] == "reset link created"
        ]
        assert creation["details"] == {"id": link["id"], "account": "Ada (ada)"}
        used = administrator.get("/api/v1/audit?limit=5").json()["audit"]
        assert "reset link used" in [row["action"] for row in used]

    def test_an_unknown_person_is_shown_by_id(self, site: Site) -> None:
        with site.store.write() as tx:
            audit.note(tx, "tried", person=None, account=10**6)
            (row, *_) = audit.changes(tx, None)
        assert row["details"] == {"account": 10**6}

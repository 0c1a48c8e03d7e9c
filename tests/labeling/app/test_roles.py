"""Every route against every role: allowed (2xx), forbidden (403) or hidden (404).

The table is checked against the OpenAPI description, so a new route without a row fails.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from firstpage.labeling.app.store.connect import Store
from tests.labeling.app.site import Client, Clock, Site

# What anonymous, a stranger (assessor elsewhere), the assessor, the lead of another project and
# the lead get.  "ok" is any 2xx, or a 4xx that only somebody who may do it can get (400, 409, 422).
OPEN = ("ok", "ok", "ok", "ok", "ok")
ANYONE = (401, "ok", "ok", "ok", "ok")
MEMBER = (401, 404, "ok", 404, "ok")
LEAD = (401, 404, 403, 404, "ok")
OWN = (401, 404, "ok", 404, 404)  # only its assessor sees a task
MANAGED = (401, 404, 404, 404, "ok")
ADMIN = (401, 403, 403, 403, 403)  # a lead of a project is not an admin

ROLES = ("anonymous", "stranger", "ada", "other lead", "lena")
ROUTES: dict[tuple[str, str], tuple[Any, ...]] = {
    ("POST", "/login"): OPEN,
    ("POST", "/reset"): OPEN,
    ("POST", "/invitations/accept"): OPEN,
    ("GET", "/me"): ANYONE,
    ("POST", "/logout"): ANYONE,
    ("POST", "/password"): ANYONE,
    ("GET", "/tokens"): ANYONE,
    ("POST", "/tokens"): ANYONE,
    ("DELETE", "/tokens/{token}"): (401, 404, 404, 404, 404),  # only its owner
    ("POST", "/people/{person}/reset"): MANAGED,
    ("DELETE", "/people/{person}/data"): MANAGED,
    ("GET", "/links"): ADMIN,
    ("DELETE", "/links/{link}"): ADMIN,
    ("GET", "/audit"): ADMIN,
    ("GET", "/projects"): ANYONE,
    ("POST", "/projects"): (401, 403, 403, "ok", "ok"),
    ("GET", "/projects/{slug}"): MEMBER,
    ("PATCH", "/projects/{slug}"): LEAD,
    ("POST", "/projects/{slug}/import"): LEAD,
    ("POST", "/projects/{slug}/open"): LEAD,
    ("POST", "/projects/{slug}/close"): LEAD,
    ("POST", "/projects/{slug}/archive"): LEAD,
    ("POST", "/projects/{slug}/restore"): LEAD,
    ("DELETE", "/projects/{slug}"): LEAD,
    ("GET", "/projects/{slug}/queries"): LEAD,
    ("POST", "/projects/{slug}/queries/{action}"): LEAD,
    ("POST", "/projects/{slug}/documents/{action}"): LEAD,
    ("GET", "/projects/{slug}/answers"): LEAD,
    ("GET", "/projects/{slug}/questions"): LEAD,
    ("GET", "/projects/{slug}/disputes"): LEAD,
    ("POST", "/projects/{slug}/verdicts"): LEAD,
    ("POST", "/projects/{slug}/verdicts/withdraw"): LEAD,
    ("GET", "/projects/{slug}/work"): MEMBER,
    ("GET", "/projects/{slug}/next"): MEMBER,
    ("GET", "/projects/{slug}/training"): MEMBER,
    ("POST", "/projects/{slug}/training"): MEMBER,
    ("GET", "/projects/{slug}/tour"): MEMBER,
    ("POST", "/projects/{slug}/tour"): MEMBER,
    ("GET", "/projects/{slug}/webhook"): LEAD,
    ("PUT", "/projects/{slug}/webhook"): LEAD,
    ("DELETE", "/projects/{slug}/webhook"): (401, 404, 403, 404, 404),  # there is none
    ("GET", "/projects/{slug}/people"): LEAD,
    ("POST", "/projects/{slug}/people"): LEAD,
    ("DELETE", "/projects/{slug}/people/{person}"): LEAD,
    ("GET", "/projects/{slug}/invitations"): LEAD,
    ("POST", "/projects/{slug}/invitations"): LEAD,
    ("DELETE", "/projects/{slug}/invitations/{invitation}"): LEAD,
    ("GET", "/projects/{slug}/audit"): LEAD,
    ("GET", "/projects/{slug}/assignment"): LEAD,
    ("POST", "/projects/{slug}/assignment"): LEAD,
    ("GET", "/projects/{slug}/progress"): LEAD,
    ("GET", "/projects/{slug}/effort"): LEAD,
    ("GET", "/projects/{slug}/agreement"): LEAD,
    ("GET", "/projects/{slug}/disagreements"): LEAD,
    ("GET", "/projects/{slug}/machines"): LEAD,
    ("GET", "/projects/{slug}/consensus"): LEAD,
    ("GET", "/projects/{slug}/measure"): LEAD,
    ("GET", "/projects/{slug}/export/{name}"): LEAD,
    ("GET", "/tasks/{task}"): OWN,
    ("POST", "/tasks/{task}/answers"): OWN,
    ("POST", "/tasks/{task}/undo"): OWN,
    ("POST", "/tasks/{task}/revise"): OWN,
    ("POST", "/tasks/{task}/spans"): OWN,
    ("POST", "/tasks/{task}/skip"): OWN,
    ("POST", "/tasks/{task}/switch"): (401, 404, 403, 404, "ok"),
    ("GET", "/tasks/{task}/prefetch"): OWN,
    ("GET", "/tasks/{task}/judgments"): OWN,
}
BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("POST", "/login"): {"login": "ada", "password": "not the right one"},
    ("POST", "/reset"): {"token": "none", "password": "a new long password"},
    ("POST", "/invitations/accept"): {"token": "none"},
    ("POST", "/password"): {"old": "not the right one", "new": "a new long password"},
    ("POST", "/tokens"): {"name": "ci"},
    ("PUT", "/projects/{slug}/webhook"): {"url": "https://example.org/hook"},
    ("DELETE", "/people/{person}/data"): {"judgments": "anonymize"},
    ("POST", "/projects"): {"slug": "new"},
    ("PATCH", "/projects/{slug}"): {"title": "Other"},
    ("POST", "/projects/{slug}/training"): {"seq": 0, "key": "k", "left": "d0", "right": "d1"},
    ("POST", "/projects/{slug}/tour"): {"seq": 0, "key": "k", "left": "d0", "right": "d1"},
    ("POST", "/projects/{slug}/people"): {"login": "zoe"},
    ("POST", "/projects/{slug}/invitations"): {},
    ("POST", "/projects/{slug}/queries/{action}"): {"queries": ["q0"]},
    ("POST", "/projects/{slug}/documents/{action}"): {"query": "q0", "documents": ["d0"]},
    ("POST", "/projects/{slug}/verdicts"): {
        "key": "k",
        "query": "q0",
        "left": "d0",
        "right": "d1",
        "outcome": 1,
        "reason": "clear",
    },
    ("POST", "/projects/{slug}/verdicts/withdraw"): {"key": "k", "query": "q0", "index": 0},
    ("POST", "/tasks/{task}/answers"): {"seq": 0, "key": "k", "left": "d0", "right": "d1"},
    ("POST", "/tasks/{task}/undo"): {"seq": 0, "key": "k"},
    ("POST", "/tasks/{task}/revise"): {"seq": 0, "key": "k", "index": 0, "outcome": 1},
    ("POST", "/tasks/{task}/spans"): {"key": "k", "spans": []},
    ("POST", "/tasks/{task}/skip"): {"reason": "I know the author"},
    ("POST", "/tasks/{task}/switch"): {"k": 2},
}
THEIRS = (400, 409, 422)  # only those who may do it are told


def described_routes(site: Site) -> set[tuple[str, str]]:
    spec = site.client().get("/api/v1/openapi.json").json()
    return {
        (method.upper(), path.removeprefix("/api/v1"))
        for path, methods in spec["paths"].items()
        for method in methods
    }


def test_the_table_has_every_route(site: Site) -> None:
    assert described_routes(site) == set(ROUTES)


def client_of(site: Site, role: str) -> Client:
    names = {"anonymous": None, "stranger": "carl", "other lead": "fred"}
    return site.client(names.get(role, role))


def unchanged_project(site: Site, slug: str) -> dict[str, str | int]:
    """Create a project; return the parts of the addresses that lead to what is in it."""
    site.project(slug, queries=1, documents=3)
    with site.store.write() as tx:  # leads may manage a person who is only in this project
        from firstpage.labeling.app.store import invitations, people, projects

        eva = people.ensure(tx, f"eva-{slug}")
        project = projects.by_slug(tx, slug)
        assert project is not None
        projects.join(tx, project, eva, "assessor")
        invited = invitations.invite(tx, project, "assessor", None)
    return {
        "slug": slug,
        "task": site.task(slug, "ada"),
        "person": eva.id,
        "invitation": invited.id,
        "link": invited.id,
        "token": 1,
        "name": "log.jsonl",
        "action": "archive",
    }


@pytest.fixture(scope="module")
def two_projects(
    tmp_path_factory: pytest.TempPathFactory, fresh: Path
) -> tuple[Path, dict[str, str | int]]:
    """Return the folder of a store with two projects, to be copied, and the parts of one."""
    folder = tmp_path_factory.mktemp("projects") / "project"
    shutil.copytree(fresh, folder)
    clock = Clock()
    site = Site(Store(folder, clock), clock)
    site.project("films", lead="fred", assessors=("carl",), queries=1)
    parts = unchanged_project(site, "books")
    site.close()
    return folder, parts


@pytest.mark.parametrize("route", ROUTES, ids=lambda r: " ".join(r))
def test_roles(
    two_projects: tuple[Path, dict[str, str | int]], tmp_path: Path, route: tuple[str, str]
) -> None:
    folder, parts = two_projects
    shutil.copytree(folder, tmp_path / "project")
    clock = Clock()
    site = Site(Store(tmp_path / "project", clock), clock)
    try:
        check_roles(site, route, parts)
    finally:
        site.close()


def check_roles(site: Site, route: tuple[str, str], parts: dict[str, str | int]) -> None:
    """Send the request of a route in every role; check that it is accepted or refused as listed."""
    method, pattern = route
    changed = False  # by the request before
    for role, expected in zip(ROLES, ROUTES[route], strict=True):
        if changed:
            parts = unchanged_project(site, f"books-{ROLES.index(role)}")
        changed = method != "GET" and expected == "ok"
        path = pattern.format(**parts)
        client = client_of(site, role)
        sent: dict[str, Any] = {"json": BODIES[route]} if route in BODIES else {}
        if pattern == "/projects" and method == "POST":
            sent = {"json": {"slug": f"new-{ROLES.index(role)}"}}
        if pattern.endswith("/people") and method == "POST":
            sent = {"json": {"login": f"zoe{ROLES.index(role)}"}}
        if pattern.endswith("/import"):
            sent = {"files": {"documents": ("d.jsonl", b'{"query":"n","document":"1","text":"x"}')}}
        status = client.request(method, f"/api/v1{path}", **sent).status_code
        if expected == "ok":
            fine = (
                200 <= status < 300 or status in THEIRS or (route[1] == "/login" and status == 401)
            )
            assert fine, f"{role}: {status}"
        else:
            assert status == expected, f"{role}: {status}, not {expected}"


def test_documents_are_for_those_who_judge_them(site: Site) -> None:
    site.project("books", queries=1)
    site.project("films", lead="fred", assessors=("carl",))
    with site.store.write() as tx:  # a member without a task about this query
        from firstpage.labeling.app.store import people, projects

        project = projects.by_slug(tx, "books")
        assert project is not None
        projects.join(tx, project, people.ensure(tx, "bob"), "assessor")
    url = site.client("ada").state(site.task("books", "ada"))["question"]["left"]["url"]
    expected = {"ada": 200, "lena": 200, "bob": 404, "carl": 404, "fred": 404, None: 401}
    for login, code in expected.items():
        assert site.client(login).get(url).status_code == code, login


def test_departed_members_see_nothing(site: Site) -> None:
    site.project()
    ada = site.client("ada")
    url = ada.state(site.task("books", "ada"))["question"]["left"]["url"]
    site.client("lena").delete(f"/api/v1/projects/books/people/{site.person('ada').id}")
    assert ada.get("/api/v1/projects/books").status_code == 404
    assert ada.get(url).status_code == 404


API = "/api/v1/projects/books"


def test_the_only_lead_cannot_leave(site: Site) -> None:
    site.project()
    lena = site.person("lena").id
    assert site.client("lena").delete(f"{API}/people/{lena}").status_code == 400

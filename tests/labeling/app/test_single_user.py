"""`--open`: a single user on one machine, signed in once by a token, without accounts."""

from __future__ import annotations

from firstpage.labeling.app.app import prepare_single_user
from firstpage.labeling.app.security import ServeSettings
from firstpage.labeling.app.store import assigning, people, projects, tasks
from tests.labeling.app.site import HOST, Site, add_query, jsonl, query


def single_user_site(site: Site) -> Site:
    prepare_single_user(site.store)
    return Site(
        site.store, site.clock, ServeSettings(single_user=True, token="once", hosts=(HOST,))
    )


def test_the_token_signs_in_once(site: Site) -> None:
    server = single_user_site(site)
    client = server.client()
    assert client.get("/open?token=wrong", follow_redirects=False).status_code == 404
    assert client.get("/open?token=once", follow_redirects=False).status_code == 303
    assert client.get("/api/v1/me").json()["login"] == "local"
    assert server.client().get("/open?token=once", follow_redirects=False).status_code == 404


def test_without_open_the_route_does_not_exist(site: Site) -> None:
    site.app.state.token = "once"
    assert site.client().get("/open?token=once", follow_redirects=False).status_code == 404


def test_from_texts_to_the_first_question(site: Site) -> None:
    client = single_user_site(site).client()
    client.get("/open?token=once", follow_redirects=False)
    client.headers["X-CSRF-Token"] = client.get("/api/v1/me").json()["csrf"]
    client.post("/api/v1/projects", json={"slug": "mine", "setting": {"k": 2}})
    rows = [{"query": "q", "document": f"d{i}", "text": "x"} for i in range(4)]
    client.post("/api/v1/projects/mine/import", files={"documents": ("d.jsonl", jsonl(*rows))})
    assert client.post("/api/v1/projects/mine/open").status_code == 200
    work = client.get("/api/v1/projects/mine/work").json()
    assert client.judge(work["next"])["done"]


def test_all_tools_of_a_study_are_assigned(site: Site) -> None:
    project = site.project(assessors=(), options={"tools": ["pairs", "grades"]}, opened=False)
    person = site.person("lena")
    with site.store.write() as tx:
        for _ in range(2):  # the second time there is nothing to add
            assigning.assign_to_single_person(tx, project, person)
        rows = tasks.of_person(tx, project, person.id)
    assert [(row.query_key, row.tool) for row in rows] == [
        ("q0", "pairs"),
        ("q0", "grades"),
        ("q1", "pairs"),
        ("q1", "grades"),
    ]


def test_a_single_user_judges_existing_projects(site: Site) -> None:
    """After `label setup`, `label serve --open` shows the tasks."""
    with site.store.write() as tx:
        project = projects.create(tx, "shop", setting={"k": 2, "strategy": "heap"})
        add_query(tx, project.id, query(0, 4), 0)
    assert prepare_single_user(site.store) == []
    assert prepare_single_user(site.store) == []  # the second start changes nothing
    you = site.client("local")
    work = you.get("/api/v1/projects/shop/work").json()
    assert len(work["tasks"]) == 1
    assert you.judge(work["next"])["done"]
    truth = you.get("/api/v1/projects/shop/consensus").json()["truths"][0]
    assert truth["order"] == ["d0", "d1"]


def test_a_project_with_assessors_is_led_by_the_single_user(site: Site) -> None:
    with site.store.write() as tx:
        project = projects.create(tx, "team")
        add_query(tx, project.id, query(0, 4), 0)
        projects.join(tx, project, people.ensure(tx, "ada"), "assessor", by=None)
    assert prepare_single_user(site.store) == ["team"]
    assert site.client("local").get("/api/v1/projects/team/work").json()["tasks"] == []
    with site.store.write() as tx:
        projects.join(tx, project, people.ensure(tx, "local"), "assessor", by=None)
    assert prepare_single_user(site.store) == []  # both judge; tasks are not taken from others
    assert site.client("local").get("/api/v1/projects/team/work").json()["tasks"] == []

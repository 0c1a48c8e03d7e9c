"""Settings of a project that is open: they change until the first answer."""

from __future__ import annotations

from typing import Any

import pytest

from firstpage.labeling.app.store import projects
from tests.labeling.app.site import Site

API = "/api/v1/projects/books"


def test_a_setting_changes_until_the_first_answer(db_site: Site) -> None:
    """Also in a session that a server has in memory."""
    db_site.project(queries=1)
    ada, lena, task = db_site.client("ada"), db_site.client("lena"), db_site.task("books", "ada")
    assert ada.state(task)["question"]
    reply = lena.patch(API, json={"setting": {"k": 2, "strategy": "tournament"}})
    assert reply.status_code == 200, reply.text
    ada.judge(task)
    (truth,) = lena.get(f"{API}/consensus").json()["truths"]
    assert (truth["k"], truth["order"]) == (2, ["d0", "d1"])
    refused = lena.patch(API, json={"setting": {"k": 1, "strategy": "tournament"}})
    assert refused.status_code == 400
    detail = refused.json()["detail"]
    assert detail.startswith("k of the project 'books' cannot change any more: there are ")
    same = lena.patch(API, json={"setting": {"k": 2}, "options": {"ties": True}})
    assert same.status_code == 200, "nothing that questions depend on has changed"


@pytest.mark.parametrize(
    "changes",
    [
        {"tool": "grades"},
        {"options": {"tools": ["grades"]}},
        {"options": {"tools": ["pairs", "grades"]}},
    ],
)
def test_the_tools_of_an_open_project_cannot_change(site: Site, changes: dict[str, Any]) -> None:
    site.project(queries=1)
    lena = site.client("lena")
    refused = lena.patch(API, json=changes)
    assert refused.status_code == 400
    assert "cannot change once it was opened" in refused.json()["detail"]
    assert lena.get(API).json()["options"]["tools"] is None
    assert lena.patch(API, json={"options": {"tools": ["pairs"]}}).status_code == 200, "the same"


def test_the_tool_is_the_first_of_the_tools(site: Site) -> None:
    site.project(queries=1, opened=False)
    lena = site.client("lena")
    body = {"slug": "shop", "tool": "pairs", "options": {"tools": ["grades", "pairs"]}}
    for refused in (
        lena.post("/api/v1/projects", json=body),
        lena.patch(API, json={"options": {"tools": ["grades", "pairs"]}}),
    ):
        assert refused.status_code == 400
        assert "must be the first of its tools; got 'pairs'" in refused.json()["detail"]
    both = {"tool": "grades", "options": {"tools": ["grades", "pairs"]}}
    assert lena.patch(API, json=both).status_code == 200
    assert lena.patch(API, json={"tool": "pairs"}).status_code == 400


def test_the_source_of_documents_is_stored(db_site: Site) -> None:
    source = {"index": {"path": "/data/shop.index", "fingerprint": "0123"}}
    with db_site.store.write() as tx:
        project = projects.create(tx, "shop", source=source)
        assert project.source == source
        assert projects.create(tx, "other").source is None

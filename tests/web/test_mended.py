"""What an attacker found, each with the case that failed."""

from __future__ import annotations

from typing import Any

import pytest

from firstpage.errors import DataError
from firstpage.web.app import ready_for_one
from firstpage.web.store import assigning, people, projects, tasks, texts
from firstpage.web.store.texts import Document, Query
from tests.web.site import Site, query

API = "/api/v1/projects/books"


@pytest.mark.slow
def test_alone_one_can_judge_what_was_set_up_before(site: Site) -> None:
    """`label setup`, then `label serve --open`: the work is there."""
    with site.store.write() as tx:
        made = projects.create(tx, "shop", setting={"k": 2, "strategy": "heap"})
        texts.add_query(tx, made.id, query(0, 4), 0)
    ready_for_one(site.store)
    ready_for_one(site.store)  # the second start changes nothing
    you = site.client("local")
    work = you.get("/api/v1/projects/shop/work").json()
    assert len(work["tasks"]) == 1
    assert you.judge(work["next"])["done"]
    truth = you.get("/api/v1/projects/shop/consensus").json()["truths"][0]
    assert truth["order"] == ["d0", "d1"]


@pytest.mark.slow
def test_who_left_judges_no_more(site: Site) -> None:
    site.project()
    ada, task = site.client("ada"), site.task("books", "ada")
    state = ada.answer(ada.state(task)).json()
    site.client("lena").delete(f"{API}/people/{site.person('ada').id}")
    assert ada.answer(state).status_code == 404
    assert ada.get(f"/api/v1/tasks/{task}").status_code == 404
    assert ada.post(f"/api/v1/tasks/{task}/skip", json={"reason": "x"}).status_code == 404


@pytest.mark.slow
def test_finished_work_is_not_handed_back(site: Site) -> None:
    site.project(queries=1)
    ada, task = site.client("ada"), site.task("books", "ada")
    ada.judge(task)
    assert ada.post(f"/api/v1/tasks/{task}/skip", json={"reason": "x"}).status_code == 409
    assert len(site.client("lena").get(f"{API}/consensus").json()["truths"]) == 1


def test_a_query_of_one_document_is_done_at_once(site: Site) -> None:
    made, lena = site.project(queries=1), site.person("lena")
    with site.store.write() as tx:
        texts.add_query(tx, made.id, Query("one", "one", documents=(Document("only"),)), 1)
        assigning.deal(tx, made, lena)
        ada = people.by_login(tx, "ada")
        assert ada is not None
        states = {t.query_key: t.state for t in tasks.of_person(tx, made, ada.id)}
    assert states["one"] == "done"
    truths = site.client("lena").get(f"{API}/consensus").json()["truths"]
    assert [t["order"] for t in truths if t["query"] == "one"] == [["only"]]


def test_a_strategy_fits_its_tool(site: Site) -> None:
    with site.store.write() as tx, pytest.raises(DataError, match="take the tool 'grades'"):
        projects.create(tx, "shop", setting={"strategy": "five-grade"})
    site.project()
    task = site.task("books", "ada")
    switch = {"strategy": "five-grade"}
    reply = site.client("lena").post(f"/api/v1/tasks/{task}/switch", json=switch)
    assert reply.status_code == 400
    site.project("graded", tool="grades", setting={"k": 2, "strategy": "five-grade"})


def test_logins_are_one_whatever_their_capitals(both: Site) -> None:
    with both.store.write() as tx:
        eva = people.create(tx, "Éva")
        assert people.by_login(tx, "ÉVA") == people.by_login(tx, "E\u0301va") == eva
        with pytest.raises(DataError, match="taken"):
            people.create(tx, "éva")


@pytest.mark.parametrize("setting", [{"strategy": ["x"]}, {"strategy": 5}, {"strategy": None}])
def test_a_strategy_is_a_text(site: Site, setting: dict[str, Any]) -> None:
    site.person("lena", admin=True)
    reply = site.client("lena").post("/api/v1/projects", json={"slug": "x", "setting": setting})
    assert reply.status_code in (400, 422)
    options = {"slug": "y", "options": {"tools": ["pairs", []]}}
    assert site.client("lena").post("/api/v1/projects", json=options).status_code in (400, 422)


def test_the_only_lead_stays(site: Site) -> None:
    site.project()
    lena = site.person("lena").id
    assert site.client("lena").delete(f"{API}/people/{lena}").status_code == 400


@pytest.mark.parametrize(
    ("outcome", "bad", "fine"),
    [
        (0, [], False), (1, ["left"], False), (-1, ["left"], True), (1, ["right"], True),
        (0, ["left", "right"], True), (1, ["left", "right"], False),
    ],
)  # fmt: skip
def test_answers_fit_the_buttons(site: Site, outcome: int, bad: list[str], fine: bool) -> None:
    """No ties where there is no button for them; a bad document does not win."""
    site.project(options={"ties": False})
    ada = site.client("ada")
    state = ada.state(site.task("books", "ada"))
    keys = [state["question"][side]["key"] for side in bad]
    assert ada.answer(state, outcome, bad=keys).status_code == (200 if fine else 400)


@pytest.mark.slow
def test_labels_after_a_switch_to_a_smaller_k(site: Site) -> None:
    site.project(queries=1)
    task = site.task("books", "ada")
    site.client("lena").post(f"/api/v1/tasks/{task}/switch", json={"k": 2})
    site.client("ada").judge(task)
    truth = site.client("lena").get(f"{API}/consensus").json()["truths"][0]
    assert truth["k"] == 2
    assert sorted(truth["labels"].values(), reverse=True)[:3] == [2, 1, 0]


@pytest.mark.slow
def test_ties_are_told_with_the_truth(site: Site) -> None:
    site.project(
        queries=1, documents=4, assessors=("ada", "bob"), options={"ties": True},
        setting={"k": 3, "strategy": "adaptive(budget=12)"},
    )  # fmt: skip
    for login in ("ada", "bob"):
        site.client(login).judge(site.task("books", login), lambda left, right: 0)
    truth = site.client("lena").get(f"{API}/consensus").json()["truths"][0]
    assert len(truth["tied"][0]) >= 2


@pytest.mark.slow
def test_time_that_nobody_measured_does_not_count(site: Site) -> None:
    site.project(queries=1)
    ada, task = site.client("ada"), site.task("books", "ada")
    state = ada.answer(ada.state(task), spans=[{"kind": "active", "ms": 2000}]).json()
    ada.answer(state)
    effort = site.client("lena").get(f"{API}/effort").json()["tool"]["pairs"]
    assert effort["judgments"] == 2
    assert effort["seconds_per_judgment"]["mean"] == 2

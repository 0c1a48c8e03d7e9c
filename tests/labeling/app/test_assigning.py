"""Assignment: late joiners, departures, returned queries, expected effort."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

from firstpage.labeling.app.store import people, projects, tasks
from firstpage.labeling.app.store.tasks import TaskRow
from firstpage.labeling.session.events import DEFAULT_STRATEGY
from tests.labeling.app.site import Site, jsonl
from tests.narrow import present

API = "/api/v1/projects/study"


def study(site: Site, assessors: int = 4, queries: int = 8, **options: Any) -> Any:
    """Create a draft with queries and people, and nothing assigned."""
    lena = site.client("lena")
    site.person("lena")
    with site.store.write() as tx:
        project = projects.create(
            tx, "study", setting={"k": 3}, options=options, by=people.by_login(tx, "lena")
        )
        for number in range(assessors):
            projects.join(tx, project, people.ensure(tx, f"a{number}"), "assessor")
    rows = [
        {"query": f"q{q}", "document": f"d{d}", "text": "x"}
        for q in range(queries)
        for d in range(6)
    ]
    files = {"documents": ("d.jsonl", jsonl(*rows))}
    assert lena.post(f"{API}/import", files=files).status_code == 200
    return lena


def loads(site: Site) -> Counter[int]:
    with site.store.read() as tx:
        project = present(projects.by_slug(tx, "study"))
        return Counter(t.person for t in tasks.of_project(tx, project.id))


def test_a_preview_changes_nothing(db_site: Site) -> None:
    lena = study(db_site, replicates=2)
    plan = lena.get(f"{API}/assignment").json()
    assert plan["problems"] == []
    assert len(plan["tasks"]) == 16
    assert plan["effort"]["judgments"] > 16 * 5
    assert plan["effort"]["hours"] > 0
    assert {row["tasks"] for row in plan["workloads"]} == {4}
    assert loads(db_site) == {}
    assert lena.post(f"{API}/assignment").json()["tasks"] == plan["tasks"]
    assert set(loads(db_site).values()) == {4}


def test_a_study_with_both_tools(site: Site) -> None:
    lena = study(site, tools=["pairs", "grades"])
    lena.post(f"{API}/assignment")
    with site.store.read() as tx:
        rows = tasks.of_project(tx, present(projects.by_slug(tx, "study")).id)
    assert {(t.tool, t.setting.strategy) for t in rows} == {
        ("pairs", DEFAULT_STRATEGY),
        ("grades", "five-grade"),
    }
    assert len({(t.query, t.person) for t in rows}) == len(rows) == 16, (
        "no assessor judges a query twice"
    )


def test_assigning_again_keeps_started_tasks(db_site: Site) -> None:
    lena = study(db_site)
    lena.post(f"{API}/assignment")
    lena.post(f"{API}/open")
    task = db_site.task("study", "a0")
    a0 = db_site.client("a0")
    a0.answer(a0.state(task))
    with db_site.store.write() as tx:
        projects.join(
            tx, present(projects.by_slug(tx, "study")), people.ensure(tx, "late"), "assessor"
        )
    lena.post(f"{API}/assignment")
    workloads = loads(db_site)
    assert len(workloads) == 5, "the late assessor has tasks"
    assert max(workloads.values()) - min(workloads.values()) <= 1
    assert sum(workloads.values()) == 8
    assert a0.state(task)["seq"] == 1


def test_open_tasks_of_a_departed_assessor_are_reassigned(db_site: Site) -> None:
    lena = study(db_site)
    lena.post(f"{API}/assignment")
    lena.post(f"{API}/open")
    begun, a0 = db_site.task("study", "a0"), db_site.client("a0")
    a0.answer(a0.state(begun))
    number = db_site.person("a0").id
    assert lena.delete(f"{API}/people/{number}").status_code == 204
    workloads = loads(db_site)
    assert workloads[number] == 1, "judged tasks stay"
    assert sum(workloads.values()) == 9, "started tasks are assigned again"
    query = task_row(db_site, begun).query
    assert len([t for t in rows(db_site) if t.query == query]) == 2
    assert len(lena.get(f"{API}/export/log.jsonl").text.splitlines()) == 1
    plan = lena.get(f"{API}/assignment").json()["current"]
    assert plan["problems"] == []
    assert [t["assessor"] for t in plan["abandoned"]] == [str(number)]
    workloads = lena.get(f"{API}/progress").json()
    assert (workloads["all"]["tasks"], workloads["all"]["abandoned"]) == (8, 1)


def rows(site: Site) -> list[TaskRow]:
    with site.store.read() as tx:
        return tasks.of_project(tx, present(projects.by_slug(tx, "study")).id)


def task_row(site: Site, number: int) -> TaskRow:
    return next(t for t in rows(site) if t.id == number)


def test_queries_without_an_eligible_assessor_are_reported_as_uncovered(site: Site) -> None:
    """With two assessors per query of two, every query lacks one when one of them leaves."""
    lena = study(site, assessors=2, queries=2, replicates=2)
    lena.post(f"{API}/assignment")
    lena.post(f"{API}/open")
    begun, a0 = site.task("study", "a0"), site.client("a0")
    a0.answer(a0.state(begun))
    lena.delete(f"{API}/people/{site.person('a0').id}")
    page = lena.get("/p/study/setup/assignment").text
    assert "Every query is covered" not in page
    assert "query q0 has 1 of 2 assessors under pairs" in page
    assert "started by people who have left" in page
    assert "query q0 has 1 of 2 assessors under pairs" in lena.get("/p/study/dashboard").text
    join(site, "late")
    assert lena.get(f"{API}/assignment").json()["current"]["problems"] != []
    lena.post(f"{API}/assignment")
    assert lena.get(f"{API}/assignment").json()["current"]["problems"] == []
    assert "Every query is covered" in lena.get("/p/study/setup/assignment").text


def join(site: Site, login: str) -> None:
    with site.store.write() as tx:
        projects.join(
            tx, present(projects.by_slug(tx, "study")), people.ensure(tx, login), "assessor"
        )


def test_a_returned_query_without_another_assessor_is_uncovered(site: Site) -> None:
    lena = study(site, assessors=1, queries=2)
    lena.post(f"{API}/assignment")
    lena.post(f"{API}/open")
    task, a0 = site.task("study", "a0"), site.client("a0")
    assert a0.post(f"/api/v1/tasks/{task}/skip", json={"reason": "no"}).status_code == 200
    assert len(lena.get(f"{API}/progress").json()["problems"]) == 1
    join(site, "late")
    lena.post(f"{API}/assignment")
    assert lena.get(f"{API}/progress").json()["problems"] == []
    assert sorted(t.state for t in rows(site)) == ["open", "open", "skipped"]


def test_new_assessors_without_tasks_are_reported_and_assigned(site: Site) -> None:
    lena = study(site, assessors=2)
    lena.post(f"{API}/assignment")
    lena.post(f"{API}/open")
    a0 = site.client("a0")
    a0.answer(a0.state(site.task("study", "a0")))
    join(site, "late")
    assert lena.get(f"{API}/progress").json()["idle"] == ["late"]
    assert "No queries are assigned to late yet" in lena.get("/p/study/dashboard").text
    page = lena.get("/p/study/setup/assignment").text
    assert "No queries are assigned to late." in page
    assert re.search(r"late</th><td class=.num.>0</td>", page), (
        "the current assignment, not the planned one"
    )
    assert re.search(r"late: 0 → [23]", page), "the changes of a new assignment"
    lena.post(f"{API}/assignment")
    assert lena.get(f"{API}/progress").json()["idle"] == []
    assert "Nothing would change" in lena.get("/p/study/setup/assignment").text


def primary(site: Site) -> list[str]:
    """Return the texts of the primary buttons and links of the page."""
    page = site.client("lena").get("/p/study/setup/assignment").text
    return re.findall(r'class="(?:button )?main"[^>]*>([^<]*)<', page)


def test_the_primary_action_is_what_a_lead_does_next(site: Site) -> None:
    """Assigning again is primary only if a query or an assessor lacks something."""
    lena = study(site, assessors=2, queries=4)
    assert primary(site) == ["Assign and open the project"]
    lena.post(f"{API}/assignment")
    lena.post(f"{API}/open")
    assert primary(site) == ["Watch the progress"]
    options = {"options": {"replicates": 2}}
    assert lena.patch(API, json=options).status_code == 200
    assert primary(site) == ["Assign again"]
    lena.post(f"{API}/assignment")
    assert lena.patch(API, json={"options": {"replicates": 1}}).status_code == 200
    page = lena.get("/p/study/setup/assignment").text
    assert "You need not assign again" in page
    assert "<button>Assign again</button>" in page
    assert primary(site) == ["Watch the progress"]


def test_later_queries_are_assigned(site: Site) -> None:
    lena = study(site, assessors=2)
    lena.post(f"{API}/assignment")
    lena.post(f"{API}/open")
    a0 = site.client("a0")
    a0.answer(a0.state(site.task("study", "a0")))
    new_rows = [{"query": "new", "document": f"d{d}", "text": "x"} for d in range(3)]
    lena.post(f"{API}/import", files={"documents": ("d.jsonl", jsonl(*new_rows))})
    assert len(lena.get(f"{API}/progress").json()["problems"]) == 1
    lena.post(f"{API}/assignment")
    assert [t.query_key for t in rows(site)].count("new") == 1


def test_a_returning_assessor_keeps_started_tasks(site: Site) -> None:
    lena = study(site)
    lena.post(f"{API}/assignment")
    lena.post(f"{API}/open")
    begun, a0 = site.task("study", "a0"), site.client("a0")
    a0.answer(a0.state(begun))
    lena.delete(f"{API}/people/{site.person('a0').id}")
    assert a0.get(f"/api/v1/tasks/{begun}").status_code == 404
    join(site, "a0")
    assert a0.state(begun)["seq"] == 1
    assert lena.get(f"{API}/progress").json()["all"]["abandoned"] == 0


@pytest.mark.parametrize("choice", ["anonymize", "remove"])
def test_tasks_of_a_deleted_person_are_reassigned(site: Site, choice: str) -> None:
    lena = study(site)
    lena.post(f"{API}/assignment")
    lena.post(f"{API}/open")
    begun, a0 = site.task("study", "a0"), site.client("a0")
    a0.answer(a0.state(begun))
    path = f"/api/v1/people/{site.person('a0').id}/data"
    assert lena.request("DELETE", path, json={"judgments": choice}).status_code == 200
    assert lena.get(f"{API}/progress").json()["problems"] == []
    assert lena.get(f"{API}/progress").json()["all"]["tasks"] == 8


def test_removal_is_confirmed_and_reports_reassigned_queries(site: Site) -> None:
    lena = study(site)
    lena.post(f"{API}/assignment")
    lena.post(f"{API}/open")
    a0, number = site.client("a0"), site.person("a0").id
    a0.answer(a0.state(site.task("study", "a0")))
    page = " ".join(lena.get(f"/p/study/people/{number}").text.split())
    assert 'data-confirm="leave"' in page
    assert "1 query not started and 1 query started (1 judgments, which stay in the log)" in page
    lena.delete(f"{API}/people/{number}")
    page = lena.get(f"/p/study/people/{number}").text
    assert "has left" in page
    assert "/remove" not in page


def test_problems_name_people(site: Site) -> None:
    lena = study(site, assessors=5, queries=5, tools=["pairs", "grades"])
    lena.post(f"{API}/assignment")
    lena.post(f"{API}/open")
    a0 = site.client("a0")
    a0.answer(a0.state(site.task("study", "a0")))
    for name in ("late", "later"):
        join(site, name)
    lines = lena.get(f"{API}/progress").json()["problems"]
    assert "assessor late never uses pairs" in lines


def test_impossible_assignments_are_reported(site: Site) -> None:
    lena = study(site, assessors=1, replicates=3)
    reply = lena.get(f"{API}/assignment")
    assert reply.status_code == 400
    assert "at least 3 assessors" in reply.json()["detail"]


def test_finished_queries_cannot_be_returned(site: Site) -> None:
    site.project(queries=1)
    ada, task = site.client("ada"), site.task("books", "ada")
    ada.judge(task)
    assert ada.post(f"/api/v1/tasks/{task}/skip", json={"reason": "x"}).status_code == 409
    assert len(site.client("lena").get("/api/v1/projects/books/consensus").json()["truths"]) == 1

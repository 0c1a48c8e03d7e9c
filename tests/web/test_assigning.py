"""Dealing out, late joiners, leavers, what it costs."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from firstpage.labeling.events import DEFAULT_STRATEGY
from firstpage.web.store import people, projects, tasks
from tests.web.site import Site, jsonl

API = "/api/v1/projects/study"


def study(site: Site, assessors: int = 4, queries: int = 8, **options: Any) -> Any:
    """A draft with texts and people, and nothing dealt out."""
    lena = site.client("lena")
    site.person("lena")
    with site.store.write() as tx:
        made = projects.create(
            tx, "study", setting={"k": 3}, options=options, by=people.by_login(tx, "lena")
        )
        for number in range(assessors):
            projects.join(tx, made, people.ensure(tx, f"a{number}"), "assessor")
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
        project = projects.by_slug(tx, "study")
        return Counter(t.person for t in tasks.of_project(tx, project.id))


@pytest.mark.slow
def test_a_preview_changes_nothing(both: Site) -> None:
    lena = study(both, replicates=2)
    plan = lena.get(f"{API}/assignment").json()
    assert plan["problems"] == []
    assert len(plan["tasks"]) == 16
    assert plan["effort"]["judgments"] > 16 * 5
    assert plan["effort"]["hours"] > 0
    assert {row["tasks"] for row in plan["loads"]} == {4}
    assert loads(both) == {}
    assert lena.post(f"{API}/assignment").json()["tasks"] == plan["tasks"]
    assert set(loads(both).values()) == {4}


def test_a_study_with_both_tools(site: Site) -> None:
    lena = study(site, tools=["pairs", "grades"])
    lena.post(f"{API}/assignment")
    with site.store.read() as tx:
        found = tasks.of_project(tx, projects.by_slug(tx, "study").id)
    assert {(t.tool, t.setting.strategy) for t in found} == {
        ("pairs", DEFAULT_STRATEGY), ("grades", "five-grade"),
    }  # fmt: skip
    assert len({(t.query, t.person) for t in found}) == len(found) == 16, "nobody a query twice"


@pytest.mark.slow
def test_dealing_again_keeps_what_was_begun(both: Site) -> None:
    lena = study(both)
    lena.post(f"{API}/assignment")
    lena.post(f"{API}/open")
    task = both.task("study", "a0")
    a0 = both.client("a0")
    a0.answer(a0.state(task))
    with both.store.write() as tx:
        projects.join(tx, projects.by_slug(tx, "study"), people.ensure(tx, "late"), "assessor")
    lena.post(f"{API}/assignment")
    found = loads(both)
    assert len(found) == 5, "the late one has work"
    assert max(found.values()) - min(found.values()) <= 1
    assert sum(found.values()) == 8
    assert a0.state(task)["seq"] == 1


@pytest.mark.slow
def test_who_leaves_passes_open_work_on(both: Site) -> None:
    lena = study(both)
    lena.post(f"{API}/assignment")
    lena.post(f"{API}/open")
    begun, a0 = both.task("study", "a0"), both.client("a0")
    a0.answer(a0.state(begun))
    number = both.person("a0").id
    assert lena.delete(f"{API}/people/{number}").status_code == 204
    found = loads(both)
    assert found[number] == 1, "what was begun stays"
    assert sum(found.values()) == 8, "nothing is lost"


@pytest.mark.slow
def test_what_cannot_be_dealt_out_is_told(site: Site) -> None:
    lena = study(site, assessors=1, replicates=3)
    reply = lena.get(f"{API}/assignment")
    assert reply.status_code == 400
    assert "at least 3 assessors" in reply.json()["detail"]

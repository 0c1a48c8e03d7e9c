"""The guided first task: sample texts, answers that are not stored, and once per person."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select

from firstpage.labeling.app import tour
from firstpage.labeling.app.store.tables import metadata
from tests.labeling.app.site import Site, body

API = "/api/v1/projects/books/tour"


def rows(site: Site) -> dict[str, int]:
    with site.store.read() as tx:
        return {
            t.name: tx.value(select(func.count()).select_from(t)) for t in metadata.sorted_tables
        }


@pytest.mark.parametrize("tool", ["pairs", "grades", "lists"])
def test_the_tour_stores_only_that_it_ended(site: Site, tool: str) -> None:
    site.project(tool=tool, setting={"k": 3})
    ada = site.client("ada")
    before = rows(site)
    assert "New here?" in ada.get("/p/books").text
    state = ada.get(API).json()
    assert ada.get("/p/books/tour").status_code == 200
    for number, step in enumerate(tour.STEPS[tool]):
        assert state["seq"] == number
        shown = [d for d in (state["question"]["left"], state["question"]["right"]) if d]
        assert {d["url"] for d in shown} == set(state["documents"])
        best = step.best if tool != "grades" else (4 if step.best > 0 else 0)
        wrong = ada.post(API, json=body(state, -best if tool != "grades" else 4 - best)).json()
        reply = ada.post(API, json=body(state, best)).json()
        assert (wrong["correct"], reply["correct"]) == (False, True)
        assert reply["explanation"] == step.explanation
        state = reply
    assert state["done"]
    assert ada.post(API, json={"seq": 99, "key": "k", "left": "x"}).status_code == 409
    assert rows(site) == {**before, "tours": 1}
    assert "New here?" not in ada.get("/p/books?note=toured").text


def test_the_tour_can_be_skipped_and_is_not_for_the_experienced(site: Site) -> None:
    site.project(assessors=("ada", "ben"))
    ada, ben = site.client("ada"), site.client("ben")
    assert ada.post("/p/books/tour", data={"csrf": "no"}).status_code == 403
    page = ada.post("/p/books/tour", data={"csrf": ada.headers["X-CSRF-Token"]}).text
    assert "New here?" not in page
    ben.answer(ben.state(site.task("books", "ben")))
    assert "New here?" not in ben.get("/p/books").text

"""Judging through the API: what is asked, what is written down, what is refused."""

from __future__ import annotations

from tests.web.site import Site, body


def test_a_whole_query_is_judged(site: Site) -> None:
    site.project()
    task = site.task("books", "ada")
    ada = site.client("ada")
    before = ada.state(task)
    assert before["seq"] == 0
    assert before["question"]["kind"] == "judgment"
    assert before["query"] == {"text": "query 0", "description": "what is wanted"}
    after = ada.judge(task)
    assert after["done"]
    assert after["question"] is None
    assert after["asked"] == after["seq"] > 3
    assert after["left"] == [0, 0]


def test_the_same_key_again_is_recorded_once(site: Site) -> None:
    site.project()
    ada, task = site.client("ada"), site.task("books", "ada")
    sent = body(ada.state(task))
    first = ada.post(f"/api/v1/tasks/{task}/answers", json=sent)
    again = ada.post(f"/api/v1/tasks/{task}/answers", json=sent)
    assert (first.status_code, again.status_code) == (200, 200)
    assert first.json() == again.json()
    assert ada.state(task)["seq"] == 1


def test_another_answer_with_a_used_number_is_too_late(site: Site) -> None:
    site.project()
    ada, task = site.client("ada"), site.task("books", "ada")
    old = ada.state(task)
    assert ada.answer(old).status_code == 200
    late = ada.answer(old)
    assert late.status_code == 409
    assert late.json()["state"]["seq"] == 1
    assert "already" in late.json()["detail"]
    assert ada.state(task)["seq"] == 1


def test_an_answer_to_a_question_that_is_not_open(site: Site) -> None:
    site.project()
    ada, task = site.client("ada"), site.task("books", "ada")
    state = ada.state(task)
    shown = {state["question"][side]["key"] for side in ("left", "right")}
    other = next(f"d{i}" for i in range(6) if f"d{i}" not in shown)
    wrong = ada.post(f"/api/v1/tasks/{task}/answers", json={**body(state), "left": other})
    assert wrong.status_code == 409
    assert ada.state(task)["seq"] == 0

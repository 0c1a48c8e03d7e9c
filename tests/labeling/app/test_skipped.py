"""Skipped questions: an order without answers is not truth."""

from __future__ import annotations

import json
from typing import Any

import pytest

import firstpage as fp
from firstpage.labeling.app.analysis.records import results
from firstpage.labeling.app.analysis.truth import truths
from firstpage.labeling.app.store import projects
from tests.labeling.app.site import Site
from tests.narrow import present

API = "/api/v1/projects/books"
WHY = "not judged: everything was skipped"
STRATEGIES = [
    ("pairs", "heap"), ("pairs", "heap-memo"), ("pairs", "heap-closure"), ("pairs", "adaptive"),
    ("pairs", "tournament"), ("pairs", "insertion"), ("grades", "five-grade"),
]  # fmt: skip


def skip_all(site: Site, login: str = "ada", number: int = 0) -> None:
    client = site.client(login)
    state = client.state(site.task("books", login, number))
    while state["question"] is not None:
        state = client.answer(state, 0, skipped=True).json()


@pytest.mark.parametrize(("tool", "strategy"), STRATEGIES)
def test_a_query_with_only_skipped_questions_has_no_truth(
    site: Site, tool: str, strategy: str
) -> None:
    site.project(tool=tool, documents=4, setting={"k": 3, "strategy": strategy})
    skip_all(site)
    site.client("ada").judge(site.task("books", "ada", 1))
    lena = site.client("lena")
    for name in ("truth.qrels", "truth.letor", "truth.jsonl"):
        reply = lena.get(f"{API}/export/{name}")
        assert "q1" in reply.text
        assert "q0" not in reply.text
        note = reply.headers["x-firstpage-note"]
        assert "1 of 2 queries are left out, since everything was skipped: 'q0'." in note
        assert "judged equal" not in note
    consensus = lena.get(f"{API}/consensus").json()
    assert [t["query"] for t in consensus["truths"]] == ["q1"]
    assert [(q["query"], q["reason"]) for q in consensus["not_judged"]] == [("q0", WHY)]
    assert WHY in lena.get("/p/books/truth").text
    with site.store.read() as tx:
        assert set(results(tx, present(projects.by_slug(tx, "books")))) == {("q1", "ada", tool)}


def test_skips_are_not_judgments_and_are_reported_to_the_lead(db_site: Site) -> None:
    db_site.project(documents=4)
    skip_all(db_site)
    lena = db_site.client("lena")
    progress = lena.get(f"{API}/progress").json()
    assert progress["all"]["judgments"] == 0
    assert progress["all"]["skipped_questions"] > 0
    assert progress["not_judged"] == ["q0"]
    assert "every question was skipped" in progress["problems"][0]
    assert "every question was skipped" in lena.get("/p/books/dashboard").text


def test_a_result_without_answers_is_not_counted(site: Site) -> None:
    """An assessor who skipped everything does not count beside one who answered."""
    site.project(assessors=("ada", "bob"), queries=1, documents=4)
    skip_all(site)
    site.client("bob").judge(site.task("books", "bob"))
    (truth,) = site.client("lena").get(f"{API}/consensus").json()["truths"]
    assert truth["assessors"] == 1
    assert truth["order"] == ["d0", "d1", "d2"]
    assert site.client("lena").get(f"{API}/progress").json()["not_judged"] == []


@pytest.mark.parametrize(("tool", "strategy"), STRATEGIES)
def test_documents_without_an_answer_are_not_ranked(site: Site, tool: str, strategy: str) -> None:
    """One document is skipped in all of its questions."""
    site.project(tool=tool, queries=1, documents=4, setting={"k": 4, "strategy": strategy})
    ada = site.client("ada")
    state = ada.state(site.task("books", "ada"))
    answers = 0
    while (question := state["question"]) is not None:
        left, right = question["left"]["key"], question["right"] and question["right"]["key"]
        skipped = "d0" in (left, right)
        outcome = 4 - int(left[1]) if right is None else (1 if left < right else -1)
        answers += not skipped
        reply = ada.answer(state, 0 if skipped else outcome, skipped=skipped)
        state = reply.json()
    lena = site.client("lena")
    (truth,) = lena.get(f"{API}/consensus").json()["truths"]
    assert truth["unjudged"] == ["d0"]
    assert truth["order"] == ["d1", "d2", "d3"]
    expected = (3, 2, 1) if tool == "grades" else (4, 3, 2)  # grades, or ranks of the top 4
    assert truth["labels"] == {"d0": 0, **dict(zip(("d1", "d2", "d3"), expected, strict=True))}
    assert truth["judgments"] == answers
    assert truth["skipped"] > 0
    assert truth["confidence"] is None or len(truth["confidence"]) == 3
    assert not truth["tied"]
    note = lena.get(f"{API}/export/truth.qrels").headers["x-firstpage-note"]
    assert "In 1 of 1 queries ('q0') 1 documents were only skipped" in note
    assert "questions behind these labels were skipped" in note
    assert "Not judged (only skipped)" in lena.get("/p/books/truth").text
    with site.store.read() as tx:
        labels: dict[str, Any] = results(tx, present(projects.by_slug(tx, "books")))[
            "q0", "ada", tool
        ]
    assert "d0" not in labels


def test_the_outcome_of_a_skipped_question_is_ignored(site: Site) -> None:
    site.project(queries=1, documents=3, setting={"k": 3, "strategy": "heap-closure"})
    ada = site.client("ada")
    state = ada.state(site.task("books", "ada"))
    while state["question"] is not None:
        state = ada.answer(state, 1, skipped=True).json()
    with site.store.read() as tx:
        assert truths(tx, present(projects.by_slug(tx, "books"))) == []


@pytest.mark.parametrize("strategy", ["adaptive", "tournament"])
def test_a_document_outside_of_the_top_k_was_only_skipped(site: Site, strategy: str) -> None:
    site.project(queries=1, documents=5, setting={"k": 2, "strategy": strategy})
    ada = site.client("ada")
    state = ada.state(site.task("books", "ada"))
    while (question := state["question"]) is not None:
        left, right = question["left"]["key"], question["right"]["key"]
        skipped = "d4" in (left, right)
        outcome = 0 if skipped else 1 if left < right else -1
        state = ada.answer(state, outcome, skipped=skipped).json()
    lena = site.client("lena")
    for page in ("agreement", "report", "truth", "adjudicate"):
        assert lena.get(f"/p/books/{page}").status_code == 200
    assert lena.get(f"{API}/disputes").status_code == 200
    with site.store.read() as tx:
        labels = results(tx, present(projects.by_slug(tx, "books")))["q0", "ada", "pairs"]
    assert labels == {"d0": 2, "d1": 1, "d2": 0, "d3": 0}


def test_notes_are_valid_header_values(site: Site) -> None:
    site.project(queries=0)
    lena = site.client("lena")
    rows = [{"query": "Bücher 本", "document": d, "text": d} for d in "ab"]
    files = {"documents": ("d.jsonl", "\n".join(map(json.dumps, rows)).encode())}
    assert lena.post(f"{API}/import", files=files).status_code == 200
    assert lena.post(f"{API}/assignment", json={}).status_code in (200, 201)
    skip_all(site)
    reply = lena.get(f"{API}/export/truth.qrels")
    assert reply.status_code == 200
    assert "everything was skipped" in reply.headers["x-firstpage-note"]


def test_pairs_have_the_answers_of_all_assessors_without_skipped_ones(site: Site, tmp_path) -> None:
    site.project(assessors=("ada", "bob"), queries=1, documents=4)
    lena = site.client("lena")
    assert lena.get(f"{API}/export/pairs.csv").text == ""
    skip_all(site)
    site.client("bob").judge(site.task("books", "bob"))
    reply = lena.get(f"{API}/export/pairs.csv")
    assert "skipped comparisons are left out." in reply.headers["x-firstpage-note"]
    (tmp_path / "votes.csv").write_text(reply.text)
    votes = fp.read_pairs(tmp_path / "votes.csv")
    assert set(votes.voter or ()) == {"bob"}
    assert len(votes) == lena.get(f"{API}/progress").json()["all"]["judgments"]
    order = [int(name[1:]) for name in votes.docids]
    assert all(order[a] < order[b] for a, b in zip(votes.preferred, votes.other, strict=True))


def test_pairs_need_the_tool_of_pairs(site: Site) -> None:
    site.project(tool="grades", documents=4, setting={"k": 3, "strategy": "five-grade"})
    reply = site.client("lena").get(f"{API}/export/pairs.csv")
    assert reply.status_code >= 400
    assert "no judgments of pairs of documents" in reply.text

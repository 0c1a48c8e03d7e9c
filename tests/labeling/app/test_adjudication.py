"""Answers of all assessors, disputes and verdicts."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from firstpage.labeling.app.analysis import adjudication, truth
from firstpage.labeling.app.store import deletion
from firstpage.labeling.app.store import projects as store_projects
from firstpage.labeling.statistics.adjudication import contributions, top_k_change
from tests.labeling.app.pages.test_pages import token
from tests.labeling.app.site import Client, Site

API = "/api/v1/projects/books"
HOSTILE = "<script>alert(1)</script>"


def swapped(left: str, right: str) -> int:
    """Judge in the order of the names, with d0 and d1 swapped."""
    names = {"d0": "d1", "d1": "d0"}
    return 1 if names.get(left, left) < names.get(right, right) else -1


def disputed(site: Site, **options: Any) -> Client:
    """Create a query whose two assessors disagree about d0 and d1; return the lead's client."""
    site.project(assessors=("ada", "bo"), queries=1, documents=5, **options)
    site.client("ada").judge(site.task("books", "ada"))
    site.client("bo").judge(site.task("books", "bo"), swapped)
    return site.client("lena")


def verdict(**fields: Any) -> dict[str, Any]:
    return {
        "key": uuid4().hex, "query": "q0", "left": "d1", "right": "d0", "outcome": 1,
        "reason": "d1 answers the question itself", **fields,
    }  # fmt: skip


def order(lena: Client, **options: Any) -> list[str]:
    (found,) = lena.get(f"{API}/consensus", params=options).json()["truths"]
    keys: list[str] = found["order"]
    return keys


def test_a_verdict_changes_the_truth_until_it_is_withdrawn(db_site: Site) -> None:
    lena = disputed(db_site)
    before = order(lena)
    queue = lena.get(f"{API}/disputes").json()
    first = queue["disputes"][0]
    assert {first["left"]["key"], first["right"]["key"]} == {"d0", "d1"}, "kappa is not the order"
    assert first["value"] == max(d["value"] for d in queue["disputes"])
    assert {o["name"]: o["outcome"] for o in first["opinions"]} in (
        {"Ada": 1, "Bo": -1},
        {"Ada": -1, "Bo": 1},
    )
    for winner, loser in (("d1", "d0"), ("d0", "d1")):
        body = verdict(left=winner, right=loser)
        assert lena.post(f"{API}/verdicts", json=body).status_code == 204
        assert lena.post(f"{API}/verdicts", json=body).status_code == 204, "sent twice"
        assert order(lena)[:2] == [winner, loser], "the last verdict on a pair counts"
    settled = lena.get(f"{API}/disputes").json()
    assert [v["index"] for v in settled["settled"]] in ([1, 0], [0, 1])
    assert all(
        {d["left"]["key"], d["right"] and d["right"]["key"]} != {"d0", "d1"}
        for d in settled["disputes"]
    )
    for index in (1, 0):
        body = {"key": uuid4().hex, "query": "q0", "index": index}
        assert lena.post(f"{API}/verdicts/withdraw", json=body).status_code == 204
        assert lena.post(f"{API}/verdicts/withdraw", json=body).status_code == 204, "sent twice"
    assert order(lena) == before
    rows = [row for row in _log(lena) if row["event"] in ("adjudicated", "withdrawn")]
    assert [row["event"] for row in rows] == ["adjudicated"] * 2 + ["withdrawn"] * 2
    assert rows[0]["comment"] == "d1 answers the question itself"
    assert (rows[0]["recorded_by"], rows[0]["query"], rows[2]["judgment_index"]) == (
        "lena",
        "q0",
        1,
    )


def _log(lena: Client) -> list[dict[str, Any]]:
    import json

    text = lena.get(f"{API}/export/log.jsonl").text
    return [json.loads(line) for line in text.splitlines()]


def test_the_value_is_the_expected_change_of_the_exported_truth(site: Site) -> None:
    """Settle the first dispute both ways, and compare the truths that follow with its value."""
    lena = disputed(site)
    first = lena.get(f"{API}/disputes").json()["disputes"][0]
    before, changes = order(lena), []
    for outcome in (1, -1):
        body = verdict(left=first["left"]["key"], right=first["right"]["key"], outcome=outcome)
        lena.post(f"{API}/verdicts", json=body)
        tops = [contributions([int(key[1]) for key in keys], 5) for keys in (before, order(lena))]
        changes.append(top_k_change(*tops))
        lena.post(f"{API}/verdicts/withdraw", json={"key": uuid4().hex, "query": "q0", "index": 0})
    expected = first["probability"] * changes[0] + (1 - first["probability"]) * changes[1]
    assert first["value"] == pytest.approx(expected, abs=0.05)


def test_verdicts_weigh_as_the_project_says(site: Site) -> None:
    lena = disputed(site, options={"verdict_weight": 0})
    before = order(lena)
    assert lena.post(f"{API}/verdicts", json=verdict()).status_code == 204
    assert order(lena) == before, "weight 0 records it only"
    assert lena.patch(API, json={"options": {"verdict_weight": 20}}).status_code == 200
    assert order(lena)[:2] == ["d1", "d0"]
    votes = lena.get(f"{API}/export/pairs.csv").text.splitlines()
    assert votes[-1] == "q0,d1,d0,left,20,verdict"
    note = lena.get(f"{API}/export/truth.qrels").headers["x-firstpage-note"]
    assert "1 verdict of leads count as 20 answers each." in note
    refused = lena.patch(API, json={"options": {"verdict_weight": -1}})
    assert "must be a number from 0 to 1000" in refused.json()["detail"]


def test_a_verdict_alone_corrects_a_single_assessor(site: Site) -> None:
    site.project(queries=1, documents=4, options={"bad": True})
    site.client("ada").judge(site.task("books", "ada"))
    lena = site.client("lena")
    assert order(lena) == ["d0", "d1", "d2"]
    body = verdict(left="d0", right=None, outcome=0, bad=["d0"], reason="spam")
    assert lena.post(f"{API}/verdicts", json=body).status_code == 204
    (found,) = lena.get(f"{API}/consensus").json()["truths"]
    assert (found["order"], found["bad"], found["verdicts"]) == (["d1", "d2", "d3"], ["d0"], 1)


def test_grades_are_settled_document_by_document(site: Site) -> None:
    site.project(assessors=("ada", "bo"), queries=1, documents=4, tool="grades")
    site.client("ada").judge(site.task("books", "ada"))
    site.client("bo").judge(site.task("books", "bo"), lambda left, _: {"d3": 4}.get(left, 2))
    lena = site.client("lena")
    queue = lena.get(f"{API}/disputes").json()["disputes"]
    assert queue[0]["left"]["key"] == "d3", "graded 1 and 4"
    assert [o["grade"] for o in queue[0]["opinions"]] == [1, 4]
    body = verdict(left="d3", right=None, outcome=4)
    assert lena.post(f"{API}/verdicts", json=body).status_code == 204
    (found,) = lena.get(f"{API}/consensus").json()["truths"]
    assert (found["labels"]["d3"], found["order"][0]) == (4, "d3")


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"query": "q9"}, "has no query 'q9'"),
        ({"left": "d9"}, "has no document 'd9'"),
        ({"right": "d1"}, "two different documents"),
        ({"outcome": 2}, "must be from -1 to 1"),
        ({"tool": "grades"}, "has no tool 'grades'"),
        ({"bad": ["d4"]}, "only a document of the verdict"),
        ({"reason": "  "}, "needs a reason"),
        ({"bad": ["d1"]}, "the other one must be the better one"),
        ({"bad": ["d0", "d1"]}, "both documents are marked bad, the outcome must be 0"),
        ({"right": None, "bad": ["d1"]}, "is marked bad, the outcome must be 0"),
    ],
)
def test_impossible_verdicts_are_refused(site: Site, fields: dict[str, Any], problem: str) -> None:
    site.project(queries=1, documents=5)
    reply = site.client("lena").post(f"{API}/verdicts", json=verdict(**fields))
    assert reply.status_code == 400
    assert problem in reply.json()["detail"]


@pytest.mark.parametrize(
    ("project", "fields", "problem"),
    [
        ({"tool": "grades"}, {"right": None, "outcome": 4, "bad": ["d1"]}, "choose the lowest grade"),
        ({"tool": "lists"}, {"outcome": -1, "bad": ["d1"]}, "bad with the tool 'lists'"),
        ({"options": {"bad": False}}, {"outcome": -1, "bad": ["d1"]}, "bad in this project"),
    ],
)  # fmt: skip
def test_verdicts_mark_documents_bad_as_the_page_offers(
    site: Site, project: dict[str, Any], fields: dict[str, Any], problem: str
) -> None:
    site.project(queries=1, **project)
    lena = site.client("lena")
    reply = lena.post(f"{API}/verdicts", json=verdict(**fields))
    assert reply.status_code == 400
    assert problem in reply.json()["detail"]
    assert lena.post(f"{API}/verdicts", json=verdict(**{**fields, "bad": []})).status_code == 204


def test_answers_are_filtered(site: Site) -> None:
    lena = disputed(site)

    def found(**wanted: Any) -> list[dict[str, Any]]:
        reply = lena.get(f"{API}/answers", params=wanted)
        assert reply.status_code == 200, reply.text
        rows: list[dict[str, Any]] = reply.json()["answers"]
        return rows

    everything = found()
    assert {row["name"] for row in everything} == {"Ada", "Bo"}
    assert all(row["assessor"] == "bo" for row in found(assessor="bo"))
    assert found(query="QUERY 0") == everything, "a part of the text, in any case"
    assert not found(query="other")
    about = [
        row for row in everything if "Title 4" in (row["left"]["title"], row["right"]["title"])
    ]
    assert found(document="title 4") == about
    disputes = found(disagreement=True)
    assert disputes
    for row in disputes:
        assert {row["left"]["key"], row["right"]["key"]} == {"d0", "d1"}
    improbable = found(unexpected=True, order="least probable")
    assert all(row["probability"] < 0.5 for row in improbable)
    assert lena.get(f"{API}/answers", params={"speed": "quick"}).status_code == 422


def test_fast_answers_are_those_far_below_the_persons_median(site: Site) -> None:
    site.project(queries=1, documents=5)
    ada, task = site.client("ada"), site.task("books", "ada")
    for ms in (8000, 9000, 500, 10_000, 90_000):
        span = {"kind": "active", "ms": ms}
        assert ada.answer(ada.state(task), spans=[span]).status_code == 200
    lena = site.client("lena")
    times = {
        speed: [
            row["seconds"]
            for row in lena.get(f"{API}/answers", params={"speed": speed}).json()["answers"]
        ]
        for speed in ("fast", "slow")
    }
    assert times == {"fast": [0.5], "slow": [90.0]}


def test_an_answer_is_shown_as_its_assessor_saw_it(site: Site) -> None:
    lena = disputed(site)
    row = lena.get(f"{API}/answers", params={"assessor": "bo"}).json()["answers"][-1]
    path = f"/p/books/answers/{row['task']}/{row['seq']}"
    page = lena.get(path)
    assert page.status_code == 200
    sides = [page.text.index(f'src="/documents/{row[side]["id"]}"') for side in ("left", "right")]
    assert sides == sorted(sides)
    assert lena.get(f"/p/books/answers/{row['task']}/999").status_code == 404
    assert site.client("bo").get(path).status_code == 403, "for leads only"
    assert site.client("eve").get(path).status_code == 404


def test_hostile_texts_of_people_are_escaped(site: Site) -> None:
    site.project(assessors=("ada", "bo"), queries=1, documents=4)
    with site.store.write() as tx:
        from sqlalchemy import update

        from firstpage.labeling.app.store.tables import people

        tx.run(update(people).where(people.c.login == "ada").values(name=HOSTILE))
    ada, bo, lena = (site.client(name) for name in ("ada", "bo", "lena"))
    task = site.task("books", "ada")
    ada.answer(ada.state(task), comment=HOSTILE)
    bo.judge(site.task("books", "bo"), swapped)
    row = lena.get(f"{API}/answers", params={"comment": True}).json()["answers"][0]
    body = verdict(left="d0", right="d1", reason=HOSTILE)
    assert lena.post(f"{API}/verdicts", json=body).status_code == 204
    for path in ("answers", f"answers/{row['task']}/{row['seq']}", "adjudicate", "comments"):
        text = lena.get(f"/p/books/{path}").text
        assert HOSTILE not in text
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text, path


def test_verdicts_by_form(site: Site) -> None:
    lena = disputed(site)
    form = {
        "csrf": token(lena, "/p/books/setup"), "key": "one", "query": "q0", "tool": "pairs",
        "left": "d1", "right": "d0", "outcome": "1", "reason": "because",
    }  # fmt: skip
    assert lena.post("/p/books/adjudicate", data={**form, "csrf": "x"}).status_code == 403
    assert "needs a reason" in lena.post("/p/books/adjudicate", data={**form, "reason": ""}).text
    assert (
        "Choose the verdict" in lena.post("/p/books/adjudicate", data={**form, "outcome": "x"}).text
    )
    page = lena.post("/p/books/adjudicate", data=form)
    assert "The verdict is recorded" in page.text
    assert order(lena)[:2] == ["d1", "d0"]
    form |= {"key": "two", "index": "0"}
    assert "is undone" in lena.post("/p/books/adjudicate/withdraw", data=form).text
    form |= {"key": "three"}
    assert "no verdict 0" in lena.post("/p/books/adjudicate/withdraw", data=form).text


def test_deleting_a_person_deletes_the_reasons_of_their_verdicts(site: Site) -> None:
    lena = disputed(site)
    lena.post(f"{API}/verdicts", json=verdict())
    chief, person = site.person("chief", admin=True), site.person("lena")
    with site.store.write() as tx:
        deletion.forget(tx, person, "anonymize", chief)
    with site.store.read() as tx:
        project = store_projects.find_project(tx, "books")
        (settled,) = adjudication.queue(tx, project)["settled"]
        assert settled["reason"] == ""
        assert truth.truths(tx, project)[0].order[:2] == ("d1", "d0"), "the verdict stays"

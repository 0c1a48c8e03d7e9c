"""Grade scales, aspects and reasons: stored with the judgments, exported, and off by default."""

from __future__ import annotations

import json
from typing import Any

import pytest

from firstpage.core.errors import DataError
from firstpage.labeling.app.exports.export_notes import notes
from firstpage.labeling.app.exports.make import export
from firstpage.labeling.app.store import projects, texts
from firstpage.labeling.app.store.options import read_options
from firstpage.labeling.app.store.scales import parse_scale, scale_text, shown_scale
from tests.labeling.app.site import Site

FOUR = [
    {"name": "Off topic", "color": "#b3261e"},
    {"name": "Related", "key": "r"},
    {"name": "Relevant"},
    {"name": "Vital", "key": "a", "color": "#2e7d32"},
]
OPTIONS = {"grades": FOUR, "aspects": ["trust", "freshness"], "reasons": ["complete", "recent"]}


def graded_site(site: Site, **options: Any) -> tuple[Any, int]:
    site.project(tool="grades", documents=3, queries=1, setting={"k": 2}, options=options)
    return site.client("ada"), site.task("books", "ada")


def exported(site: Site, name: str) -> tuple[str, list[str]]:
    with site.store.read() as tx:
        project = projects.by_slug(tx, "books")
        assert project is not None
        return "".join(export(tx, project, name)), list(notes(tx, project, name))


def test_a_custom_scale_from_page_to_export(db_site: Site) -> None:
    ada, task = graded_site(db_site, **OPTIONS)
    page = ada.get(f"/tasks/{task}").text
    for part in ('data-key="r"', 'data-color="#2e7d32"', "Off topic", "trust", "complete"):
        assert part in page
    state = ada.state(task)
    assert [level["name"] for level in state["options"]["grades"]] == [g["name"] for g in FOUR]
    assert ada.answer(state, 4).status_code == 400, "four grades are 0 to 3"
    for fields, words in (
        ({"reasons": ["other"]}, "no reason"),
        ({"aspects": {"speed": 1}}, "no aspect"),
        ({"aspects": {"trust": 4}}, "from 0 to 3"),
    ):
        reply = ada.answer(state, 1, **fields)
        assert reply.status_code == 400
        assert words in reply.json()["detail"]
    assert ada.answer(state, 1, aspects={"trust": -1}).status_code == 422
    remarks = {"aspects": {"trust": 3, "freshness": 0}, "reasons": ["recent", "recent"]}
    state = ada.answer(state, 3, **remarks).json()
    while state["question"]:
        state = ada.answer(state, 1).json()
    review = ada.get(f"/tasks/{task}/judgments").text
    assert "Vital" in review
    assert "Perfect" not in review
    first = json.loads(exported(db_site, "log.jsonl")[0].splitlines()[0])
    assert (first["outcome"], first["reasons"]) == (3, ["recent"])
    assert first["aspects"] == {"trust": 3, "freshness": 0}
    assert "recent" in exported(db_site, "log.csv")[0]
    qrels, remarks_on = exported(db_site, "truth.qrels")
    assert sorted(line.split()[-1] for line in qrels.splitlines()) == ["1", "1", "3"]
    assert "The grades are 0 = Off topic, 1 = Related, 2 = Relevant, 3 = Vital." in remarks_on


def test_projects_without_a_scale_are_as_before(site: Site) -> None:
    ada, task = graded_site(site)
    state = ada.state(task)
    assert set(state["options"]) == {"ties", "bad", "away_after"}
    assert "Perfect" in ada.get(f"/tasks/{task}").text
    assert ada.answer(state, 5).status_code == 400
    assert ada.answer(state, 4, reasons=["x"]).status_code == 400
    assert ada.answer(state, 4).status_code == 200
    assert not [note for note in exported(site, "truth.qrels")[1] if "grades are" in note]


def test_pairs_have_reasons_and_no_aspects(site: Site) -> None:
    site.project(options={"reasons": ["complete"], "aspects": ["trust"]})
    ada, task = site.client("ada"), site.task("books", "ada")
    state = ada.state(task)
    assert ada.answer(state, 1, aspects={"trust": 1}).status_code == 400
    assert ada.answer(state, 1, reasons=["complete"]).status_code == 200


def test_the_number_of_grades_is_fixed_by_the_first_one(site: Site) -> None:
    ada, task = graded_site(site, **OPTIONS)
    lena = site.client("lena")
    url = "/api/v1/projects/books"
    assert lena.patch(url, json={"options": {"grades": FOUR[:3]}}).status_code == 200
    assert lena.patch(url, json={"options": {"grades": FOUR}}).status_code == 200
    ada.answer(ada.state(task), 3)
    refused = lena.patch(url, json={"options": {"grades": FOUR[:3]}})
    assert refused.status_code == 400
    assert "documents were graded" in refused.json()["detail"]
    renamed = [{**FOUR[0], "name": "Spam"}, *FOUR[1:]]
    assert lena.patch(url, json={"options": {"grades": renamed}}).status_code == 200


def test_the_number_of_grades_is_fixed_by_a_verdict(site: Site) -> None:
    graded_site(site, **OPTIONS)
    lena, url = site.client("lena"), "/api/v1/projects/books"
    verdict = {"key": "k", "query": "q0", "left": "d0", "outcome": 3, "reason": "x"}
    assert lena.post(f"{url}/verdicts", json=verdict).status_code == 204
    refused = lena.patch(url, json={"options": {"grades": FOUR[:3]}})
    assert "documents were graded" in refused.json()["detail"]
    withdrawn = {"key": "w", "query": "q0", "index": 0}
    assert lena.post(f"{url}/verdicts/withdraw", json=withdrawn).status_code == 204
    assert lena.patch(url, json={"options": {"grades": FOUR[:3]}}).status_code == 200


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("training", {"text": "query", "left": "a text", "grade": 2}),
        ("gold_questions", {"query": "q0", "left": "d0", "grade": 2}),
    ],
)
def test_known_answers_need_their_grades(site: Site, name: str, row: dict[str, Any]) -> None:
    graded_site(site, **OPTIONS)
    lena, url = site.client("lena"), "/api/v1/projects/books"
    files = {name: ("k.jsonl", json.dumps(row).encode())}
    assert lena.post(f"{url}/import", files=files).status_code == 200
    refused = lena.patch(url, json={"options": {"grades": FOUR[:2]}})
    assert refused.status_code == 400
    assert "needs at least 3 grades" in refused.json()["detail"]
    assert lena.patch(url, json={"options": {"grades": FOUR[:3]}}).status_code == 200


def test_options_added_while_people_judge_hold_at_once(site: Site) -> None:
    ada, task = graded_site(site, grades=FOUR[:3])
    state = ada.state(task)  # the server has the task in memory
    assert ada.answer(state, 3, reasons=["clear"]).status_code == 400
    options = {"grades": FOUR, "reasons": ["clear"]}
    site.client("lena").patch("/api/v1/projects/books", json={"options": options})
    assert ada.answer(state, 3, reasons=["clear"]).status_code == 200


@pytest.mark.parametrize(
    "grades",
    [
        [{"name": "one"}], [{"name": "x"}, {"name": "x"}], [{"name": "a", "key": "s"}, {"name": "b"}],
        [{"name": "a", "key": "2"}, {"name": "b"}], [{"name": " a"}, {"name": "b"}],
        [{"name": "a", "color": "red"}, {"name": "b"}], [{"name": "a\nb"}, {"name": "b"}],
        [{"name": str(i)} for i in range(11)], [{"name": "a", "level": 1}, {"name": "b"}], "good",
        [{"name": "a", "color": "#12345g"}, {"name": "b"}],
    ],
)  # fmt: skip
def test_wrong_scales_are_refused(grades: Any) -> None:
    with pytest.raises(DataError, match="the option grades must be a list of 2 to 10 grades"):
        read_options({"grades": grades})


def test_scales_as_text() -> None:
    text = "Off topic, #B3261E\nRelated, r\nRelevant; Vital, a, #2e7d32"
    parsed = parse_scale(text)
    assert parsed == [
        {"name": "Off topic", "color": "#b3261e"},
        {"name": "Related", "key": "r"},
        {"name": "Relevant"},
        {"name": "Vital", "key": "a", "color": "#2e7d32"},
    ]
    levels = read_options({"grades": parsed}).grades
    assert parse_scale(scale_text(levels)) == parsed
    assert [level.key for level in shown_scale(levels)] == ["1", "r", "3", "a"]
    assert parse_scale(" \n ;") is None
    with pytest.raises(DataError, match="must be a name, a key"):
        parse_scale("Good, xy")


def test_removed_options_end_at_once(site: Site) -> None:
    """Also in a session that a server has in memory."""
    ada, task = graded_site(site, grades=FOUR, reasons=["clear"], aspects=["trust"])
    state = ada.state(task)
    lena = site.client("lena")
    changed = lena.patch("/api/v1/projects/books", json={"options": {"reasons": ["long"]}})
    assert changed.status_code == 200
    assert ada.state(task)["options"]["reasons"] == ["long"]
    refused = ada.answer(state, 1, reasons=["clear"])
    assert refused.status_code == 400
    assert "no reason 'clear'" in refused.json()["detail"]
    assert ada.answer(state, 1, reasons=["long"]).status_code == 200


def test_reasons_and_aspects_are_changed_on_review(site: Site) -> None:
    ada, task = graded_site(site, grades=FOUR, reasons=["clear", "long"], aspects=["trust"])
    state = ada.answer(ada.state(task), 1, reasons=["clear"], aspects={"trust": 3}).json()
    url = f"/api/v1/tasks/{task}"

    def revise(**fields: Any) -> Any:
        seq = ada.state(task)["seq"]
        body = {"seq": seq, "key": f"key-{seq}", "index": 0, "outcome": 2, **fields}
        return ada.post(f"{url}/revise", json=body)

    def current() -> tuple[int, list[str], dict[str, int]]:
        (row,) = ada.get(f"{url}/judgments").json()["judgments"]
        return row["outcome"], row["reasons"], row["aspects"]

    assert state["judgments"] == 1
    assert revise().status_code == 200
    assert current() == (2, ["clear"], {"trust": 3}), "what was added stays"
    assert revise(reasons=["long", "long"], aspects={"trust": 0}).status_code == 200
    assert current() == (2, ["long"], {"trust": 0})
    assert revise(reasons=[]).status_code == 200
    assert current() == (2, [], {"trust": 0})
    assert revise(reasons=["dear"]).status_code == 400
    assert revise(aspects={"trust": 4}).status_code == 400
    page = ada.get(f"/tasks/{task}/judgments").text
    assert 'data-aspect="trust"' in page
    assert page.count("data-reason") == 2
    log = site.client("lena").get("/api/v1/projects/books/export/log.jsonl").text
    events = [json.loads(line) for line in log.splitlines()]
    assert [event["reasons"] or [] for event in events] == [["clear"], ["clear"], ["long"], []]


def test_the_scale_is_named_on_pages(site: Site) -> None:
    ada, task = graded_site(site, grades=FOUR)
    ada.judge(task, lambda left, right: 1)
    lena = site.client("lena")
    for path in ("setup/judging", "dashboard"):
        page = lena.get(f"/p/books/{path}").text.lower()
        assert "four grades" in page, path
        assert "five grades" not in page.replace("empty: five grades", ""), path
    assert "Four grades." in ada.get("/p/books/guidelines").text


def test_known_answers_have_the_grades_of_the_project(site: Site) -> None:
    graded_site(site, grades=FOUR)
    lena = site.client("lena")

    def imported(grade: Any) -> Any:
        row = {"text": "query", "left": "a text", "grade": grade, "explanation": "why"}
        files = {"training": ("t.jsonl", json.dumps(row).encode())}
        return lena.post("/api/v1/projects/books/import", files=files)

    assert imported(3).status_code == 200
    assert imported(FOUR[2]["name"].upper()).status_code == 200
    for grade in (4, "perfect"):
        refused = imported(grade)
        assert refused.status_code == 400
        assert "from 0 to 3" in refused.json()["detail"]
    with site.store.read() as tx:
        project = projects.by_slug(tx, "books")
        assert project is not None
        outcomes = [g["outcome"] for g in texts.gold_questions_of(tx, project.id, "training")]
    assert outcomes == [3, 2]

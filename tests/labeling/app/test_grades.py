"""Grades of list items: how they are imported, and that assessors never see them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from firstpage.core.errors import DataError
from firstpage.labeling.app.imports.bundle import Sources, read
from firstpage.labeling.app.machines import judge
from firstpage.labeling.app.store import texts
from firstpage.labeling.app.store.texts import QueryRecord
from firstpage.labeling.assessors import DocumentText, Function
from tests.labeling.app.graded_lists import grades_in, list_document, lists_project
from tests.labeling.app.site import Site, jsonl
from tests.labeling.app.test_imports import file

API = "/api/v1/projects/books"
SECRET = 77  # a grade that no page contains for another reason


def row(**item: Any) -> dict[str, Any]:
    return {"query": "q", "document": "a", "items": [{"title": "one", **item}, "two"]}


def items(**item: Any) -> list[dict[str, Any]]:
    parsed = read(Sources(documents=file("d.jsonl", jsonl(row(**item)))))
    fields = parsed.queries[0].documents[0].fields
    assert fields is not None
    stored_items: list[dict[str, Any]] = fields["items"]
    return stored_items


@pytest.mark.parametrize(("grade", "stored"), [(2, 2), (0, 0), (-1, -1), (3.0, 3), ("4", 4)])
def test_grades_are_stored(grade: Any, stored: int) -> None:
    assert items(grade=grade)[0]["grade"] == stored


def test_grades_are_optional() -> None:
    assert items(grade=None)[0]["grade"] is None
    assert "grade" not in items()[0]


@pytest.mark.parametrize("grade", [1.5, True, "good", "", [1], {"a": 1}, 100, -10, 10**30])
def test_invalid_grades_are_refused(grade: Any) -> None:
    with pytest.raises(DataError, match=r"d\.jsonl:2: a grade must be an integer from -9 to 99"):
        read(
            Sources(documents=file("d.jsonl", jsonl({**row(), "document": "b"}, row(grade=grade))))
        )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("q 0 a 1\nq 0 b\n", ":2: the line has 3 fields instead of 4"),
        ("q 0 a x\n", ":1: the grade must be a number; got 'x'"),
        ("q 0 a 1.5\n", ":1: a grade must be an integer"),
        ("q 0 a 1 x\n", ":1: the line has more than the 4 fields"),
        ("q 0 a 1\n\nq 0 a 2\n", ":3: document 'a' has two grades"),
        ("\n", "nothing to import"),
    ],
)
def test_invalid_qrels_are_refused(data: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(Sources(qrels=file("g.qrels", data.encode())))


def test_qrels_with_and_after_the_lists(db_site: Site) -> None:
    """Items are named by `id` or another name; items that are not named keep their grades."""
    db_site.project(queries=0, tool="lists", opened=False)
    lena = db_site.client("lena")
    rows = [{"query": "q", "document": "a", "items": [
        {"title": "x", "id": "x"}, {"title": "y", "docid": 7, "grade": 1}, {"title": "z", "id": "z"},
    ]}]  # fmt: skip
    both_files = {
        "documents": ("d.jsonl", jsonl(*rows)),
        "qrels": ("g.qrels", b"q 0 x 3\np 0 z 1\n"),
    }
    assert lena.post(f"{API}/import", files=both_files).json()["grades"] == 1
    with db_site.store.read() as tx:
        from firstpage.labeling.app.store import projects

        project = projects.by_slug(tx, "books")
    assert project is not None
    assert grades_in(db_site, project)["q", "a"] == (3, 1, None)
    later = lena.post(f"{API}/import", files={"qrels": ("g.qrels", b"q 0 7 0\n")})
    assert later.json()["grades"] == 1
    assert grades_in(db_site, project)["q", "a"] == (3, 0, None)
    none = lena.post(f"{API}/import", files={"qrels": ("g.qrels", b"q 0 other 2\n")})
    assert none.status_code == 400
    assert "g.qrels: grades no item" in none.json()["detail"]


def project_with_grades(site: Site) -> int:
    lists = tuple(list_document(f"l{i}", [SECRET, None, 0]) for i in range(3))
    lists_project(site, [QueryRecord("q", "query 0", "", lists)])
    return site.task("books", "ada")


def test_assessors_never_see_grades(db_site: Site) -> None:
    """Grades are in no page, state, frame or prefetched document, before, during and after judging."""
    task = project_with_grades(db_site)
    ada = db_site.client("ada")
    state = ada.state(task)
    assert state["question"]["left"]["items"][0] == {
        "id": f"{state['question']['left']['key']}-0",
        "title": "Result 0",
        "text": "words",
    }
    answered = ada.answer(state, 1)
    paths = [
        f"/api/v1/tasks/{task}",
        f"/tasks/{task}",
        f"/api/v1/tasks/{task}/prefetch",
        "/p/books",
        f"/api/v1/tasks/{task}/judgments",
        f"/tasks/{task}/judgments",
        f"{API}/work",
        f"{API}/next",
        *(state["question"][side]["url"] for side in ("left", "right")),
    ]
    late = ada.answer(state, 1)
    assert late.status_code == 409
    replies = [answered, late, *(ada.get(path) for path in paths)]
    while answered.json()["question"]:
        answered = ada.answer(answered.json(), 0)
        replies.append(answered)
    replies += [ada.get(path) for path in (*paths[:6], f"/tasks/{task}/done")]
    for reply in replies:
        assert reply.status_code in (200, 409), reply.url
        assert "grade" not in reply.text.replace("five grades", ""), reply.url
        shown = reply.text.replace(ada.headers["X-CSRF-Token"], "")
        assert not re.search(rf"\b{SECRET}\b", shown), reply.url


def test_practice_hides_grades_too(site: Site) -> None:
    site.project(queries=1, tool="lists", opened=True)
    side = {"title": "one", "kind": "list", "items": [{"title": "x", "grade": SECRET}]}
    lesson = {"text": "tea", "left": side, "right": side, "outcome": 0}
    site.client("lena").post(f"{API}/import", files={"training": ("t.jsonl", jsonl(lesson))})
    shown = site.client("ada").get(f"{API}/training")
    assert shown.json()["question"]["left"]["items"] == [{"title": "x"}]
    assert "grade" not in shown.text


def test_programs_do_not_see_grades(site: Site) -> None:
    project_with_grades(site)
    texts: list[str] = []

    def taste(query: str, left: DocumentText, right: DocumentText | None) -> str:
        texts.extend([repr(left), repr(right)])
        return "left"

    with site.store.read() as tx:
        from firstpage.labeling.app.store import projects

        project = projects.by_slug(tx, "books")
    assert project is not None
    judge(site.store, project, site.person("ada"), Function(taste))
    assert len(texts) == 6
    assert not any(str(SECRET) in text for text in texts)


def test_grades_stay_in_the_database(site: Site) -> None:
    project_with_grades(site)
    with site.store.read() as tx:
        from firstpage.labeling.app.store import projects

        project = projects.by_slug(tx, "books")
        assert project is not None
        (query,) = texts.of_project(tx, project.id)
        fields = texts.documents_of(tx, query["id"])[0]["fields"]
    assert [item.get("grade") for item in fields["items"]] == [SECRET, None, 0]


@pytest.mark.parametrize(
    ("settings", "offered"),
    [({}, True), ({"repeat_rate": 0.3}, False), ({"refine": 3}, False), ({"aspects": True}, False)],
)
def test_one_page_is_offered_where_any_order_is_allowed(
    site: Site, settings: dict[str, Any], offered: bool
) -> None:
    aspects = {"aspects": ["trust"]} if "aspects" in settings else None
    setting = {"k": 2, **{name: v for name, v in settings.items() if name != "aspects"}}
    site.project(tool="grades", documents=4, queries=1, setting=setting, options=aspects)
    task, ada = site.task("books", "ada"), site.client("ada")
    (work,) = ada.get("/api/v1/projects/books/work").json()["tasks"]
    assert work["on_one_page"] is offered
    page = ada.get(f"/tasks/{task}/list", follow_redirects=False)
    assert page.status_code == (200 if offered else 303)
    assert ("All on one page" in ada.get(f"/tasks/{task}").text) is offered


def test_pairs_have_no_page_of_grades(site: Site) -> None:
    site.project(queries=1)
    task, ada = site.task("books", "ada"), site.client("ada")
    assert ada.get(f"/tasks/{task}/list", follow_redirects=False).status_code == 303
    assert site.client("lena").get(f"/tasks/{task}/list").status_code == 404

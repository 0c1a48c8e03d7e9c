"""Programs as assessors: the texts they read, and the same judging service."""

from __future__ import annotations

import json
from typing import Any

import pytest

from firstpage.core.errors import DataError
from firstpage.labeling.app.machines import judge, text_of
from firstpage.labeling.app.store import projects, tasks, texts
from firstpage.labeling.assessors import Function
from tests.labeling.app.site import add_documents, jsonl
from tests.narrow import present


@pytest.mark.parametrize(
    ("row", "body"),
    [
        ({"kind": "text", "body": "a < b & c"}, "a < b & c"),
        (
            {
                "kind": "html",
                "body": "<p>a<b>b</b>&amp;c</p><script>x()</script><style>p{}</style>d",
            },
            "a b &c d",
        ),
        (
            {"kind": "card", "body": "", "fields": {"price": 3, "color": "red"}},
            "price: 3\ncolor: red",
        ),
        (
            {
                "kind": "list",
                "body": "",
                "fields": {"items": [{"title": "one"}, {"title": "two", "text": "x"}]},
            },
            "1. one\n2. two - x",
        ),
        (
            {"kind": "list", "body": "", "fields": {"items": [{"title": "one", "stars": 0}]}},
            "1. one - 0",
        ),
    ],
)
def test_texts(row: dict[str, Any], body: str) -> None:
    text = text_of({"key": "d", "title": "T", "fields": None, **row})  # type: ignore[arg-type]
    assert (text.key, text.title, text.body) == ("d", "T", body)


def test_a_function_judges_all_open_tasks(site) -> None:
    project = site.project(assessors=("ada",), queries=2, documents=5)
    ada = site.person("ada")
    progress: list[tuple[int, int]] = []
    longer = Function(
        lambda query, left, right: "left" if left.body > present(right).body else "right"
    )
    done = judge(site.store, project, ada, longer, lambda n, total: progress.append((n, total)))
    assert done.queries == 2
    assert done.answers == len(progress) > 8
    assert [n for n, _ in progress] == list(range(1, len(progress) + 1))
    assert all(n <= total < 40 for n, total in progress)
    with site.store.read() as tx:
        assert {t.state for t in tasks.of_person(tx, project, ada.id)} == {"done"}
    assert judge(site.store, project, ada, longer).answers == 0


def test_a_function_gets_ids_titles_and_fields(site) -> None:
    site.project(assessors=("ada",), queries=1, documents=2)
    with site.store.write() as tx:
        project = present(projects.by_slug(tx, "books"))
        row = texts.of_project(tx, project.id)[0]
        card = texts.DocumentRecord("c", "Card", "card", fields={"price": 3}, url="http://a/b")
        add_documents(tx, row["id"], [card], start=2)
    arguments: dict[str, Any] = {}

    def taste(query: Any, left: Any, right: Any) -> int:
        arguments[query.key] = (query.text, query.description)
        arguments.update({d.key: d for d in (left, right)})
        return 1

    judge(site.store, project, site.person("ada"), Function(taste))
    assert arguments["q0"] == ("query 0", "what is wanted")
    product = arguments["c"]
    assert (product.title, product.kind, product.fields, product.url) == (
        "Card",
        "card",
        {"price": 3},
        "http://a/b",
    )
    assert (arguments["d0"].title, arguments["d0"].body) == ("Title 0", "Body 0 of 0")


def test_ties_are_skipped_if_the_project_has_none(site) -> None:
    project = site.project(queries=1, documents=4)
    done = judge(site.store, project, site.person("ada"), Function(lambda q, a, b: "tie"))
    assert done.skipped == {"a tie, which this project does not allow": done.questions}
    assert done.questions > done.answers == 0
    log = site.client("lena").get("/api/v1/projects/books/export/log.jsonl").text
    rows = [json.loads(line) for line in log.splitlines()]
    assert all(row["skipped"] for row in rows)
    assert {row["comment"] for row in rows} == {"a tie, which this project does not allow"}


def test_ties_are_recorded_if_the_project_allows_them(site) -> None:
    project = site.project(queries=1, documents=4, options={"ties": True})
    done = judge(site.store, project, site.person("ada"), Function(lambda q, a, b: "tie"))
    assert not done.skipped


@pytest.mark.parametrize("allowed", [True, False])
def test_bad_documents_are_recorded_if_the_project_has_them(site, allowed: bool) -> None:
    project = site.project(queries=1, documents=4, options={"bad": allowed})

    def taste(query: Any, left: Any, right: Any) -> str:
        bad = [document.key == "d1" for document in (left, right)]
        if any(bad):
            return "left bad" if bad[0] else "right bad"
        return "left" if left.key < right.key else "right"

    done = judge(site.store, project, site.person("ada"), Function(taste))
    log = site.client("lena").get("/api/v1/projects/books/export/log.jsonl").text
    rows = [json.loads(line) for line in log.splitlines()]
    if allowed:
        assert not done.skipped
        flagged = [row for row in rows if row["bad"]]
        assert [row["bad"] for row in flagged] == [["d1"]]
        truth = json.loads(
            site.client("lena").get("/api/v1/projects/books/export/truth.jsonl").text
        )
        assert truth["bad"] == ["d1"]
    else:
        assert set(done.skipped) == {"a bad document, which this project does not allow"}
        assert all(row["skipped"] == ("d1" in (row["left"], row["right"])) for row in rows)


def project_with_practice(site: Any, count: int = 2) -> Any:
    project = site.project(queries=1, documents=4)
    rows = [
        {
            "text": "tea",
            "left": "about tea",
            "right": "about cars",
            "outcome": "left",
            "explanation": "Cars are not tea.",
        }
        for _ in range(count)
    ]
    files = {"training": ("t.jsonl", jsonl(*rows))}
    assert site.client("lena").post("/api/v1/projects/books/import", files=files).status_code == 200
    return project


def test_practice_comes_first_for_programs_too(site) -> None:
    project = project_with_practice(site)
    sober = Function(
        lambda q, a, b: "left" if "tea" in a.body or a.body < present(b).body else "right"
    )
    done = judge(site.store, project, site.person("ada"), sober)
    assert done.practice == 2
    assert (done.queries, done.answers > 0) == (1, True)


def test_a_program_that_fails_the_practice_judges_nothing(site) -> None:
    project = project_with_practice(site)
    with pytest.raises(DataError, match=r"0 of 2 practice questions .* requires 70%"):
        judge(site.store, project, site.person("ada"), Function(lambda q, a, b: "right"))
    assert site.client("lena").get("/api/v1/projects/books/export/log.jsonl").text == ""


@pytest.mark.parametrize("state", ["draft", "closed"])
def test_a_project_that_is_not_open_is_refused(site, state: str) -> None:
    project, lena = site.project(opened=False), site.person("lena")
    with site.store.write() as tx:
        project = projects.set_state(tx, project, state, lena)
    with pytest.raises(DataError, match=r"'books' is (not open yet|closed)"):
        judge(site.store, project, site.person("ada"), Function(lambda q, a, b: 1))

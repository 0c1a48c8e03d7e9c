"""What a program reads of documents, and that it works at the same desk."""

from __future__ import annotations

from typing import Any

import pytest

from firstpage.labeling.assessors import Function
from firstpage.web.machines import judge, text_of
from firstpage.web.store import tasks


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
            {"kind": "card", "body": "", "fields": {"price": 3, "colour": "red"}},
            "price: 3\ncolour: red",
        ),
        (
            {
                "kind": "list",
                "body": "",
                "fields": {"items": [{"title": "one"}, {"title": "two", "text": "x"}]},
            },
            "1. one\n2. two - x",
        ),
    ],
)
def test_texts(row: dict[str, Any], body: str) -> None:
    found = text_of({"key": "d", "title": "T", "fields": None, **row})  # type: ignore[arg-type]
    assert (found.key, found.title, found.body) == ("d", "T", body)


def test_a_function_does_all_open_work(site) -> None:
    project = site.project(assessors=("ada",), queries=2, documents=5)
    ada = site.person("ada")
    seen: list[tuple[str, int]] = []
    longer = Function(lambda query, left, right: "left" if left > (right or "") else "right")
    done = judge(site.store, project, ada, longer, lambda query, n: seen.append((query, n)))
    assert done.queries == 2
    assert done.answers == len(seen) > 8
    with site.store.read() as tx:
        assert {t.state for t in tasks.of_person(tx, project, ada.id)} == {"done"}
    assert judge(site.store, project, ada, longer).answers == 0

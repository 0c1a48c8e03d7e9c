"""The last stage of a search: what it reorders, and what is shown if it fails or is late."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from firstpage.core.errors import DataError
from firstpage.labeling import FunctionListAssessor
from firstpage.labeling.assessors import DocumentText
from firstpage.serving.last_stage import LastStage
from tests.logs import captured_log
from tests.serving.texts import text_clients

Shop = tuple[Path, Path]
SEARCH = "/search?q=red+shoes&depth=30"


def ids(shop: Shop, call: Any = None, seconds: float = 30.0) -> tuple[list[str], bool | None]:
    options: dict[str, Any] = {}
    if call is not None:
        options["last_stage"] = LastStage(FunctionListAssessor(call), seconds)
    for client in text_clients(*shop, **options):
        answer = client.get(SEARCH).json()
        return [each["id"] for each in answer["results"]], answer.get("reranked")
    raise AssertionError


def shortest_first(query: str, documents: Sequence[DocumentText]) -> list[str]:
    assert query == "red shoes"
    return [each.key for each in sorted(documents, key=lambda each: len(each.body))]


def test_the_first_documents_are_reordered(shop: Shop) -> None:
    before, reranked = ids(shop)
    assert reranked is None
    after, reranked = ids(shop, shortest_first)
    assert reranked is True
    assert after != before
    assert sorted(after[:20]) == sorted(before[:20])
    assert after[20:] == before[20:]
    again, _ = ids(shop, shortest_first)
    assert again == after


def test_the_order_of_the_model_is_shown_if_it_is_late(shop: Shop) -> None:
    release = threading.Event()

    def late(query: str, documents: Sequence[DocumentText]) -> list[str]:
        release.wait(20)
        return shortest_first(query, documents)

    with captured_log("firstpage.serving") as log:
        assert ids(shop, late, seconds=0.2) == (ids(shop)[0], False)
    release.set()
    assert "no answer in 0.2 s" in log.getvalue()


@pytest.mark.parametrize("problem", ["fails", "malformed"])
def test_the_order_of_the_model_is_shown_if_it_fails(shop: Shop, problem: str) -> None:
    def bad(query: str, documents: Sequence[DocumentText]) -> list[str]:
        if problem == "fails":
            raise DataError("the endpoint is down.")
        return ["nothing"]

    with captured_log("firstpage.serving") as log:
        assert ids(shop, bad) == (ids(shop)[0], False)
    assert "the last stage is left out of a search" in log.getvalue()

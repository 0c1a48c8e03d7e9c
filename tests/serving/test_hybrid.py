"""An index with vectors in service: stages of documents, typos, comparison with another stage."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

import firstpage as fp
from firstpage.core.errors import FirstpageWarning
from firstpage.serving.served_index import IndexSource
from firstpage.serving.watched_model import WatchedModel
from tests.search.meaning import ENCODER, OTHER
from tests.search.test_first_stage import GRADES, create
from tests.search.test_first_stage import QUERIES as TYPED
from tests.serving.test_feedback import form_of, rows
from tests.serving.texts import HOST, text_clients

Shop = tuple[Path, Path]


@pytest.fixture(scope="module")
def hybrid(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    folder = tmp_path_factory.mktemp("hybrid")
    index = create(folder / "i", latent=0, vectors=ENCODER)
    index.set_first_stage(replace(index.first_stage, typos=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)
        data = fp.TextFeatures(index, "short").dataset(
            TYPED, index.candidates(TYPED), fp.Qrels.from_dict(GRADES)
        )
    fp.ListNet().fit(data).save(folder / "model.json")
    return folder / "i", folder / "model.json"


def test_answers_are_those_of_the_searcher(hybrid: Shop) -> None:
    searcher = fp.Searcher(fp.Index(hybrid[0], ENCODER), hybrid[1])
    for client in text_clients(*hybrid, encoder=ENCODER):
        for text in ("red shoe", "jacket", "crimsen snaeker"):
            answer, results = (
                client.get("/search", params={"q": text}).json(),
                searcher.search(text),
            )
            assert [r["id"] for r in answer["results"]] == list(results.ids)
            assert [r["stage_ranks"] for r in answer["results"]] == list(results.stage_ranks)
            assert answer["corrected"] == dict(results.corrected)
        assert answer["corrected"] == {"crimsen": "crimson", "snaeker": "sneaker"}


def test_the_page_says_by_what_a_document_was_found(hybrid: Shop) -> None:
    for client in text_clients(*hybrid, encoder=ENCODER):
        page = client.get("/?q=jacket").text
        assert '<span class="tag">meaning</span>' in page
        assert "hybrid of BM25" in page
        page = client.get("/?q=red+shoe").text
        assert '<span class="tag">words and meaning</span>' in page
        page = client.get("/?q=crimsen").text
        assert re.search(r"No document contains .*crimsen.*crimson.* stands for it", page)


def test_the_page_compares_the_model_with_another_stage(hybrid: Shop) -> None:
    index = fp.Index(hybrid[0], ENCODER)
    words = [hit.id for hit in index.search("red shoe", 10, "bm25")]
    for client in text_clients(*hybrid, encoder=ENCODER, against="bm25"):
        page = client.get("/?q=red+shoe").text
        assert "First stage: BM25" in page
        assert "not listed by the first stage" in page  # what only the vectors find
        _, model, first = re.split('<section id="side', page)
        sides = [re.findall(r'data-document="(\w+)"', side) for side in (model, first)]
        assert sides == [
            list(fp.Searcher(fp.Index(hybrid[0], ENCODER), hybrid[1]).search("red shoe").ids),
            words,
        ]
        assert client.get("/?q=jacket").status_code == 200  # words find nothing


def test_feedback_stores_what_both_sides_list(hybrid: Shop, tmp_path: Path) -> None:
    for client in text_clients(*hybrid, encoder=ENCODER, against="bm25", feedback=tmp_path):
        fields = form_of(client.get("/?q=red+shoe").text, "/judge")
        assert client.post("/judge", data=fields, headers={"origin": HOST}).status_code == 303
        index = fp.Index(hybrid[0], ENCODER)
        listed = {
            hit.id for kind in ("bm25", "hybrid") for hit in index.search("red shoe", 10, kind)
        }
        stored = rows(tmp_path, "documents")
        assert {row["document"] for row in stored} == listed


def test_an_index_with_other_vectors_is_refused(hybrid: Shop, tmp_path: Path) -> None:
    create(tmp_path / "i", latent=0, vectors=OTHER)
    watched = WatchedModel(hybrid[1], source=IndexSource(tmp_path / "i", encoder=OTHER))
    watched.reload()
    assert "was trained with vectors of" in str(watched.refused)


def test_an_encoder_without_vectors_is_refused(hybrid: Shop, tmp_path: Path) -> None:
    create(tmp_path / "i", latent=0)
    watched = WatchedModel(hybrid[1], source=IndexSource(tmp_path / "i", encoder=ENCODER))
    watched.reload()
    assert f"i: has no vectors, so the encoder '{ENCODER}' would have no effect" in str(
        watched.refused
    )

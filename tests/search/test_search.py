"""Search with a model: the same scores as `predict` on the features of the same candidates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import firstpage as fp
from firstpage import Index, Searcher, TextFeatures
from firstpage.core.errors import DataError, FirstpageWarning
from firstpage.learning.models.model_files import Model, model_of
from tests.narrow import dense
from tests.search.test_features import NOT_LATENT, OWN, QUERIES, documents, qrels
from tests.search.test_index import HOSTILE

DEPTH = 15
OWN_FEATURE = f"own={OWN}:title_length"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return Index.from_documents(documents(), tmp_path_factory.mktemp("search") / "i", latent=0)


@pytest.fixture(scope="module")
def data(index: Index) -> fp.Dataset:
    """All features but those of values, of which some are missing, and one of one's own."""
    run = index.candidates(QUERIES, DEPTH)
    features = TextFeatures(index, NOT_LATENT[:-1], [OWN_FEATURE])
    with pytest.warns(FirstpageWarning, match="candidates are judged"):
        return features.dataset(QUERIES, run, qrels(run))


@pytest.fixture(scope="module")
def ranker(data: fp.Dataset) -> fp.Ranker:
    return fp.ListNet(normalize="standard").fit(data)


@pytest.fixture(scope="module")
def model(ranker: fp.Ranker) -> Model:
    return model_of(ranker)


def test_results_are_those_of_predict(index: Index, data: fp.Dataset, ranker: fp.Ranker) -> None:
    searcher = Searcher(index, ranker, DEPTH, [OWN_FEATURE])
    scores = ranker.predict(data)
    assert data.docids is not None
    moved = 0
    for q, (name, text) in enumerate(QUERIES):
        assert data.queries[q] == name
        part = slice(data.offsets[q], data.offsets[q + 1])
        ids, values = list(data.docids[part]), scores[part]
        order = np.argsort(-values, kind="stable")
        results = searcher.search(text, 10)
        assert results.ids == tuple(ids[i] for i in order[:10])
        np.testing.assert_allclose(results.scores, values[order[:10]], rtol=1e-6, atol=1e-9)
        assert results.first_stage_ranks.tolist() == (order[:10] + 1).tolist()
        assert results.n_candidates == len(ids)
        moved += results.ids != tuple(ids[:10])
    assert moved > 10


def test_a_model_file(index: Index, ranker: fp.Ranker, tmp_path: Path) -> None:
    ranker.save(tmp_path / "model.json")
    text = "w1 w2 w3"
    expected = Searcher(index, ranker, own=OWN_FEATURE).search(text)
    for each in (tmp_path / "model.json", model_of(ranker)):
        results = Searcher(str(index.path), each, own=[OWN_FEATURE]).search(text)
        assert results.ids == expected.ids
        np.testing.assert_array_equal(results.scores, expected.scores)


def test_without_a_model(index: Index) -> None:
    results = Searcher(index).search("w1 w2", 5)
    hits = index.search("w1 w2", 5)
    assert results.ids == tuple(hit.id for hit in hits)
    assert results.scores.tolist() == [hit.score for hit in hits]
    assert results.first_stage_ranks.tolist() == [1, 2, 3, 4, 5]
    assert str(results).splitlines()[0] == f"w1 w2: 5 of {results.n_candidates} candidates"
    assert len(str(results).splitlines()) == 6
    assert repr(results) == f"SearchResults('w1 w2': 5 of {results.n_candidates} candidates)"


def test_reasons(index: Index, ranker: fp.Ranker, model: Model) -> None:
    """All contributions of a linear model and its offset add up to the score."""
    searcher = Searcher(index, ranker, own=[OWN_FEATURE])
    results = searcher.search("w1 w5", 4, explain=10_000)
    features = searcher.features
    assert features is not None
    assert len(results.reasons) == len(results) == 4
    query = index.forward.query("w1 w5")
    rows = index.retrieve(query, 100).rows
    X = features.compute(query, rows)
    _, contributions = model.contributions(X, np.array([0, len(X)]), np.arange(len(X)))
    assert contributions.base is not None
    base = contributions.base[results.first_stage_ranks - 1]
    for i, reasons in enumerate(results.reasons):
        assert {name for name, _ in reasons} == set(features.names)
        sizes = [abs(value) for _, value in reasons]
        assert sizes == sorted(sizes, reverse=True)
        total = sum(value for _, value in reasons) + base[i]
        assert total == pytest.approx(results.scores[i], rel=1e-6, abs=1e-6)
    short = searcher.search("w1 w5", 4, explain=2)
    assert [len(reasons) for reasons in short.reasons] == [2] * 4
    assert short.reasons[0] == results.reasons[0][:2]
    assert all(name in str(short) for name, _ in short.reasons[0])


@pytest.mark.parametrize("text", HOSTILE, ids=[ascii(text[:12]) for text in HOSTILE])
def test_hostile_queries(index: Index, ranker: fp.Ranker, text: str) -> None:
    results = Searcher(index, ranker, own=OWN_FEATURE).search(text, explain=3)
    assert len(results) == 0
    assert str(results).endswith("0 of 0 candidates")
    if len(text) < 100:
        assert len(Searcher(index, ranker, own=OWN_FEATURE).search(f"{text} w1")) == 10


def test_a_model_ranks_no_more_than_the_candidates(index: Index, ranker: fp.Ranker) -> None:
    searcher = Searcher(index, ranker, 5, [OWN_FEATURE])
    for results in (searcher.search("w1"), searcher.search("w1", 5)):
        assert len(results) == results.n_candidates == 5
        assert set(results.ids) == {hit.id for hit in index.search("w1", 5)}
    with pytest.raises(DataError, match="the depth is 6, and the model ranks 5 candidates; choose"):
        searcher.search("w1", 6)


def test_depth_beyond_the_candidates_without_a_model(index: Index) -> None:
    results = Searcher(index, candidates=5).search("w1", 10_000)
    assert len(results) == results.n_candidates == len(index.search("w1", 10_000))
    assert len(Searcher(index, candidates=5).search("w1")) == 10


def test_refused_models(index: Index, ranker: fp.Ranker, data: fp.Dataset, tmp_path: Path) -> None:
    plain = fp.ListNet().fit(np.eye(4), [0, 1, 0, 1], qid=[1, 1, 2, 2])
    with pytest.raises(DataError, match="was not trained on features of texts, so it cannot rank"):
        Searcher(index, plain)
    other = Index.from_documents(documents(), tmp_path / "i", language="german", latent=0)
    with pytest.raises(DataError, match="was trained with text fields or analyzers other than"):
        Searcher(other, ranker, own=[OWN_FEATURE])
    for call, message in (
        (lambda: Searcher(index, candidates=0), "candidates must be at least 1; got 0"),
        (lambda: Searcher(index).search("w1", 0), "depth must be at least 1; got 0"),
        (lambda: Searcher(tmp_path / "none"), "no such index"),
    ):
        with pytest.raises(DataError, match=message):
            call()


def test_a_model_file_calls_no_function_that_was_not_named(
    index: Index, data: fp.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "payload.py").write_text("raise SystemExit('was imported')")
    monkeypatch.syspath_prepend(tmp_path)
    assert data.recipe is not None
    recipe = {**data.recipe, "own": ["own=payload:run"]}
    stranger = model_of(fp.ListNet().fit(replace(data, recipe=recipe)))
    for own in ([], ["payload:run"], [OWN_FEATURE]):
        with pytest.raises(DataError, match="only functions that you name: --feature own=payload"):
            Searcher(index, stranger, own=own)
    with pytest.raises(SystemExit, match="was imported"):
        Searcher(index, stranger, own=["own=payload:run"])


def test_the_scoring_of_the_features_retrieves(index: Index) -> None:
    """A model is searched with the first stage of its training, whatever the index has now."""
    scoring = fp.BM25(0.4, 0.1, {"title": 5.0})
    run = index.candidates(QUERIES, DEPTH, scoring)
    features = TextFeatures(index, ["letor", "first_stage"], first=scoring)
    with pytest.warns(FirstpageWarning, match="candidates are judged"):
        trained = features.dataset(QUERIES, run, qrels(run))
    column = features.names.index("first_stage.score")
    np.testing.assert_allclose(dense(trained.X[:, column]), run.values, rtol=1e-6)
    ranker = fp.ListNet(normalize="standard").fit(trained)
    searcher = Searcher(index, ranker, candidates=DEPTH)
    assert searcher.features is not None
    assert searcher.first_stage.scoring == scoring
    name, text = QUERIES[4]
    assert set(searcher.search(text, DEPTH).ids) == set(run.to_dict()[name])

"""The first stage: by words, by vectors, by both; its tuning; and what depends on it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import DataError, FirstpageWarning
from firstpage.evaluation.aggregation import StageFusion
from firstpage.search.first_stage import LatentDocuments, QueryVectors
from firstpage.search.latent import cosines
from firstpage.search.stage_tuning import StageTuner
from tests.narrow import present
from tests.search.meaning import ENCODER, OTHER, encode

DOCUMENTS = [
    {"id": "shoe", "text": "A red shoe"},
    {"id": "sneaker", "text": "A crimson sneaker"},
    {"id": "coat", "text": "A blue coat"},
    {"id": "parka", "text": "A navy parka"},
    {"id": "cap", "text": "A red cap"},
    {"id": "plain", "text": "Nothing that has a color"},
    {"id": "boots", "text": "Red boots"},
]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> fp.Index:
    folder = tmp_path_factory.mktemp("first") / "shop.index"
    return create(folder, vectors=ENCODER)


def create(folder: Path, **options: Any) -> fp.Index:
    """Return an index of the documents, one of which means nothing, which is told."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)
        return fp.Index.from_documents(DOCUMENTS, folder, **{"latent": 4, **options})


def ids(index: fp.Index, text: str, first: str | fp.FirstStage | None = None) -> list[str]:
    return [hit.id for hit in index.search(text, 10, first)]


# --- stages


def test_each_stage_lists_what_it_finds(index: fp.Index) -> None:
    assert ids(index, "red shoe", "bm25") == ["shoe", "cap", "boots"]
    assert set(ids(index, "red shoe", "dense")[:3]) == {"shoe", "sneaker", "boots"}
    assert set(ids(index, "red shoe", "hybrid")) >= {"shoe", "sneaker", "boots", "cap"}
    assert ids(index, "jacket", "bm25") == []
    assert set(ids(index, "jacket")) >= {"coat", "parka"}  # a hybrid, since there are vectors
    assert ids(index, "xyzzy", "dense") == []  # its vector is zero


def test_dense_scores_are_cosines(index: fp.Index) -> None:
    vectors = dict(
        zip((d["id"] for d in DOCUMENTS), encode([d["text"] for d in DOCUMENTS]), strict=True)
    )
    query = encode(["red shoe"])[0]
    for hit in index.search("red shoe", 10, "dense"):
        assert hit.score == pytest.approx(float(vectors[hit.id] @ query), abs=0.01)


def test_hybrid_is_the_fusion_of_both_lists(index: fp.Index) -> None:
    for fusion in (StageFusion(), StageFusion("scores", (0.3, 0.7), normalization="z-score")):
        stage = replace(index.stage("hybrid"), fusion=fusion)
        query = index.forward.query("red shoe")
        found = index.retrieve(query, 10, stage)
        lists = [index.retrieve(query, 100, kind) for kind in ("bm25", "dense")]
        rows, scores = fusion.fuse([(each.rows, each.scores) for each in lists])
        assert found.rows.tolist() == rows.tolist()
        assert found.scores.tolist() == scores.tolist()
        for row, ranks in zip(found.rows.tolist(), found.ranks(), strict=True):
            for name, listed in zip(("bm25", "dense"), lists, strict=True):
                expected = listed.rows.tolist().index(row) + 1 if row in listed.rows else None
                assert ranks.get(name) == expected


def test_the_usual_stage_follows_the_vectors(tmp_path: Path) -> None:
    index = fp.Index.from_documents(DOCUMENTS, tmp_path / "i", latent=0)
    assert index.first_stage.kind == "bm25"
    index.set_first_stage(replace(index.first_stage, typos=True))
    with pytest.warns(FirstpageWarning, match="1 of 7 documents have no text"):
        index.add_vectors(ENCODER)
    assert (index.first_stage.kind, index.first_stage.typos) == ("hybrid", True)
    index.set_first_stage(replace(index.first_stage, kind="bm25"))
    assert fp.Index(index.path).first_stage.kind == "bm25"
    assert ids(index, "jacket") == []
    assert ids(index, "crimsen") == ["sneaker"]


def test_vectors_that_are_lost_are_reported(tmp_path: Path) -> None:
    create(tmp_path / "i", vectors=ENCODER)
    with pytest.warns(FirstpageWarning, match=r"had vectors of tests.search.meaning:encode; the"):
        fp.Index.from_documents(DOCUMENTS, tmp_path / "i", latent=0, overwrite=True)


def test_without_vectors_nothing_is_found_by_meaning(tmp_path: Path) -> None:
    index = fp.Index.from_documents(DOCUMENTS, tmp_path / "i", latent=0)
    for kind in ("dense", "hybrid"):
        with pytest.raises(DataError, match=r"has no vectors, .*--vectors MODEL"):
            index.search("red", 10, kind)
    with pytest.raises(DataError, match="has no latent space"):
        index.search("red", 10, fp.FirstStage("dense", space="latent"))
    with pytest.raises(fp.FirstpageError, match="there is no first 'sparse'"):
        index.search("red", 10, "sparse")
    with pytest.raises(DataError, match="fuses the stages bm25, dense"):
        fp.FirstStage("hybrid", fusion=StageFusion(stages=("a", "b")))


def test_latent_documents_are_ranked_by_cosine() -> None:
    rng = np.random.default_rng(0)
    coordinates = rng.normal(size=(50, 4)).astype(np.float16)
    coordinates[7] = 0
    coordinates[20] = coordinates[30]  # a tie
    deleted = np.zeros(50, bool)
    deleted[3] = True
    vector = rng.normal(size=4)
    space = LatentDocuments(None, coordinates)  # type: ignore[arg-type]
    expected = cosines(coordinates, vector, 4)
    eligible = [row for row in range(50) if row not in (3, 7)]
    order = sorted(eligible, key=lambda row: (-np.float32(expected[row]), row))
    for depth in (1, 5, 48, 100):
        rows, scores = space.search(vector, depth, deleted)
        np.testing.assert_allclose(scores, expected[rows], atol=1e-6)
        np.testing.assert_allclose(expected[rows], expected[order[:depth]], atol=1e-6)
    assert space.search(np.zeros(4), 5, deleted)[0].size == 0


def test_query_vectors_are_computed_once_and_together() -> None:
    calls: list[list[str]] = []

    def record(texts: Sequence[str]) -> np.ndarray:
        calls.append(list(texts))
        return encode(texts)

    vectors = QueryVectors(record, 5)
    np.testing.assert_array_equal(
        vectors.of(["red", "coat", "red"]), encode(["red", "coat", "red"])
    )
    vectors.of(["coat", "  red "])
    assert calls == [["red", "coat"]]
    assert vectors.of([]).shape == (0, 5)
    with pytest.raises(DataError, match="shape"):
        QueryVectors(encode, 4).of(["red"])


def test_vectors_that_were_computed_elsewhere(tmp_path: Path) -> None:
    table = [document["id"] for document in DOCUMENTS if document["id"] != "plain"]
    texts = [document["text"] for document in DOCUMENTS if document["id"] != "plain"]
    with pytest.warns(FirstpageWarning, match="1 of 7 documents have no vectors"):
        index = fp.Index.from_documents(
            DOCUMENTS, tmp_path / "i", latent=0, vectors=(table, encode(texts))
        )
    assert index.first_stage.kind == "bm25"  # a typed text has no vector
    with pytest.raises(DataError, match="computed elsewhere, so the text 'jacket' has none"):
        index.search("jacket", 10, "hybrid")
    queries = [("a", "jacket"), ("b", "red  shoe")]
    vectors = encode([text for _, text in queries])
    index.set_query_vectors(queries, (["a", "b", "other"], [*vectors, vectors[0]]))
    assert set(ids(index, "jacket", "hybrid")[:2]) == {"coat", "parka"}
    data = fp.TextFeatures(index, "vector", first="dense").dataset(
        queries, index.candidates(queries, first="dense")
    )
    np.testing.assert_allclose(data.X[0, 0], 2**-0.5, atol=0.01)  # a blue coat
    with pytest.raises(DataError, match="1 of 2 queries have no vector, such as 'b'"):
        index.set_query_vectors(queries, (["a"], vectors[:1]))
    with pytest.raises(DataError, match=r"vectors of 4 dimensions; those of .* have 5"):
        index.set_query_vectors(queries, (["a", "b"], np.eye(2, 4)))
    plain = fp.Index.from_documents(DOCUMENTS, tmp_path / "plain", latent=0)
    with pytest.raises(DataError, match="has no vectors that queries"):
        plain.set_query_vectors(queries, (["a", "b"], vectors))


# --- tuning


def judged(n: int) -> tuple[list[tuple[str, str]], fp.Qrels]:
    """Queries whose words no document has, with the documents that mean the same."""
    pairs = [("sneaker trainer", "shoe"), ("crimson trainer", "sneaker"), ("jacket", "coat")]
    queries = [(f"q{i}", f"{pairs[i % 3][0]} {'red ' * (i % 2)}") for i in range(n)]
    qrels = fp.Qrels.from_dict({f"q{i}": {pairs[i % 3][1]: 2, "cap": 1} for i in range(n)})
    return queries, qrels


def test_tuning_chooses_a_hybrid_where_words_fail(index: fp.Index) -> None:
    queries, qrels = judged(30)
    with pytest.warns(FirstpageWarning, match="5 of the 30 judged queries are not in the run"):
        tuned = StageTuner(index, queries, qrels).tune()
    assert tuned.stage.kind in ("hybrid", "dense")
    assert tuned.fusion is not None
    assert tuned.fusion.fusion_values.mean() > tuned.fusion.stage_values[0].mean()
    words = StageTuner(index, queries, qrels, "bm25").tune()
    assert (words.stage.kind, words.fusion) == ("bm25", None)


def test_few_queries_keep_equal_weights(index: fp.Index) -> None:
    tuned = StageTuner(index, *judged(6)).tune()
    assert tuned.stage.fusion == StageFusion()
    assert "6 judged queries are too few" in tuned.verdict


def test_dense_has_nothing_to_tune(index: fp.Index) -> None:
    with pytest.raises(DataError, match="nothing to tune"):
        StageTuner(index, *judged(30), "dense")


def test_the_latent_space_must_be_significantly_better(tmp_path: Path) -> None:
    copies = [{**row, "id": f"{row['id']}{n}"} for n in ("", "-2", "-3") for row in DOCUMENTS]
    index = fp.Index.from_documents(copies, tmp_path / "i", latent=3)
    queries = [(f"q{i}", ("red shoe", "blue coat", "red cap")[i % 3]) for i in range(12)]
    best = ("shoe", "coat", "cap")
    qrels = fp.Qrels.from_dict({f"q{i}": {best[i % 3]: 1, "plain": 0} for i in range(12)})
    tuned = StageTuner(index, queries, qrels).tune()
    assert tuned.stage.kind == "bm25"
    assert "not significantly better than by words alone" in tuned.verdict


# --- features, models, searches


QUERIES = [("a", "red shoe"), ("b", "jacket"), ("c", "cap"), ("d", "navy coat")]
GRADES = {"a": {"shoe": 2, "sneaker": 1}, "b": {"coat": 1}, "c": {"cap": 1}, "d": {"parka": 1}}
NAMES = ("similarity", "first", "rank", "fused", "feedback")


@pytest.fixture(scope="module")
def model(index: fp.Index) -> fp.ListNet:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)
        data = fp.TextFeatures(index, "short").dataset(
            QUERIES, index.candidates(QUERIES), fp.Qrels.from_dict(GRADES)
        )
        return fp.ListNet().fit(data)


def test_vector_features(index: fp.Index) -> None:
    features = fp.TextFeatures(index, "vector")
    assert features.names == tuple(f"vector.{name}" for name in NAMES)
    rows = index.forward.rows(["cap", "shoe", "plain", "coat"], "test")
    X = features.compute(index.forward.query("red shoe"), rows)
    documents = encode(["A red cap", "A red shoe", "Nothing that has a color", "A blue coat"])
    similarity = documents @ encode(["red shoe"])[0]
    np.testing.assert_allclose(X[:, 0], similarity, atol=0.01)
    np.testing.assert_allclose(X[:, 1], similarity, atol=0.01)
    ranks = np.argsort(np.argsort(-X[:, 0], kind="stable"), kind="stable")
    assert X[1, 2] == X[:, 2].max() == 1
    assert sorted(X[:, 2], reverse=True) == pytest.approx(1 / np.log(np.e + np.arange(4)))
    assert ranks[1] == 0
    assert X[1, 3] == X[:, 3].max()
    assert np.isfinite(X).all()


def test_features_do_not_depend_on_other_queries_or_threads(index: fp.Index) -> None:
    features = fp.TextFeatures(index, "letor,matching,vector")
    run = index.candidates(QUERIES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)
        one, many = (features.dataset(QUERIES, run, threads=n) for n in (1, 4))
        alone = features.dataset(
            QUERIES[1:2], fp.Run.from_dict({"b": run.to_dict()["b"]}, "hybrid")
        )
    np.testing.assert_array_equal(one.X, many.X)
    np.testing.assert_array_equal(one[1:2].X, alone.X)


def test_a_model_searches_as_its_candidates_were_retrieved(
    index: fp.Index, model: fp.ListNet, tmp_path: Path
) -> None:
    searcher = fp.Searcher(index, model)
    assert searcher.first_stage.kind == "hybrid"
    results = searcher.search("jacket")
    assert {"coat", "parka"} <= set(results.ids)
    assert results.stage_ranks[0] == {"dense": results.first_stage_ranks[0]}
    model.save(tmp_path / "model.json")
    again = fp.Searcher(fp.Index(index.path, ENCODER), tmp_path / "model.json").search("jacket")
    assert again.ids == results.ids
    np.testing.assert_allclose(again.scores, results.scores)
    with pytest.raises(DataError, match=r"Name it with encoder="):
        fp.Searcher(fp.Index(index.path), model).search("jacket")
    with pytest.raises(DataError, match="is not the one that"):
        fp.Searcher(fp.Index(index.path, OTHER), model).search("jacket")
    assert fp.Searcher(index, model, first="bm25").search("jacket").ids == ()


def test_candidates_by_another_stage_are_reported(index: fp.Index) -> None:
    features = fp.TextFeatures(index, "vector")
    queries = QUERIES[:1]
    run = index.candidates(queries, first="bm25")
    assert run.name == "bm25"
    with pytest.warns(FirstpageWarning, match="retrieved by bm25, so models .* search by bm25 too"):
        data = features.dataset(queries, run)
    assert present(data.recipe)["first_stage"]["kind"] == "bm25"


def test_a_model_refuses_other_vectors(model: fp.ListNet, tmp_path: Path) -> None:
    without = fp.Index.from_documents(DOCUMENTS, tmp_path / "without", latent=4)
    with pytest.raises(DataError, match=r"was trained with vectors of .*, and .* has none"):
        fp.Searcher(without, model)
    other = create(tmp_path / "other", vectors=OTHER)
    with pytest.raises(DataError, match=r"was trained with vectors of .* are of .*encode_other"):
        fp.Searcher(other, model)

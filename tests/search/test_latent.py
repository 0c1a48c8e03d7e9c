"""The latent semantic space against the full decomposition of NumPy."""

from __future__ import annotations

import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

import firstpage as fp
from firstpage import Index, TextFeatures
from firstpage.core.errors import DataError, FirstpageWarning
from firstpage.search.analyzer import Analyzer
from firstpage.search.latent import LatentSpace, cosines, right_singular_vectors
from tests.search.plain import PlainCollection

TOPICS = (
    ["red", "shoe", "boot", "lace", "sole"], ["coat", "wool", "warm", "winter"],
    ["lamp", "light", "bulb", "watt"], ["chair", "wood", "table"],
)  # fmt: skip


def documents(count: int, seed: int = 0) -> list[dict[str, str]]:
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(count):
        topic, other = rng.choice(len(TOPICS), 2, replace=False)
        words = [*rng.choice(TOPICS[topic], 5), *rng.choice(TOPICS[other], 2), f"only{i}"]
        rows.append({"id": f"d{i}", "title": " ".join(words[:3]), "text": " ".join(words[3:])})
    return rows


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return Index.from_documents(documents(40), tmp_path_factory.mktemp("latent") / "i", latent=6)


def dense(index: Index) -> np.ndarray:
    """Return the TF-IDF matrix of terms in two documents or more, from plain vectors."""
    plain = PlainCollection(
        {d: {k: str(v) for k, v in index.document(d).items()} for d in index.forward.row_of},
        {"title": Analyzer(), "text": Analyzer()},
    )
    matrix = np.zeros((len(index), len(index.forward.terms)))
    for i, terms in enumerate(plain.terms.values()):
        for term in set(terms["document"]):
            if plain.df("document", term) >= 2:
                count = terms["document"].count(term)
                column = index.forward.terms.number(term)
                matrix[i, column] = (1 + math.log(count)) * plain.idf("document", term)
    return matrix / np.linalg.norm(matrix, axis=1, keepdims=True)


def test_the_space_is_that_of_the_largest_singular_values(index: Index) -> None:
    space = index.latent
    assert space is not None
    matrix = dense(index)
    _, singular, directions = np.linalg.svd(matrix)
    assert singular[5] > singular[6] + 1e-3
    ours = np.zeros((matrix.shape[1], 6))
    ours[space.terms] = space.projection
    np.testing.assert_allclose(ours.T @ ours, np.eye(6), atol=1e-5)
    np.testing.assert_allclose(np.abs(np.sum(ours.T * directions[:6], axis=1)), 1, atol=1e-3)
    np.testing.assert_allclose(index.latent_vectors, matrix @ ours, atol=2e-3)


@pytest.mark.parametrize("shape", [(30, 300), (300, 30), (40, 40), (2, 5)])
def test_singular_vectors_match_the_exact_decomposition(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    left, _, right = np.linalg.svd(rng.normal(size=shape), full_matrices=False)
    values = 0.5 ** np.arange(min(shape))
    matrix = csr_array((left * values) @ right)
    rank = min(6, min(shape) - 1)
    vectors = right_singular_vectors(matrix, rank, seed=0)
    assert vectors.shape == (shape[1], rank)
    np.testing.assert_allclose(np.abs(np.sum(vectors.T * right[:rank], axis=1)), 1)
    assert (vectors.max(axis=0) >= -vectors.min(axis=0)).all()  # the sign of the largest element


def test_a_folded_document_gets_the_coordinates_of_its_copy(index: Index) -> None:
    space = index.latent
    assert space is not None
    again = space.documents(index.forward, np.arange(10, 20))
    np.testing.assert_array_equal(again, index.latent_vectors[10:20])
    query = index.forward.query("red shoe boot boot lace")
    coordinates = space.query(query)
    copy = index.path.with_name("copy")
    rows = [*documents(40), {"id": "copy", "text": "red shoe boot boot lace"}]
    other = Index.from_documents(rows, copy, latent=0)
    vectors = space.documents(other.forward, np.array([40]))
    assert cosines(vectors, coordinates, 6)[0] == pytest.approx(1, abs=1e-3)


def test_it_is_deterministic(index: Index) -> None:
    again = LatentSpace.fit(index.forward, 6)
    assert again is not None
    assert index.latent is not None
    assert again.digest == index.latent.digest


def test_queries_without_known_terms(index: Index) -> None:
    assert index.latent is not None
    for text in ("zebra", "", "only3"):  # a term of one document is not in the space
        coordinates = index.latent.query(index.forward.query(text))
        assert not coordinates.any()
        assert not cosines(index.latent_vectors, coordinates, 6).any()


def test_similarity_finds_documents_of_the_topic_without_the_word(tmp_path: Path) -> None:
    index = Index.from_documents(documents(60), tmp_path / "i", latent=32)
    with pytest.warns(FirstpageWarning, match="no latent.similarity_32, latent.similarity_128"):
        features = TextFeatures(index, "latent")
    assert features.names == ("latent.feedback",)


def test_cosines_are_the_features(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    words = [f"w{i}" for i in range(80)]
    rows = [{"id": i, "title": " ".join(rng.choice(words, 12))} for i in range(90)]
    index = Index.from_documents(rows, tmp_path / "i", latent=40)
    with pytest.warns(
        FirstpageWarning, match="has 40 dimensions, so there is no latent.similarity_128;"
    ):
        features = TextFeatures(index, "latent")
    assert features.names == ("latent.similarity_32", "latent.feedback")
    query = index.forward.query("w1 w2 w2 w3")
    found = index.retrieve(query, 30)
    candidates, scores = found.rows, found.scores
    X = features.compute(query, candidates)
    assert index.latent is not None
    vectors = index.latent_vectors[candidates].astype(float)
    target = index.latent.query(query)[:32]
    expected = [v[:32] @ target / np.linalg.norm(v[:32]) / np.linalg.norm(target) for v in vectors]
    np.testing.assert_allclose(X[:, 0], expected, rtol=1e-5)
    unit = [v / np.linalg.norm(v) for v in vectors]
    mean = sum(s * v for s, v in zip(scores[:10], unit[:10], strict=True))
    expected = [v @ mean / np.linalg.norm(mean) for v in unit]
    np.testing.assert_allclose(X[:, 1], expected, rtol=1e-5)


@pytest.mark.parametrize(
    "rows",
    [
        [{"id": 1, "title": "red shoe"}],
        [{"id": 1, "title": "red shoe"}, {"id": 2, "title": "blue coat"}],
        [{"id": 1, "title": "red"}, {"id": 2, "title": "red"}],
    ],
)
def test_too_few_documents(rows: list[dict[str, object]], tmp_path: Path) -> None:
    index = Index.from_documents(rows, tmp_path / "i")
    assert index.latent is None
    assert index.latent_vectors.shape == (len(rows), 0)
    with pytest.warns(
        FirstpageWarning, match=r"there is no latent space, .* no features latent\.\*;"
    ):
        names = TextFeatures(index).names
    assert not [name for name in names if name.startswith("latent")]


def latent_data(index: Index) -> fp.Dataset:
    """Return labeled features of the latent space; that it is not of today is reported."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        features = TextFeatures(index, "latent")
    assert "1 documents came and 1 went after the latent space" in str(caught[0].message)
    queries = [("q", "red shoe")]
    data = features.dataset(queries, index.candidates(queries))
    return data.with_labels(np.arange(data.n_docs))


def test_an_outdated_latent_space_is_reported_by_the_change(tmp_path: Path) -> None:
    index = Index.from_documents(documents(40), tmp_path / "i", latent=6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        index.add([{"id": f"new{i}", "title": "red shoe"} for i in range(3)])
        index.delete(["d3"])
    with pytest.warns(FirstpageWarning, match="3 documents came and 2 went after the latent"):
        index.delete(["d4"])


def test_changes_fold_in_and_a_new_fit_changes_the_fingerprint(tmp_path: Path) -> None:
    index = Index.from_documents(documents(40), tmp_path / "i", latent=6)
    before = index.fingerprint
    index.add([{"id": "new", "title": "red shoe boot", "text": "lace"}])
    index.delete(["d3"])
    assert index.latent_vectors.shape == (41, 6)
    assert index.fingerprint == before
    expected = index.latent.documents(index.forward, np.arange(41))  # type: ignore[union-attr]
    np.testing.assert_array_equal(index.latent_vectors, expected)
    model = fp.ListNet().fit(latent_data(index))
    with pytest.warns(FirstpageWarning, match="61 documents came and 1 went after the latent"):
        index.add([{**row, "id": f"more{row['id']}"} for row in documents(60, 1)])
    assert index.latent_changes == (61, 1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        searcher = fp.Searcher(index, model)
    assert "61 documents came and 1 went" in str(caught[-1].message)
    index.fit_latent(6)
    assert index.latent_changes == (0, 0)
    with pytest.raises(DataError, match="has changed; create the features again"):
        searcher.search("red shoe")
    assert index.fingerprint != before
    index.delete(index.forward.ids[:0])
    assert index.latent_changes == (0, 0)
    index.fit_latent(0)
    assert index.latent is None

"""BM25 against a plain reference and against bm25s; tuning against brute force."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from firstpage import Index, Qrels
from firstpage.core.errors import DataError
from firstpage.search.analyzer import Analyzer
from firstpage.search.first_stage import FirstStage
from firstpage.search.retrieval import BM25
from firstpage.search.tuning import GRID_B, GRID_K1, CandidatePools
from tests.search.plain import PlainCollection

WORDS = [f"w{i}" for i in range(30)]
FIELDS = ("title", "text")


def documents(seed: int, count: int) -> dict[str, dict[str, str]]:
    rng = np.random.default_rng(seed)
    probability = 1 / np.arange(1, len(WORDS) + 1)
    probability /= probability.sum()

    def text(longest: int) -> str:
        return " ".join(rng.choice(WORDS, rng.integers(0, longest), p=probability))

    return {f"d{i}": {"title": text(5), "text": text(20)} for i in range(count)}


@pytest.fixture(scope="module")
def collection() -> dict[str, dict[str, str]]:
    return documents(0, 60)


@pytest.fixture(scope="module")
def plain(collection: dict[str, dict[str, str]]) -> PlainCollection:
    return PlainCollection(collection, dict.fromkeys(FIELDS, Analyzer()))


@pytest.fixture(scope="module")
def index(collection: dict[str, dict[str, str]], tmp_path_factory: pytest.TempPathFactory) -> Index:
    rows = [{"id": name, **values} for name, values in collection.items()]
    path = tmp_path_factory.mktemp("retrieval") / "i"
    return Index.from_documents(rows, path, fields=dict.fromkeys(FIELDS, "text"), latent=0)


QUERIES = ("w1 w5", "w20 w20 w3", "w0", "w29 zebra", "w4 w7 w11 w2")
SCORINGS = (
    BM25(),
    BM25(k1=0.0),
    BM25(k1=0.9, b=0.4),
    BM25(b=0.0),
    BM25(b=1.0, k1=3.0),
    BM25(weights={"title": 3.0}),
    BM25(weights={"title": 0.0}),
    BM25(weights={"text": 0.5}),
)


@pytest.mark.parametrize("scoring", SCORINGS, ids=str)
@pytest.mark.parametrize("text", QUERIES)
def test_scores_and_order(index: Index, plain: PlainCollection, text: str, scoring: BM25) -> None:
    scores = {
        name: plain.bm25(text, name, scoring.k1, scoring.b, scoring.weights) for name in plain.terms
    }
    expected = [name for name in plain.terms if scores[name] > 0]  # in the order of the rows
    expected.sort(key=lambda name: -round(scores[name], 9))
    hits = index.search(text, 100, scoring)
    np.testing.assert_allclose([h.score for h in hits], [scores[h.id] for h in hits], rtol=1e-9)
    assert {hit.id for hit in hits} == set(expected)
    if scoring.k1:  # rounding may order what is equal in theory
        ordered = sorted(hits, key=lambda hit: (-round(hit.score, 9), hit.row))
        assert [hit.id for hit in ordered] == expected
    assert [hit.id for hit in index.search(text, 3, scoring)] == [hit.id for hit in hits[:3]]


def test_ties_are_in_the_order_of_rows(tmp_path: Path) -> None:
    rows = [{"id": name, "title": "red shoe"} for name in "zyxabc"]
    index = Index.from_documents(rows, tmp_path / "i", latent=0)
    assert [hit.id for hit in index.search("red", 4)] == list("zyxa")


@pytest.mark.parametrize(("k1", "b"), [(1.2, 0.75), (0.9, 0.4)])
def test_scores_of_bm25s(index: Index, plain: PlainCollection, k1: float, b: float) -> None:
    bm25s = pytest.importorskip("bm25s")
    other = bm25s.BM25(method="lucene", k1=k1, b=b)
    other.index([terms["document"] for terms in plain.terms.values()], show_progress=False)
    for text in ("w1 w5", "w0", "w4 w7 w11 w2"):
        theirs = other.get_scores(Analyzer().terms(text))
        found = index.retrieve(index.forward.query(text), 100, BM25(k1, b))
        rows, scores = found.rows, found.scores
        np.testing.assert_allclose(scores, theirs[rows] * (k1 + 1), rtol=1e-5)
        assert len(rows) == np.count_nonzero(theirs)


REFUSED = [
    ({"k1": -1.0}, "k1 of BM25 must be a number of at least 0; got -1"),
    ({"k1": float("nan")}, "k1 of BM25 must be"),
    ({"b": 1.5}, "b of BM25 must be between 0 and 1; got 1.5"),
    ({"weights": {"title": -1.0}}, "the weight of field 'title' must be"),
    ({"weights": {"brand": 1.0}}, "the index has no text field 'brand'; it has title, text"),
    ({"weights": {"title": 0.0, "text": 0.0}}, "at least one text field must have a weight"),
]


@pytest.mark.parametrize(("parameters", "message"), REFUSED)
def test_refused_parameters(index: Index, parameters: dict[str, float], message: str) -> None:
    with pytest.raises(DataError, match=message):
        index.search("w1", first=BM25(**parameters))  # type: ignore[arg-type]


def test_stored_scoring(collection: dict[str, dict[str, str]], tmp_path: Path) -> None:
    rows = [{"id": name, **values} for name, values in collection.items()]
    index = Index.from_documents(rows, tmp_path / "i", latent=0)
    scoring = BM25(0.9, 0.4, {"title": 2.0})
    index.set_first_stage(FirstStage(scoring=scoring))
    index.add([{"id": "new", "title": "w1"}])
    for each in (index, Index(index.path)):
        assert each.first_stage.scoring == scoring == BM25.from_dict(scoring.to_dict())
        assert each.search("w1 w3") == index.search("w1 w3", 10, scoring)
    with pytest.raises(DataError, match="no text field 'brand'"):
        index.set_first_stage(FirstStage(scoring=BM25(weights={"brand": 1.0})))


# --- tuning


def judgments(plain: PlainCollection, scoring: BM25) -> Qrels:
    """Return grades that follow a hidden scoring."""
    table: dict[str, dict[str, float]] = {}
    for number, text in enumerate(QUERIES):
        names = sorted(
            plain.terms,
            key=lambda n: -plain.bm25(text, n, scoring.k1, scoring.b, scoring.weights),
        )
        table[f"q{number}"] = {name: float(max(0, 3 - i)) for i, name in enumerate(names[:6])}
    return Qrels.from_dict(table)


def ndcg(index: Index, qrels: Qrels, scoring: BM25, depth: int) -> float:
    """Return the mean NDCG of what is retrieved, in its order."""
    judged, values = qrels.to_dict(), []
    for number, text in enumerate(QUERIES):
        grades = judged[f"q{number}"]
        ranked = [grades.get(hit.id, 0.0) for hit in index.search(text, depth, scoring)]
        ideal = sorted(grades.values(), reverse=True)[:depth]
        dcg, best = (
            sum((2**g - 1) / math.log2(i + 2) for i, g in enumerate(gains))
            for gains in (ranked, ideal)
        )
        values.append(dcg / best)
    return sum(values) / len(values)


@pytest.mark.parametrize("depth", [3, 10])
def test_tuning_of_one_field_is_exhaustive(
    depth: int, plain: PlainCollection, tmp_path: Path
) -> None:
    rows = [{"id": n, "text": " ".join(terms["document"])} for n, terms in plain.terms.items()]
    index = Index.from_documents(rows, tmp_path / "i", fields={"text": "text"}, latent=0)
    qrels = judgments(plain, BM25(3.0, 0.2, {"title": 4.0}))
    queries = [(f"q{number}", text) for number, text in enumerate(QUERIES)]
    best, value = index.tune(queries, qrels, depth)
    grid = product(GRID_K1, GRID_B)
    expected = max(ndcg(index, qrels, BM25(k1, b), depth) for k1, b in grid)
    assert value == pytest.approx(expected, abs=1e-12)
    assert ndcg(index, qrels, best, depth) == pytest.approx(value, abs=1e-12)


def test_tuning_of_fields(index: Index, plain: PlainCollection) -> None:
    """No single step of the grids improves what was chosen."""
    qrels = judgments(plain, BM25(0.4, 0.2, {"title": 8.0}))
    queries = [*((f"q{n}", text) for n, text in enumerate(QUERIES)), ("unjudged", "w1"), ("q9", "")]
    steps: list[tuple[int, int]] = []
    best, value = index.tune(queries, qrels, 10, lambda *step: steps.append(step))
    assert steps == [(i, 6) for i in range(1, 7)]
    assert ndcg(index, qrels, best, 10) == pytest.approx(value, abs=1e-12)
    assert value > ndcg(index, qrels, BM25(), 10) + 0.05
    for k1, b in product(GRID_K1, GRID_B):
        assert ndcg(index, qrels, BM25(k1, b, best.weights), 10) <= value + 1e-12


@pytest.mark.parametrize("depth", [1, 3, 200])
def test_trials_are_those_of_retrieval(index: Index, plain: PlainCollection, depth: int) -> None:
    qrels = judgments(plain, BM25(0.4, 0.2, {"title": 8.0}))
    queries = [(f"q{number}", text) for number, text in enumerate(QUERIES)]
    pools = CandidatePools(index.forward, index.engine, queries, qrels, depth)
    value = pools._objective(list(pools._pools.values()))
    for scoring in SCORINGS:
        assert value(scoring) == pytest.approx(ndcg(index, qrels, scoring, depth), abs=1e-12)


def test_tuning_on_some_queries(index: Index, plain: PlainCollection) -> None:
    qrels = judgments(plain, BM25(3.0, 0.2, {"title": 4.0}))
    queries = [(f"q{number}", text) for number, text in enumerate(QUERIES)]
    pools = CandidatePools(index.forward, index.engine, queries, qrels)
    for names in ({"q0"}, {"q1", "q3"}):
        expected = index.tune([query for query in queries if query[0] in names], qrels)
        assert pools.tune(names) == expected
    with pytest.raises(DataError, match="no query with a relevant document is among the queries"):
        pools.tune({"other"})


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"other": {"d1": 1.0}}, "no query with a relevant document is among the queries"),
        ({"q0": {"d1": 0.0}}, "no query with a relevant document is among the queries"),
        ({"q0": {"stray": 1.0}}, "a search finds no relevant document of 1 queries"),
    ],
)
def test_tuning_needs_judgments_of_what_a_search_finds(
    index: Index, table: dict[str, dict[str, float]], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        index.tune([("q0", "w1")], Qrels.from_dict(table))

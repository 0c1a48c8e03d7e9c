"""Every feature against a plain reference, and counts against those of the engine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from firstpage import Index, TextFeatures
from firstpage.search.analyzer import Analyzer
from firstpage.search.families import FAMILIES
from tests.search.plain import PlainCollection

WORDS = [
    "red",
    "red",
    "shoe",
    "shoes",
    "running",
    "run",
    "coat",
    "the",
    "of",
    "warm",
    "blue",
    "winter",
    "c++",
    "flow",
    "über",
]
FAMILY_NAMES = [name for name in FAMILIES if name not in ("latent", "vector")]
pytestmark = pytest.mark.filterwarnings("ignore:.*no document has a value of these declared fields")

Documents = dict[str, dict[str, str]]


def random_documents(seed: int, count: int, fields: tuple[str, ...]) -> Documents:
    rng = np.random.default_rng(seed)
    return {
        f"d{i}": {
            field: " ".join(rng.choice(WORDS, rng.integers(1, 12)))
            for field in fields
            if rng.random() < 0.8
        }
        for i in range(count)
    }


def indexed(documents: Documents, path: Path, fields: Mapping[str, str]) -> Index:
    rows = [{"id": name, **values} for name, values in documents.items()]
    return Index.from_documents(rows, path, fields=fields, latent=0)


COLLECTIONS: dict[str, tuple[Documents, dict[str, str]]] = {
    "one field": (random_documents(0, 12, ("text",)), {"text": "english"}),
    "three fields": (
        random_documents(1, 14, ("title", "text", "notes")),
        dict.fromkeys(("title", "text", "notes"), "english"),
    ),
    "other analyzers": (
        random_documents(2, 16, ("title", "text", "notes")),
        {"title": "english", "text": "none", "notes": "german"},
    ),
    "one document": ({"d": {"title": "red shoe", "text": ""}}, {"title": "text", "text": "text"}),
    "empty documents": (
        {"a": {"title": "red red shoe"}, "b": {}, "c": {"text": "the of"}},
        {"title": "text", "text": "text"},
    ),
}
QUERIES = (
    "red shoes", "shoes running red shoes red", "zebra red", "zebra", "", "the of", "warm",
    "winter coat blue coat warm", "c++ flow", "run running", "red zebra shoe zebra", "über",
)  # fmt: skip


def analyzers_of(fields: Mapping[str, str]) -> dict[str, Analyzer]:
    languages = {name: "english" if kind == "text" else kind for name, kind in fields.items()}
    order = sorted(languages, key=lambda name: (name != "title", name != "text"))
    return {name: Analyzer(languages[name]) for name in order}


def assert_features(index: Index, plain: PlainCollection) -> None:
    """Compare all features of all live documents with the reference, for every query."""
    features = TextFeatures(index, FAMILY_NAMES)
    row_of = index.forward.row_of
    assert set(row_of) == set(plain.terms)
    names = sorted(row_of, key=lambda name: row_of[name])
    rows = np.array([row_of[name] for name in names])
    for text in QUERIES:
        X = features.compute(index.forward.query(text), rows)
        expected = plain.features(text, names)
        assert set(features.names) == set(expected[names[0]])
        for i, name in enumerate(names):
            values = dict(zip(features.names, X[i].tolist(), strict=True))
            assert values == pytest.approx(expected[name], rel=2e-6, abs=1e-6), (text, name)


@pytest.mark.parametrize("name", COLLECTIONS)
def test_features(name: str, tmp_path: Path) -> None:
    documents, fields = COLLECTIONS[name]
    index = indexed(documents, tmp_path / "i", fields)
    assert_features(index, PlainCollection(documents, analyzers_of(fields)))


def test_features_after_changes(tmp_path: Path) -> None:
    """Deleted and replaced documents leave no trace, nor do terms that only they contained."""
    documents, fields = COLLECTIONS["other analyzers"]
    index = indexed(documents, tmp_path / "i", fields)
    live = {
        name: dict(values)
        for name, values in documents.items()
        if not any("flow" in text or "winter" in text for text in values.values())
    }
    assert 2 < len(live) < len(documents) - 2
    index.delete(set(documents) - set(live))
    live["d1"] = {"title": "replaced shoe", "text": "runs"}
    live["new"] = {"notes": "red flow"}
    index.add([{"id": name, **live[name]} for name in ("d1", "new")])
    assert len(index.forward.query("winter").terms) == 0
    assert_features(index, PlainCollection(live, analyzers_of(fields)))


def test_features_keep_up_with_an_index_that_changes(tmp_path: Path) -> None:
    documents, fields = COLLECTIONS["one field"]
    index = indexed(documents, tmp_path / "i", fields)
    features = TextFeatures(index, FAMILY_NAMES)
    index.add([{"id": "new", "text": "a hundred new words about red zebras"}])
    row = np.array([index.forward.row_of["new"]])
    again = TextFeatures(Index(tmp_path / "i"), FAMILY_NAMES)
    query = index.forward.query("red zebra")
    np.testing.assert_array_equal(features.compute(query, row), again.compute(query, row))


@pytest.mark.parametrize("name", COLLECTIONS)
def test_counts_are_those_of_the_engine(name: str, tmp_path: Path) -> None:
    documents, fields = COLLECTIONS[name]
    index = indexed(documents, tmp_path / "i", fields)
    plain = PlainCollection(documents, analyzers_of(fields))
    forward = index.forward
    assert forward.n_terms == len({t for d in plain.terms.values() for t in d["document"]})
    for number, term in enumerate(forward.terms.terms[1:], 1):
        for f, field in enumerate(forward.fields):
            df = plain.df(field, term)
            assert forward.df[f, number] == index.engine.searcher.doc_freq(f"f{f}", term) == df
            assert forward.cf[f, number] == plain.cf(field, term)
        assert forward.df[-1, number] == plain.df("document", term)

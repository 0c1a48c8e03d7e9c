"""Which features are chosen, by labels that some of them explain."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import DataError, FirstpageWarning
from firstpage.data.dataset import Dataset

SHORT = ("title.bm25", "text.coverage", "price.value", "size", "vector.similarity")
LONG = tuple(f"title.{name}_sum" for name in ("tf", "idf", "tfidf"))
RECIPE: dict[str, Any] = {
    "features": [*SHORT, *LONG], "own": ["size=own:size"], "embed": None,
    "schema": {"text": {"title": {}, "text": {}}, "number": ["price"], "date": [], "ignore": []},
}  # fmt: skip


def data(queries: int, column: str | None, documents: int = 12) -> Dataset:
    """Return data whose labels are explained by one feature, or by none."""
    rng = np.random.default_rng(queries)
    X = rng.normal(size=(queries * documents, len(RECIPE["features"])))
    names = (*SHORT, *LONG)
    y = np.zeros(len(X)) if column is None else (X[:, names.index(column)] > 0.8).astype(float)
    qid = np.repeat([f"q{q}" for q in range(queries)], documents)
    made = Dataset.from_arrays(X, y, qid, feature_names=names, source="shop")
    return replace(made, recipe=RECIPE)


def chosen(source: Dataset, message: str) -> Dataset:
    with pytest.warns(FirstpageWarning, match=message) as caught:
        result = fp.choose_features(source)
    assert len(caught) == 1
    return result


@pytest.mark.parametrize("queries", [10, 40])
def test_all_features_stay_if_they_help(queries: int) -> None:
    source = data(queries, LONG[1])
    message = r"shop: chose all 8 features, not 5: .* judged queries, and all must be better"
    assert chosen(source, message) is source


@pytest.mark.parametrize("queries", [2, 5, 40])
def test_the_short_set_is_chosen_if_it_ranks_as_well(queries: int) -> None:
    source = data(queries, SHORT[0])
    result = chosen(source, r"shop: chose 5 features \(short, values\) of 8: cross-validated ListN")
    assert result.feature_names == SHORT
    assert result.recipe == {**RECIPE, "features": list(SHORT)}
    np.testing.assert_array_equal(result.X, source.X[:, : len(SHORT)])
    np.testing.assert_array_equal(result.y, source.y)


@pytest.mark.parametrize("source", [data(1, LONG[1]), data(30, None)], ids=["one", "no relevant"])
def test_too_few_labels_choose_the_short_set(source: Dataset) -> None:
    result = chosen(source, "since fewer than two queries have different labels")
    assert result.feature_names == SHORT


def test_nothing_is_chosen_where_all_is_short() -> None:
    source = replace(data(5, SHORT[0]).with_features(np.ones((60, 5)), SHORT), recipe=RECIPE)
    assert fp.choose_features(source) is source


def test_data_of_unknown_features_are_refused() -> None:
    with pytest.raises(DataError, match="does not record how its features were computed"):
        fp.choose_features(Dataset.from_arrays([[1.0]], [1], ["q"]))

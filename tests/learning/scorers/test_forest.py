"""Our forests score missing values and categories exactly as the libraries do."""

import numpy as np
import pytest

from firstpage.core.types import Array, Floats
from firstpage.learning.scorers.forest import lightgbm_forest, xgboost_forest
from firstpage.learning.scorers.tree_scoring import TreesScoring
from firstpage.serving.forests import flat_forest

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")


def features(rng: np.random.Generator, missing: float, rows: int = 300) -> Floats:
    """Two categories (columns 0 and 1) and four numbers, many of them 0."""
    numbers = np.round(rng.normal(0, 1, (rows, 4)), 1) * (rng.random((rows, 4)) < 0.8)
    codes = np.column_stack([rng.integers(0, 5, rows), rng.integers(0, 80, rows)])
    X = np.column_stack([codes, numbers]).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    return X


def label(X: Floats, rng: np.random.Generator) -> Floats:
    known = np.nan_to_num(X, nan=2.0)
    noise = rng.normal(0, 0.1, len(X))
    return np.sin(known[:, 0] * 2) + np.cos(known[:, 1]) + known[:, 2] - (known[:, 3] > 0) + noise


def grow_lightgbm(X: Floats, y: Floats, **options: object) -> str:
    params = {
        "objective": "regression", "verbosity": -1, "num_leaves": 12, "min_data_in_leaf": 3,
        "min_data_per_group": 3, "cat_smooth": 1.0, "num_threads": 1, **options,
    }  # fmt: skip
    data = lightgbm.Dataset(X, y, categorical_feature=[0, 1], params=params)
    return str(lightgbm.train(params, data, 12).model_to_string())


def grow_xgboost(X: Floats, y: Floats) -> str:
    kinds = ["c", "c", *["q"] * (X.shape[1] - 2)]
    data = xgboost.DMatrix(X, y, feature_types=kinds, enable_categorical=True)
    params = {"tree_method": "hist", "max_depth": 5, "base_score": 0.0, "nthread": 1}
    booster = xgboost.train({**params, "max_cat_to_onehot": 4}, data, 12)
    return bytes(booster.save_raw("json")).decode()


def strange(rng: np.random.Generator) -> Array:
    """Rows with values that the training data do not have: unknown categories, tiny numbers."""
    X = features(rng, 0.2)
    values = [-7.0, -1.0, -0.5, 0.5, 3.7, 90.0, 5000.0, 1e-36, -1e-36, 1e30]
    where = rng.random(X.shape) < 0.1
    X[where] = rng.choice(values, int(where.sum()))
    return X


@pytest.mark.parametrize("missing", [0.0, 0.05, 0.4])
@pytest.mark.parametrize("zero_as_missing", [False, True])
@pytest.mark.parametrize("use_missing", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_forests_of_lightgbm(
    seed: int, missing: float, zero_as_missing: bool, use_missing: bool
) -> None:
    rng = np.random.default_rng(seed)
    X = features(rng, missing)
    text = grow_lightgbm(X, label(X, rng), zero_as_missing=zero_as_missing, use_missing=use_missing)
    forest, scoring = lightgbm_forest(text, "model"), TreesScoring("lightgbm", text, 6)
    flat = flat_forest(scoring)
    assert flat is not None
    for rows in (X, strange(rng)):
        expected = scoring.predict(rows)
        assert np.array_equal(forest.scores(rows), expected)
        assert np.array_equal(flat.predict(rows), expected)
        narrow = rows.astype(np.float32)
        assert np.array_equal(flat.predict(narrow), scoring.predict(narrow))


@pytest.mark.parametrize("missing", [0.0, 0.05, 0.4])
@pytest.mark.parametrize("seed", range(4))
def test_forests_of_xgboost(seed: int, missing: float) -> None:
    rng = np.random.default_rng(seed)
    X = features(rng, missing)
    text = grow_xgboost(X, label(X, rng))
    forest, scoring = xgboost_forest(text, "model"), TreesScoring("xgboost", text, 6)
    flat = flat_forest(scoring)
    assert flat is not None
    others = strange(rng)
    others[:, :2] = np.abs(others[:, :2])  # XGBoost's left and right differ for negative ones
    for rows in (X, others):
        assert np.array_equal(forest.scores(rows), scoring.predict(rows))
        assert np.array_equal(flat.predict(rows), scoring.predict(rows))


def test_splits_on_categories_are_used() -> None:
    """The property tests above cover categories, missing values and zeros read as missing."""
    rng = np.random.default_rng(0)
    X = features(rng, 0.2)
    forest = lightgbm_forest(grow_lightgbm(X, label(X, rng)), "model")
    assert forest.missing
    assert set(forest.categories) == {0, 1}
    zeros = lightgbm_forest(grow_lightgbm(X, label(X, rng), zero_as_missing=True), "model")
    assert any(len(tree.feature) > 23 for tree in zeros.trees)  # 12 leaves and chains
    assert not lightgbm_forest(grow_lightgbm(np.nan_to_num(X), label(X, rng)), "model").missing
    assert xgboost_forest(grow_xgboost(X, label(X, rng)), "model").categories

"""Models of every kind, over features of very different magnitudes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from tests.narrow import dense

SIZES = np.array([1.0, 2e8, 1e-3, 1e-30, 1e-7, 40.0])
NAMES = ['title "bm25"', "views</feature>", "ctr\n}", "ü ${text} {{x}}", "'''\\", "f<=1"]


@cache
def dataset() -> fp.Dataset:
    """Return float32 features from 1e-30 to 2e8, with integers and negative numbers."""
    data = fp.Synthetic(queries=40, docs=15, features=6, grades=3, seed=4).dataset()
    X = (data.X * SIZES).astype(np.float32)
    X[:, 0] = -1 + X[:, 0] * 1e-5  # near -1: where Solr's addition is hardest to undo
    X[:, 5] = np.round(X[:, 5])
    return data.with_features(X, NAMES)


RANKERS = {
    "linear": lambda normalize: fp.ListMLE(normalize=normalize),
    "features": lambda normalize: fp.AdaRank(weak="features", normalize=normalize),
    "lightgbm": lambda normalize: fp.LambdaMART(
        scorer="trees(count=30, leaves=15, min_docs=5)", normalize=normalize
    ),
    "xgboost": lambda normalize: fp.ListMLE(
        scorer="trees(count=30, leaves=15, library=xgboost)", normalize=normalize
    ),
    "stumps": lambda normalize: fp.RankBoost(rounds=60, normalize=normalize),
}


@cache
def _fitted(kind: str, normalize: str | None) -> Any:
    return RANKERS[kind](normalize).fit(dataset())


def ranker(kind: str, normalize: str | None = None) -> Any:
    """Return a fitted ranker, cached."""
    return _fitted(kind, normalize)


def predict(fitted: Any, X: np.ndarray) -> np.ndarray:
    """Return the scores of all rows as one query."""
    names = getattr(fitted, "feature_names_in_", None)
    zeros = np.zeros(len(X), int)
    return fitted.predict(fp.Dataset.from_arrays(X, zeros, zeros, feature_names=names))


@pytest.fixture
def data() -> fp.Dataset:
    return dataset()


@dataclass
class Probe:
    """Inputs, and the magnitudes relative to which rounding errors are measured."""

    X: np.ndarray
    sizes: np.ndarray

    def error(self, actual: np.ndarray, expected: np.ndarray, floor: float = 1e-300) -> float:
        """Return the greatest error relative to the magnitudes, which are at least `floor`."""
        errors = np.abs(np.asarray(actual, np.float64) - expected)
        return float((errors / np.maximum(self.sizes, floor)).max())


TOLERANCE = 1e-6  # relative error of an export


def without_tiny(probes: Probe) -> Probe:
    """Return the probes without nonzero numbers below 1e-30."""
    rows = ((np.abs(probes.X) >= 1e-30) | (probes.X == 0)).all(axis=1)
    assert rows.sum() > len(rows) / 3
    return Probe(probes.X[rows], probes.sizes[rows])


@cache
def probe(fitted: Any, seed: int = 0) -> Probe:
    """Return random and extreme float32 numbers, and all thresholds with their neighbors."""
    from firstpage.interop.export.export_model import ExportModel, export_features

    rng = np.random.default_rng(seed)
    usual = dataset().X[rng.integers(0, dataset().n_docs, 600)]
    wild = rng.normal(0, 1, usual.shape) * 10.0 ** rng.integers(-28, 9, usual.shape)
    odd = np.array([0, -0.0, 1e-45, -1e-45, 1e-40, 1e-35, -1e-35, 2e8, -2e8, 1, -1, 1e-6])
    strange = rng.choice(odd, usual.shape)
    X = np.concatenate([usual, wild.astype(np.float32), strange.astype(np.float32)])
    model, transform = fitted.model_, getattr(fitted, "transform_", None)
    known = export_features(None, None, model.n_features)
    export_model = ExportModel("m", known, model, transform, "r", "model")
    if export_model.kind == "linear":
        weights, intercept = export_model.weights()
        return Probe(X, np.abs(X.astype(np.float64)) @ np.abs(weights) + abs(intercept))
    forest = export_model.forest32() if transform is None or transform.per == "global" else None
    forest = forest or export_model.own_forest()
    blocks = [X]
    for feature in forest.used_features():
        exact = forest.thresholds(feature).astype(np.float32)
        neighbors = (np.nextafter(exact, np.float32(side)) for side in (-np.inf, np.inf))
        near = np.concatenate([exact, *neighbors])
        rows = usual[rng.integers(0, len(usual), len(near))].copy()
        rows[:, feature] = near
        blocks.append(dense(rows))
    X = np.concatenate(blocks)
    return Probe(X, forest.scores_and_magnitudes(X)[1])


def sizes_of(fitted: Any, X: np.ndarray) -> np.ndarray:
    """Return the sum of absolute terms of each score, for unscaled features."""
    if fitted.model_.coefficients is None:
        return fitted.model_.forest("model").scores_and_magnitudes(X)[1]
    weights, intercept = fitted.model_.coefficients
    return np.abs(X.astype(np.float64)) @ np.abs(weights) + abs(intercept)

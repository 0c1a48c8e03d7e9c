"""Models of every kind, over features of very different sizes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

import firstpage as fp

SIZES = np.array([1.0, 2e8, 1e-3, 1e-30, 1e-7, 40.0])
NAMES = ['title "bm25"', "views</feature>", "ctr\n}", "ü ${text} {{x}}", "'''\\", "f<=1"]


@cache
def dataset() -> fp.Dataset:
    """Numbers from 1e-30 to 2e8, whole ones, negative ones; float32."""
    data = fp.Synthetic(queries=40, docs=15, features=6, grades=3, seed=4).dataset()
    X = (data.X * SIZES).astype(np.float32)
    X[:, 0] = -1 + X[:, 0] * 1e-5  # near -1: where Solr's addition is hardest to undo
    X[:, 5] = np.round(X[:, 5])
    return data.with_features(X, NAMES)


RANKERS = {
    "linear": lambda how: fp.ListMLE(normalize=how),
    "features": lambda how: fp.AdaRank(weak="features", normalize=how),
    "lightgbm": lambda how: fp.LambdaMART(
        scorer="trees(count=30, leaves=15, min_docs=5)", normalize=how
    ),
    "xgboost": lambda how: fp.ListMLE(
        scorer="trees(count=30, leaves=15, library=xgboost)", normalize=how
    ),
    "stumps": lambda how: fp.RankBoost(rounds=60, normalize=how),
}


@cache
def _fitted(kind: str, how: str | None) -> Any:
    return RANKERS[kind](how).fit(dataset())


def ranker(kind: str, how: str | None = None) -> Any:
    """Fitted once, however it is asked for."""
    return _fitted(kind, how)


def predict(fitted: Any, X: np.ndarray) -> np.ndarray:
    """All rows as one query."""
    names = getattr(fitted, "feature_names_in_", None)
    zeros = np.zeros(len(X), int)
    return fitted.predict(fp.Dataset.from_arrays(X, zeros, zeros, feature_names=names))


@pytest.fixture
def data() -> fp.Dataset:
    return dataset()


@dataclass
class Probe:
    """Inputs and what rounding is measured by."""

    X: np.ndarray
    sizes: np.ndarray

    def off(self, found: np.ndarray, wanted: np.ndarray, least: float = 1e-300) -> float:
        """The greatest difference, by the sum of the sizes of what is added; `least`: float32 ends
        there."""
        apart = np.abs(np.asarray(found, np.float64) - wanted) / np.maximum(self.sizes, least)
        return float(apart.max())


CLOSE = 1e-6  # what an export may be off by


def without_tiny(given: Probe) -> Probe:
    """Without numbers that are nearer to zero than 1e-30 and not zero."""
    kept = ((np.abs(given.X) >= 1e-30) | (given.X == 0)).all(axis=1)
    assert kept.sum() > len(kept) / 3
    return Probe(given.X[kept], given.sizes[kept])


def probe(fitted: Any, seed: int = 0) -> Probe:
    """Random and extreme float32 numbers, and all thresholds with their neighbors."""
    from firstpage.interop.export.export_model import ExportModel, export_features

    rng = np.random.default_rng(seed)
    usual = dataset().X[rng.integers(0, dataset().n_docs, 600)]
    wild = rng.normal(0, 1, usual.shape) * 10.0 ** rng.integers(-28, 9, usual.shape)
    odd = np.array([0, -0.0, 1e-45, -1e-45, 1e-40, 1e-35, -1e-35, 2e8, -2e8, 1, -1, 1e-6])
    strange = rng.choice(odd, usual.shape)
    X = np.concatenate([usual, wild.astype(np.float32), strange.astype(np.float32)])
    model, transform = fitted.model_, getattr(fitted, "transform_", None)
    known = export_features(None, None, model.n_features)
    subject = ExportModel("m", known, model, transform, "r", "model")
    if subject.kind == "linear":
        weights, intercept = subject.weights()
        return Probe(X, np.abs(X.astype(np.float64)) @ np.abs(weights) + abs(intercept))
    forest = subject.forest32() if transform is None or transform.per == "global" else None
    forest = forest or subject.own_forest()
    parts = [X]
    for feature in forest.used():
        at = forest.thresholds(feature).astype(np.float32)
        near = np.concatenate([at, *(np.nextafter(at, np.float32(s)) for s in (-np.inf, np.inf))])
        rows = usual[rng.integers(0, len(usual), len(near))].copy()
        rows[:, feature] = near
        parts.append(rows)
    X = np.concatenate(parts)
    return Probe(X, forest.sizes(X))


def sizes_of(fitted: Any, X: np.ndarray) -> np.ndarray:
    """The sum of the sizes of what is added up, of features that are not scaled."""
    if fitted.model_.coefficients is None:
        return fitted.model_.forest("model").sizes(X)
    weights, intercept = fitted.model_.coefficients
    return np.abs(X.astype(np.float64)) @ np.abs(weights) + abs(intercept)

"""Weighted ridge regression with intercept, exactly, in two reads of the features."""

from __future__ import annotations

from typing import Any

import numpy as np

from firstpage.losses.levels import query_sums
from firstpage.losses.listwise import relevance
from firstpage.losses.loss import safe_inverse
from firstpage.rankers.fit.request import (
    FitRequest,
    FitResult,
    fit_result,
    warn_if_constant,
    watcher_for,
)
from firstpage.rankers.fit.training_data import Training
from firstpage.rankers.sharded.data import Spread
from firstpage.rankers.sharded.shard import Piece, Spec
from firstpage.scorers.linear import LinearFitting, LinearScoring
from firstpage.types import Floats

ROWS = 1 << 14  # multiplied at a time


def rows_sum(X: Any, weight: Floats) -> Floats:
    """The weighted sum of all rows."""
    total = np.zeros(X.shape[1])
    for lo in range(0, X.shape[0], ROWS):
        total += X[lo : lo + ROWS].T @ weight[lo : lo + ROWS]
    return total


def moments(X: Any, y: Floats, weight: Floats, mean: Floats, level: float) -> tuple[Floats, Floats]:
    """Products of centred features with each other, and with centred labels."""
    size = X.shape[1]
    gram, right = np.zeros((size, size)), np.zeros(size)
    for lo in range(0, X.shape[0], ROWS):
        rows = X[lo : lo + ROWS]
        rows = rows if isinstance(rows, np.ndarray) else rows.toarray()
        centered = rows.astype(np.float64) - mean
        heavy = centered * weight[lo : lo + ROWS, None]
        gram += centered.T @ heavy
        right += heavy.T @ (y[lo : lo + ROWS] - level)
    return gram, right


def solved(
    gram: Floats, right: Floats, mean: Floats, level: float, l2: float
) -> tuple[Floats, float]:
    """Weights and intercept of the normal equations."""
    spread = np.diag(gram)
    # What is left of a constant column after centring is rounding dust, and says nothing.
    dust = (64 * np.finfo(np.float64).eps) ** 2 * (spread + mean**2)
    unit = np.where(spread > dust, 1 / np.sqrt(np.maximum(spread, 1e-300) + l2), 0.0)
    scaled = gram * unit[:, None] * unit + l2 * np.diag(unit**2)
    params: Floats = unit * np.linalg.lstsq(scaled, unit * right, rcond=1e-12)[0]
    return params, level - float(mean @ params)


class Moments:
    """The sums of a shard; every document of a query that counts weighs alike."""

    def __init__(self, spec: Spec, threads: int) -> None:
        self._piece = Piece(spec, threads)
        lengths = self._piece.data.lengths
        self._weight = np.repeat(self._piece.shares > 0, lengths) / spec.total

    @property
    def nbytes(self) -> int:
        return 24 * self._piece.data.n_docs

    def release(self) -> None:
        self._piece.release()

    def means(self, k: int | None) -> tuple[Floats, float]:
        y = relevance(self._piece.truth, None, k)
        return rows_sum(self._piece.data.X, self._weight), float(self._weight @ y)

    def products(self, k: int | None, mean: Floats, level: float) -> tuple[Floats, Floats]:
        y = relevance(self._piece.truth, None, k)
        return moments(self._piece.data.X, y, self._weight, mean, level)

    def error(self, k: int | None, params: Floats, intercept: float) -> float:
        y = relevance(self._piece.truth, None, k)
        off = y - LinearScoring(params, intercept).predict(self._piece.data.X)
        return float(self._weight @ off**2)


def spread_ridge(
    training: Spread, k: int | None, l2: float, look: bool = True
) -> tuple[Floats, float, float]:
    """Weights, intercept and the mean squared error (if asked to look), over all shards."""
    parts = training.by_documents().parts(Moments)
    mean, level = np.zeros(training.n_features), 0.0
    for one, height in parts.each("means", k):
        mean += one
        level += height
    gram, right = np.zeros((len(mean), len(mean))), np.zeros(len(mean))
    for product, beside in parts.each("products", k, mean, level):
        gram += product
        right += beside
    params, intercept = solved(gram, right, mean, level, l2)
    error = sum(parts.each("error", k, params, intercept)) if look else float("nan")
    return params, intercept, float(error)


def fit_least_squares(request: FitRequest, k: int | None, l2: float) -> FitResult:
    """Minimise half the mean squared error plus l2 / 2 * |w|^2; the intercept is free.

    Normal equations of centred features in units of their spread; of several optima, as when
    features depend on each other, the least.
    """
    warn_if_constant(request)
    if isinstance(request.training, Spread):
        params, intercept, error = spread_ridge(request.training, k, l2)
    else:
        params, intercept, error = _ridge_error(request, request.training, k, l2)
    model = LinearScoring(params, intercept)
    value = 0.5 * error + l2 / 2 * float(params @ params)
    watcher = watcher_for(request, lambda p, X: LinearFitting(X).predict(p, X), False)
    watcher(1, value, params)
    return fit_result(request, watcher, model, 1, value, True, False)


def _ridge_error(
    request: FitRequest, training: Training, k: int | None, l2: float
) -> tuple[Floats, float, float]:
    """Weights, intercept, and the mean squared error."""
    data = training.data
    y = relevance(request.truth, training.weights, k)
    weight = np.ones(len(y)) if training.weights is None else training.weights
    assert training.query_weights is not None
    per_query = training.query_weights * safe_inverse(query_sums(weight, data.offsets))
    weight = weight * np.repeat(per_query, data.lengths)
    weight = weight / weight.sum()
    params, intercept = ridge(data.X, y, weight, l2)
    error = y - LinearScoring(params, intercept).predict(data.X)
    return params, intercept, float(weight @ error**2)


def ridge(X: Any, y: Floats, weight: Floats, l2: float) -> tuple[Floats, float]:
    """Weights and intercept; the weights of the rows add up to 1."""
    mean, level = rows_sum(X, weight), float(weight @ y)
    return solved(*moments(X, y, weight, mean, level), mean, level, l2)

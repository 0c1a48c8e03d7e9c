"""Weighted ridge regression with intercept, exactly, in two reads of the features."""

from __future__ import annotations

from typing import Any

import numpy as np

from firstpage.losses.base import safe_inverse
from firstpage.losses.levels import query_sums
from firstpage.losses.listwise import relevance
from firstpage.rankers.fitting import Fitted, Job, fitted, watcher_of
from firstpage.scorers.linear import LinearFitting, LinearScoring
from firstpage.types import Floats

ROWS = 1 << 14  # multiplied at a time


def fit_least_squares(job: Job, k: int | None, l2: float) -> Fitted:
    """Minimise half the mean squared error plus l2 / 2 * |w|^2; the intercept is free.

    Normal equations of centred features in units of their spread; of several optima, as when
    features depend on each other, the least.
    """
    data, training = job.training.data, job.training
    y = relevance(job.truth, training.weights, k)
    weight = np.ones(len(y)) if training.weights is None else training.weights
    assert training.query_weights is not None
    per_query = training.query_weights * safe_inverse(query_sums(weight, data.offsets))
    weight = weight * np.repeat(per_query, data.lengths)
    weight = weight / weight.sum()
    params, intercept = ridge(data.X, y, weight, l2)
    model = LinearScoring(params, intercept)
    error = y - model.predict(data.X)
    value = 0.5 * float(weight @ error**2) + l2 / 2 * float(params @ params)
    watcher = watcher_of(job, lambda p, X: LinearFitting(X).predict(p, X), False)
    watcher(1, value, params)
    return fitted(job, watcher, model, params, 1, value, True, False)


def ridge(X: Any, y: Floats, weight: Floats, l2: float) -> tuple[Floats, float]:
    """Weights and intercept; the weights of the rows add up to 1."""
    mean = _rows_sum(X, weight)
    level = float(weight @ y)
    size = X.shape[1]
    gram, right = np.zeros((size, size)), np.zeros(size)
    for lo in range(0, X.shape[0], ROWS):
        rows = X[lo : lo + ROWS]
        rows = rows if isinstance(rows, np.ndarray) else rows.toarray()
        centered = rows.astype(np.float64) - mean
        heavy = centered * weight[lo : lo + ROWS, None]
        gram += centered.T @ heavy
        right += heavy.T @ (y[lo : lo + ROWS] - level)
    spread = np.diag(gram)
    # What is left of a constant column after centring is rounding dust, and says nothing.
    dust = (64 * np.finfo(np.float64).eps) ** 2 * (spread + mean**2)
    unit = np.where(spread > dust, 1 / np.sqrt(np.maximum(spread, 1e-300) + l2), 0.0)
    scaled = gram * unit[:, None] * unit + l2 * np.diag(unit**2)
    params: Floats = unit * np.linalg.lstsq(scaled, unit * right, rcond=1e-12)[0]
    return params, level - float(mean @ params)


def _rows_sum(X: Any, weight: Floats) -> Floats:
    """The weighted sum of all rows."""
    total = np.zeros(X.shape[1])
    for lo in range(0, X.shape[0], ROWS):
        total += X[lo : lo + ROWS].T @ weight[lo : lo + ROWS]
    return total

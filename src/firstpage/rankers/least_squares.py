"""Weighted ridge regression with intercept, exactly, in two reads of the features."""

from __future__ import annotations

from typing import Any

import numpy as np

from firstpage.losses.base import safe_inverse
from firstpage.losses.levels import query_sums
from firstpage.losses.listwise import relevance
from firstpage.rankers.fitting import Fitted, Job, fitted, warn_if_constant, watcher_of
from firstpage.rankers.moments import moments, rows_sum, solved, spread_ridge
from firstpage.rankers.spread import Spread
from firstpage.rankers.training import Training
from firstpage.scorers.linear import LinearFitting, LinearScoring
from firstpage.types import Floats


def fit_least_squares(job: Job, k: int | None, l2: float) -> Fitted:
    """Minimise half the mean squared error plus l2 / 2 * |w|^2; the intercept is free.

    Normal equations of centred features in units of their spread; of several optima, as when
    features depend on each other, the least.
    """
    warn_if_constant(job)
    if isinstance(job.training, Spread):
        params, intercept, error = spread_ridge(job.training, k, l2)
    else:
        params, intercept, error = _ridge_error(job, job.training, k, l2)
    model = LinearScoring(params, intercept)
    value = 0.5 * error + l2 / 2 * float(params @ params)
    watcher = watcher_of(job, lambda p, X: LinearFitting(X).predict(p, X), False)
    watcher(1, value, params)
    return fitted(job, watcher, model, 1, value, True, False)


def _ridge_error(
    job: Job, training: Training, k: int | None, l2: float
) -> tuple[Floats, float, float]:
    """Weights, intercept, and the mean squared error."""
    data = training.data
    y = relevance(job.truth, training.weights, k)
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

"""Weighted ridge regression with an intercept, solved exactly in two reads of the features."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from firstpage.core import Floats

if TYPE_CHECKING:
    from firstpage.data import Features

CHUNK_ROWS = 1 << 14  # multiplied at a time
overflowing = np.errstate(over="ignore", invalid="ignore")  # the solution is NaN


@overflowing
def weighted_row_sum(X: Features, weight: Floats) -> Floats:
    """Return the weighted sum of all rows."""
    total = np.zeros(X.shape[1])
    for lo in range(0, X.shape[0], CHUNK_ROWS):
        total += X[lo : lo + CHUNK_ROWS].T @ weight[lo : lo + CHUNK_ROWS]
    return total


@overflowing
def moments(
    X: Features, y: Floats, weight: Floats, feature_mean: Floats, label_mean: float
) -> tuple[Floats, Floats]:
    """Return the weighted products of centered features with each other, and with centered labels;
    `feature_mean` and `label_mean` are their weighted means."""
    size = X.shape[1]
    gram, rhs = np.zeros((size, size)), np.zeros(size)
    for lo in range(0, X.shape[0], CHUNK_ROWS):
        rows = X[lo : lo + CHUNK_ROWS]
        rows = rows if isinstance(rows, np.ndarray) else rows.toarray()
        centered = rows.astype(np.float64) - feature_mean
        weighted = centered * weight[lo : lo + CHUNK_ROWS, None]
        gram += centered.T @ weighted
        rhs += weighted.T @ (y[lo : lo + CHUNK_ROWS] - label_mean)
    return gram, rhs


@overflowing
def solve_normal_equations(
    gram: Floats, rhs: Floats, feature_mean: Floats, label_mean: float, l2: float
) -> tuple[Floats, float]:
    """Return the weights and the intercept that solve the normal equations.

    They are NaN where the products of the features have overflown.
    """
    if not np.isfinite(gram).all():
        return np.full(len(gram), np.nan), np.nan
    variance = np.diag(gram)
    # Centering a constant column leaves its rounding error, which carries no information.
    rounding_error = (64 * np.finfo(np.float64).eps) ** 2 * (variance + feature_mean**2)
    unit = np.where(variance > rounding_error, 1 / np.sqrt(np.maximum(variance, 1e-300) + l2), 0.0)
    scaled = gram * unit[:, None] * unit + l2 * np.diag(unit**2)
    params: Floats = unit * np.linalg.lstsq(scaled, unit * rhs, rcond=1e-12)[0]
    return params, label_mean - float(feature_mean @ params)


def ridge(X: Features, y: Floats, weight: Floats, l2: float) -> tuple[Floats, float]:
    """Return weights and intercept; `weight` has one number per row, which sum to 1."""
    feature_mean, label_mean = weighted_row_sum(X, weight), float(weight @ y)
    return solve_normal_equations(
        *moments(X, y, weight, feature_mean, label_mean), feature_mean, label_mean, l2
    )

"""Weighted ridge regression with intercept, exactly, in two reads of the features."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from firstpage.types import Floats

if TYPE_CHECKING:
    from firstpage.data.dataset import Features

ROWS = 1 << 14  # multiplied at a time


def rows_sum(X: Features, weight: Floats) -> Floats:
    """The weighted sum of all rows."""
    total = np.zeros(X.shape[1])
    for lo in range(0, X.shape[0], ROWS):
        total += X[lo : lo + ROWS].T @ weight[lo : lo + ROWS]
    return total


def moments(
    X: Features, y: Floats, weight: Floats, mean: Floats, level: float
) -> tuple[Floats, Floats]:
    """Products of centered features with each other, and with centered labels."""
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


def ridge(X: Features, y: Floats, weight: Floats, l2: float) -> tuple[Floats, float]:
    """Weights and intercept; the weights of the rows add up to 1."""
    mean, level = rows_sum(X, weight), float(weight @ y)
    return solved(*moments(X, y, weight, mean, level), mean, level, l2)

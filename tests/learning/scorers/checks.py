"""Checks that hold for every scorer that a solver fits."""

from __future__ import annotations

import numpy as np
import pytest

from firstpage.core.types import Floats
from firstpage.learning.scorers.scorer import BoundScorer


def forward(bound: BoundScorer, params: Floats, lo: int, hi: int) -> Floats:
    """Return the scores of the rows lo:hi."""
    bound.load(params)
    scores = np.empty(hi - lo)
    bound.bind_slice(lo, hi, scores, np.empty(hi - lo), np.empty(bound.size))[0]()
    return scores


def check_gradient(bound: BoundScorer, params: Floats, step: float, tolerance: float) -> None:
    """Compare the gradient of a sum of scores with central differences along random directions."""
    rng = np.random.default_rng(1)
    lo, hi = 3, 60
    weights = rng.normal(size=hi - lo)
    bound.load(params)
    gradient = np.empty(bound.size)
    forward_kernel, backward = bound.bind_slice(lo, hi, np.empty(hi - lo), weights, gradient)
    forward_kernel()
    backward()
    for _ in range(5):
        direction = rng.normal(size=bound.size)
        direction *= step / np.linalg.norm(direction)
        up, down = (forward(bound, params + sign * direction, lo, hi) for sign in (1, -1))
        expected = float(weights @ (up - down)) / 2
        assert gradient @ direction == pytest.approx(expected, abs=tolerance * step * len(weights))

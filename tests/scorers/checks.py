"""What holds for every scorer that a solver fits."""

from __future__ import annotations

import numpy as np
import pytest

from firstpage.scorers.scorer import Fitting
from firstpage.types import Floats


def forward(fitting: Fitting, params: Floats, lo: int, hi: int) -> Floats:
    """Return the scores of the rows lo:hi."""
    fitting.load(params)
    scores = np.empty(hi - lo)
    fitting.bind(lo, hi, scores, np.empty(hi - lo), np.empty(fitting.size))[0]()
    return scores


def check_gradient(fitting: Fitting, params: Floats, step: float, tolerance: float) -> None:
    """Compare the gradient of a sum of scores with central differences along random directions."""
    rng = np.random.default_rng(1)
    lo, hi = 3, 60
    weights = rng.normal(size=hi - lo)
    fitting.load(params)
    slope = np.empty(fitting.size)
    run, back = fitting.bind(lo, hi, np.empty(hi - lo), weights, slope)
    run()
    back()
    for _ in range(5):
        direction = rng.normal(size=fitting.size)
        direction *= step / np.linalg.norm(direction)
        up, down = (forward(fitting, params + sign * direction, lo, hi) for sign in (1, -1))
        expected = float(weights @ (up - down)) / 2
        assert slope @ direction == pytest.approx(expected, abs=tolerance * step * len(weights))

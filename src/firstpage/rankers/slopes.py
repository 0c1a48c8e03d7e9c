"""Slopes and curvatures of a loss by every score: what trees are grown from."""

from __future__ import annotations

import numpy as np

from firstpage.data.truth import Truth
from firstpage.losses.base import Loss
from firstpage.types import Floats


class Slopes:
    """Of the summed loss.

    A leaf steps by its slopes over its curvatures.  For a relevant document of small probability p
    that would be 1 / p, a hundred units of score, though the curvature it rests on holds for about
    one: trees grown so learn noise.  So curvature is never taken below the size of the slope, and
    no leaf steps further than 1 (times the rate).  Losses of constant curvature need no such care.
    """

    def __init__(
        self,
        loss: Loss,
        truth: Truth,
        weights: Floats | None = None,
        query_weights: Floats | None = None,
    ) -> None:
        target = loss.target(truth, weights)
        rows = len(truth.labels)
        self.scores, self.values = np.empty(rows), np.empty(len(truth))
        self.grad, self.curve = np.empty(rows), np.empty(rows)
        self.shares = np.ones(len(truth)) if query_weights is None else query_weights
        self._each = None if query_weights is None else np.repeat(query_weights, truth.lengths)
        self._exact = loss.traits.quadratic
        self._first = target.bind(0, len(truth), self.scores, self.values, self.grad)
        self._second = target.bind_curvature(0, len(truth), self.scores, self.curve)

    def __call__(self, scores: Floats) -> tuple[Floats, Floats]:
        self.scores[:] = scores
        self._first()
        self._second()
        grad, curve = self.grad.copy(), self.curve.copy()
        if not self._exact:
            np.maximum(curve, np.abs(grad), out=curve)
        if self._each is not None:
            grad, curve = grad * self._each, curve * self._each
        return grad, curve

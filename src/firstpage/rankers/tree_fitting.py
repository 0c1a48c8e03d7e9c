"""Fit trees, one by one, to the slopes of a loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from firstpage.data.truth import Truth
from firstpage.engine.threads import resolve
from firstpage.losses.base import Loss
from firstpage.rankers.fitting import Fitted, Job, fitted, in_memory, watcher_of
from firstpage.scorers.trees import Grown
from firstpage.types import Floats


def fit_trees(job: Job, loss: Loss, scorer: Any) -> Fitted:
    """Grow trees along slopes and curvatures of the summed loss."""
    training = in_memory(job, "scorer='trees'", "scorer='linear'")
    slopes = Slopes(loss, job.truth, training.weights, training.query_weights)
    valid = None if job.valid is None else job.valid.X
    threads = resolve(job.threads)

    def grow(grown: Grown) -> tuple[Any, int]:
        found: tuple[Any, int] = scorer.grow(
            training.data.X, slopes, valid, grown, job.seed, threads
        )
        return found

    return fit_boosted(
        job, scorer, grow, lambda: float(slopes.values @ slopes.shares / slopes.shares.sum())
    )


def fit_boosted(
    job: Job,
    scorer: Any,
    grow: Callable[[Grown], tuple[Any, int]],
    loss: Callable[[], float],
) -> Fitted:
    """Watch trees grow, and keep as many as measure best."""
    boosters: list[Any] = []
    scores: list[Any] = []
    watcher = watcher_of(job, lambda params, X: scores[0], True)

    def grown(number: int, booster: Any, valid: Floats | None) -> bool:
        boosters[:], scores[:] = [booster], [valid]
        return watcher(number, loss(), number)

    interrupted = False
    try:
        booster, count = grow(grown)
    except KeyboardInterrupt:
        if not boosters:
            raise
        interrupted, booster, count = True, boosters[0], len(watcher.history)
    kept = watcher.best.iteration if watcher.best is not None and watcher.keep else count
    model = scorer.scoring(booster, kept, job.training.n_features)
    value = watcher.history[-1].loss
    return fitted(job, watcher, model, None, count, value, not interrupted, interrupted)


class Slopes:
    """Slope and curvature of the summed loss by every score; what trees are grown from.

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

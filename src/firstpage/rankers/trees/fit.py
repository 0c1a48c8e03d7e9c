"""Fit trees, one by one, to the slopes of a loss."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from firstpage.engine.threads import resolve
from firstpage.errors import FirstpageWarning
from firstpage.losses.loss import Loss
from firstpage.rankers.fit.request import (
    FitRequest,
    FitResult,
    fit_result,
    in_memory,
    warn_if_constant,
    watcher_for,
)
from firstpage.rankers.trees.objective import Slopes
from firstpage.scorers.trees import NO_SPLIT, Grown
from firstpage.types import Floats


def fit_trees(request: FitRequest, loss: Loss, scorer: Any) -> FitResult:
    """Grow trees along slopes and curvatures of the summed loss."""
    training = in_memory(request, "scorer='trees'", "scorer='linear'")
    slopes = Slopes(loss, request.truth, training.weights, training.query_weights)
    valid = None if request.valid is None else request.valid.X
    threads = resolve(request.threads)

    def grow(grown: Grown) -> tuple[Any, int]:
        found: tuple[Any, int] = scorer.grow(
            training.data.X, slopes, valid, grown, request.seed, threads
        )
        return found

    return fit_boosted(
        request, scorer, grow, lambda: float(slopes.values @ slopes.shares / slopes.shares.sum())
    )


def fit_boosted(
    request: FitRequest,
    scorer: Any,
    grow: Callable[[Grown], tuple[Any, int]],
    loss: Callable[[], float],
) -> FitResult:
    """Watch trees grow, and keep as many as measure best."""
    constant = warn_if_constant(request)
    boosters: list[Any] = []
    scores: list[Any] = []
    watcher = watcher_for(request, lambda params, X: scores[0], True)

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
    if not constant and not scorer.splits(booster):
        warnings.warn(f"all scores are alike: {NO_SPLIT}", FirstpageWarning, stacklevel=4)
    kept = watcher.best.iteration if watcher.best is not None and watcher.keep else count
    model = scorer.scoring(booster, kept, request.training.n_features)
    value = watcher.history[-1].loss
    return fit_result(request, watcher, model, count, value, not interrupted, interrupted)

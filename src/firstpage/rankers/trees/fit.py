"""Fit trees, one by one, and keep as many as measure best."""

from __future__ import annotations

import warnings

from firstpage.engine.threads import resolve
from firstpage.errors import DataError, FirstpageWarning
from firstpage.rankers.fit.request import FitRequest, FitResult
from firstpage.rankers.trees.growth import Booster, Growth, GrowthOptions
from firstpage.scorers.trees import NO_SPLIT, Trees
from firstpage.types import Floats


def growth_options(request: FitRequest) -> GrowthOptions:
    valid = None if request.valid is None else request.valid.X
    return GrowthOptions(valid, request.seed, resolve(request.threads))


def fit_trees(request: FitRequest, trees: Trees, growth: Growth) -> FitResult:
    """Watch trees grow, and keep as many as measure best."""
    if request.checkpoint is not None:
        raise DataError("trees leave no checkpoints; leave checkpoint out.")
    constant = request.warn_if_constant()
    boosters: list[Booster] = []
    scores: list[Floats | None] = []
    watcher = request.watcher(lambda params, X: scores[0], path=True)

    def grown(number: int, booster: Booster, valid: Floats | None) -> bool:
        boosters[:], scores[:] = [booster], [valid]
        return watcher(number, growth.loss(), number)

    interrupted = False
    try:
        booster, count = growth.grow(grown)
    except KeyboardInterrupt:
        if not boosters:
            raise
        interrupted, booster, count = True, boosters[0], len(watcher.history)
    if not constant and not trees.splits(booster):
        warnings.warn(f"all scores are alike: {NO_SPLIT}", FirstpageWarning, stacklevel=4)
    kept = watcher.best.iteration if watcher.best is not None and watcher.keep else count
    model = trees.scoring(booster, kept, request.training.n_features)
    value = watcher.history[-1].loss
    return request.result(
        watcher, model, count, value, converged=not interrupted, interrupted=interrupted
    )

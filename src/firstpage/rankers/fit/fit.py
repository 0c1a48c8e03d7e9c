"""Fit a loss through a scorer by a solver, or tree by tree: the one place where the parts meet."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from typing import cast

import numpy as np

from firstpage.engine.threads import resolve, single_threaded_blas
from firstpage.errors import DataError, FirstpageWarning
from firstpage.losses.loss import Loss
from firstpage.rankers.fit.request import NOTHING, Composition, FitRequest, FitResult
from firstpage.rankers.fit.training_data import Scorer
from firstpage.rankers.trees.growth import Booster, Growth, GrowthOptions
from firstpage.scorers.linear import BoundLinear, LinearScoring
from firstpage.scorers.mlp import torch_threads
from firstpage.scorers.scorer import BoundScorer
from firstpage.scorers.trees import NO_SPLIT, Trees
from firstpage.solvers.lbfgs import Coordinates
from firstpage.solvers.registry import solver_for
from firstpage.solvers.score_space import ParameterPoint, ScoredObjective, result_at
from firstpage.solvers.solver import AnySolver, Objective, Resume, SolverResult
from firstpage.types import Floats

FAINT = (
    "with features of this size so large a C leaves the penalty to rounding; C = {:.2g} was taken. "
    "Scale the features (normalize=..), or choose a smaller C."
)


class Diverged(DataError):
    """A descent went to infinity."""


def fit_composition(request: FitRequest, parts: Composition) -> FitResult:
    """By a solver, or tree by tree."""
    if parts.trees is not None:
        growth = request.training.loss_growth(parts.trees, parts.loss, growth_options(request))
        return fit_trees(request, parts.trees, growth)
    assert parts.scorer is not None
    limit = nullcontext() if parts.scorer.linear else torch_threads(request.threads)
    with (
        limit,
        single_threaded_blas(),
        np.errstate(over="ignore", invalid="ignore"),
    ):  # it may diverge
        return _fit_scorer(request, parts, parts.scorer)


def _fit_scorer(request: FitRequest, parts: Composition, scorer: Scorer) -> FitResult:
    """Minimize the mean loss over the scorer's parameters."""
    training = request.training
    bound = training.bind(scorer)
    solver = solver_for(parts.solver, parts.loss, bound, request.seed)
    objective = training.objective(parts.loss, scorer, bound, parts.l2, solver, request.threads)
    watcher = request.watcher(bound.predict, solver.selects_iteration)
    start = _start(request, parts.loss, bound, objective)
    interrupted, converged, degenerate, gap, memory = False, False, False, None, None
    try:
        if request.checkpoint is None:
            found = solver.minimize(objective, start, watcher, Resume(request.memory))
        else:
            found = request.checkpoint.minimize(solver, objective, start, watcher, request.memory)
        params, value, iterations, converged = (
            found.params, found.value, found.iterations, found.converged,
        )  # fmt: skip
        if not np.isfinite(params).all() or not np.isfinite(value):
            if watcher.best is None or not watcher.keep:
                raise Diverged(f"training {found.reason}, or scale the features (normalize=..).")
            value, iterations = watcher.best.loss, watcher.best.iteration
        gap, memory, degenerate = found.gap, found.warm_start, found.degenerate
        if found.l2 is not None and found.l2 > 1.001 * parts.l2:
            warnings.warn(FAINT.format(1 / found.l2), FirstpageWarning, stacklevel=4)
        if found.exhausted:
            warnings.warn(_unfinished(solver, found), FirstpageWarning, stacklevel=4)
    except KeyboardInterrupt:
        if watcher.last_params is None:
            raise
        interrupted, params = True, watcher.last_params
        value, iterations = watcher.history[-1].loss, watcher.history[-1].iteration
    if watcher.best is not None and (watcher.keep or interrupted):
        params = watcher.best_params
        if gap is not None:
            # A gap is known of objectives that are seen from the scores.
            chosen = result_at(found, cast(ScoredObjective[ParameterPoint], objective), params)
            value, gap = chosen.value, chosen.gap
    if not degenerate and _all_alike(objective, bound, params, request, iterations):
        warnings.warn(NOTHING, FirstpageWarning, stacklevel=4)
    result = request.result(
        watcher, bound.scoring(params), iterations, value, converged=converged,
        interrupted=interrupted, gap=gap, memory=memory,
    )  # fmt: skip
    if degenerate:
        result.record["degenerate"] = True
    return result


def _all_alike(
    objective: Objective, bound: BoundScorer, params: Floats, request: FitRequest, iterations: int
) -> bool:
    """Return whether all documents of a query have the same score: nothing was learned.

    Weights of features that distinguish nothing may be rounding instead of 0; a solver is done with
    such in no time.
    """
    if not params.any() or not request.training.varies():
        return True
    if iterations > 3 or not bound.parallel:
        return False
    wide, greatest = objective.score_range(params)
    return wide <= 1e-9 * greatest


def _unfinished(solver: AnySolver, found: SolverResult) -> str:
    if found.gap is None:
        return (
            f"the solver used all {found.iterations} iterations before the objective stood still; "
            "raise max_iter, as in solver='lbfgs(max_iter=1000)'."
        )
    return (
        f"after {found.iterations} iterations the objective is only known to be within "
        f"{100 * found.gap:.2g} % of the optimum ({100 * solver.tol:.2g} % were asked for). Scale "
        "the features (normalize=..), choose another C, or raise max_iter, as in "
        "solver='cutting plane(max_iter=5000)'."
    )


def _start(request: FitRequest, loss: Loss, bound: BoundScorer, objective: Objective) -> Floats:
    if request.start is not None:
        if len(request.start) != bound.size:
            raise DataError(
                f"warm_start: the model so far has {len(request.start)} parameters, and now "
                f"{bound.size} are needed."
            )
        return request.start
    start = bound.initial_params(request.seed)
    if not loss.traits.convex and not start.any():
        # Such losses (cosine) have no value at 0, but a direction to leave it by.
        T = Coordinates(objective.preconditioner(), bound.size)
        direction = T.gradient_from_params(objective(start)[1])
        if not direction.any():
            direction = np.random.default_rng(request.seed).normal(size=bound.size)
        start = T.to_params(-direction / np.linalg.norm(direction))
    return start


def fit_least_squares(request: FitRequest, k: int | None, l2: float) -> FitResult:
    """Minimize half the mean squared error plus l2 / 2 * |w|^2; the intercept is free.

    Normal equations of centered features in units of their spread; of several optima, as when
    features depend on each other, the least.
    """
    request.warn_if_constant()
    params, intercept, error = request.training.least_squares(k, l2)
    value = 0.5 * error + l2 / 2 * float(params @ params)
    watcher = request.watcher(lambda p, X: BoundLinear(X).predict(p, X), path=False)
    watcher(1, value, params)
    return request.result(watcher, LinearScoring(params, intercept), 1, value, converged=True)


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

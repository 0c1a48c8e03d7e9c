"""Fit a composition of loss, scorer and solver, or grow trees."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from typing import cast

import numpy as np

from firstpage.engine.threads import resolve, single_threaded_blas
from firstpage.errors import DataError, FirstpageWarning
from firstpage.losses.loss import Loss
from firstpage.rankers.fit.request import NOTHING_LEARNED, Composition, FitRequest, FitResult
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

C_REDUCED = (
    "with features of this size and so large a C, rounding errors exceed the penalty; C = {:.2g} "
    "was used. Scale the features (normalize=..), or choose a smaller C."
)


class Diverged(DataError):
    """A gradient descent diverged."""


def fit_composition(request: FitRequest, composition: Composition) -> FitResult:
    """Fit by a solver, or grow trees."""
    if composition.trees is not None:
        growth = request.training.loss_growth(
            composition.trees, composition.loss, growth_options(request)
        )
        return fit_trees(request, composition.trees, growth)
    assert composition.scorer is not None
    limit = nullcontext() if composition.scorer.linear else torch_threads(request.threads)
    with (
        limit,
        single_threaded_blas(),
        np.errstate(over="ignore", invalid="ignore"),
    ):  # it may diverge
        return _fit_scorer(request, composition, composition.scorer)


def _fit_scorer(request: FitRequest, composition: Composition, scorer: Scorer) -> FitResult:
    """Minimize the mean loss over the scorer's parameters."""
    training = request.training
    bound = training.bind(scorer)
    solver = solver_for(composition.solver, composition.loss, bound, request.seed)
    objective = training.objective(
        composition.loss, scorer, bound, composition.l2, solver, request.threads
    )
    watcher = request.watcher(bound.predict, solver.selects_iteration)
    start = _start(request, composition.loss, bound, objective)
    interrupted, converged, degenerate, gap, memory = False, False, False, None, None
    try:
        if request.checkpoint is None:
            solved = solver.minimize(objective, start, watcher, Resume(request.memory))
        else:
            solved = request.checkpoint.minimize(solver, objective, start, watcher, request.memory)
        params, value, iterations, converged = (
            solved.params, solved.value, solved.iterations, solved.converged,
        )  # fmt: skip
        if not np.isfinite(params).all() or not np.isfinite(value):
            if watcher.best is None or not watcher.keep:
                raise Diverged(f"training {solved.reason}, or scale the features (normalize=..).")
            value, iterations = watcher.best.loss, watcher.best.iteration
        gap, memory, degenerate = solved.gap, solved.warm_start, solved.degenerate
        if solved.l2 is not None and solved.l2 > 1.001 * composition.l2:
            warnings.warn(C_REDUCED.format(1 / solved.l2), FirstpageWarning, stacklevel=4)
        if solved.exhausted:
            warnings.warn(_unfinished(solver, solved), FirstpageWarning, stacklevel=4)
    except KeyboardInterrupt:
        if watcher.last_params is None:
            raise
        interrupted, params = True, watcher.last_params
        value, iterations = watcher.history[-1].loss, watcher.history[-1].iteration
    if watcher.best is not None and (watcher.keep or interrupted):
        params = watcher.best_params
        if gap is not None:
            # A gap is known only for objectives of the scores.
            chosen = result_at(solved, cast(ScoredObjective[ParameterPoint], objective), params)
            value, gap = chosen.value, chosen.gap
    if not degenerate and _equal_scores(objective, bound, params, request, iterations):
        warnings.warn(NOTHING_LEARNED, FirstpageWarning, stacklevel=4)
    result = request.result(
        watcher, bound.scoring(params), iterations, value, converged=converged,
        interrupted=interrupted, gap=gap, memory=memory,
    )  # fmt: skip
    if degenerate:
        result.record["degenerate"] = True
    return result


def _equal_scores(
    objective: Objective, bound: BoundScorer, params: Floats, request: FitRequest, iterations: int
) -> bool:
    """Return whether the documents of each query have equal scores: nothing was learned.

    The weights of uninformative features may be rounding errors instead of 0; a solver then stops
    within a few iterations.
    """
    if not params.any() or not request.training.varies():
        return True
    if iterations > 3 or not bound.parallel:
        return False
    score_range, largest = objective.score_range(params)
    return score_range <= 1e-9 * largest


def _unfinished(solver: AnySolver, result: SolverResult) -> str:
    """Return the warning about a solver that used all its iterations."""
    if result.gap is None:
        return (
            f"the solver used all {result.iterations} iterations before the objective converged; "
            "raise max_iter, as in solver='lbfgs(max_iter=1000)'."
        )
    return (
        f"after {result.iterations} iterations the objective is only known to be within "
        f"{100 * result.gap:.2g} % of the optimum ({100 * solver.tol:.2g} % was required). Scale "
        "the features (normalize=..), choose another C, or raise max_iter, as in "
        "solver='cutting plane(max_iter=5000)'."
    )


def _start(request: FitRequest, loss: Loss, bound: BoundScorer, objective: Objective) -> Floats:
    """Return the start: that of a warm start, else the scorer's, moved off 0 if not convex."""
    if request.start is not None:
        if len(request.start) != bound.size:
            raise DataError(
                f"warm_start: the previous model has {len(request.start)} parameters, and this fit "
                f"needs {bound.size}."
            )
        return request.start
    start = bound.initial_params(request.seed)
    if not loss.traits.convex and not start.any():
        # Such losses (cosine) are undefined at 0, but have a descent direction there.
        T = Coordinates(objective.preconditioner(), bound.size)
        direction = T.gradient_from_params(objective(start)[1])
        if not direction.any():
            direction = np.random.default_rng(request.seed).normal(size=bound.size)
        start = T.to_params(-direction / np.linalg.norm(direction))
    return start


def fit_least_squares(request: FitRequest, k: int | None, l2: float) -> FitResult:
    """Minimize half the mean squared error plus l2 / 2 * |w|^2; the intercept is free.

    Solves the normal equations of the standardized features; with linearly dependent features the
    solution of least norm is returned.
    """
    request.warn_if_constant()
    params, intercept, error = request.training.least_squares(k, l2)
    value = 0.5 * error + l2 / 2 * float(params @ params)
    watcher = request.watcher(lambda p, X: BoundLinear(X).predict(p, X), path=False)
    watcher(1, value, params)
    return request.result(watcher, LinearScoring(params, intercept), 1, value, converged=True)


def growth_options(request: FitRequest) -> GrowthOptions:
    """Return the options of growing trees."""
    valid = None if request.valid is None else request.valid.X
    return GrowthOptions(valid, request.seed, resolve(request.threads))


def fit_trees(request: FitRequest, trees: Trees, growth: Growth) -> FitResult:
    """Grow trees, and keep the number of trees with the best validation measure."""
    if request.checkpoint is not None:
        raise DataError("trees do not support checkpoints; leave checkpoint out.")
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
        warnings.warn(f"all scores are equal: {NO_SPLIT}", FirstpageWarning, stacklevel=4)
    best_count = watcher.best.iteration if watcher.best is not None and watcher.keep else count
    model = trees.scoring(booster, best_count, request.training.n_features)
    value = watcher.history[-1].loss
    return request.result(
        watcher, model, count, value, converged=not interrupted, interrupted=interrupted
    )

"""Fit the parameters of a scorer with a solver, by least squares, or grow trees."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import cast

import numpy as np

from firstpage.core import Bools, DataError, Floats, warn
from firstpage.core.engine import resolve, single_threaded_blas
from firstpage.learning.losses.base import Loss
from firstpage.learning.rankers.fit.progress import DEFAULT_PATIENCE, Watcher
from firstpage.learning.rankers.fit.request import (
    NO_PREFERENCES,
    NOTHING_LEARNED,
    FitRequest,
    FitResult,
)
from firstpage.learning.rankers.fit.training_data import Scorer
from firstpage.learning.rankers.trees.growth import Booster, Growth, GrowthOptions, LossGrowth
from firstpage.learning.scorers.linear import BoundLinear, LinearScoring
from firstpage.learning.scorers.network import torch_threads
from firstpage.learning.scorers.scorer import BoundScorer
from firstpage.learning.scorers.tree_scoring import NO_SPLIT
from firstpage.learning.scorers.trees import Window
from firstpage.learning.solvers.lbfgs import Coordinates
from firstpage.learning.solvers.registry import solver_for
from firstpage.learning.solvers.score_space import (
    ParameterPoint,
    ScoredObjective,
    gradient_gap,
    result_at,
)
from firstpage.learning.solvers.solver import AnySolver, Objective, Resume, SolverResult

C_REDUCED = (
    "with features of this size and so large a C, rounding errors exceed the penalty; C = {:.2g} "
    "was used. Scale the features (normalize=..), or choose a smaller C."
)


NOT_COMPUTABLE = "gap_ is NaN: the objective is not positive, or its gradient overflows."
CLOSED_FORM = "gap_ is NaN: the normal equations are solved directly, up to rounding."


class Diverged(DataError):
    """A gradient descent diverged."""


def fit_scorer(
    request: FitRequest, loss: Loss, scorer: Scorer, solver: str | AnySolver, l2: float
) -> FitResult:
    """Minimize the mean loss plus l2 / 2 * |params|^2 over the parameters of a scorer.

    The solver "auto" is chosen for the loss and the scorer.
    """
    limit = nullcontext() if scorer.linear else torch_threads(request.threads)
    with limit, single_threaded_blas(), np.errstate(over="ignore", invalid="ignore"):
        training = request.training
        bound = training.bind(scorer, request.seed)
        chosen = solver_for(solver, loss, bound, request.seed)
        objective = training.objective(loss, scorer, bound, l2, chosen, request.threads)
        offsets = None if request.valid is None else request.valid.offsets
        watcher = request.watcher(
            lambda params, X: bound.predict(params, X, offsets),
            chosen.selects_iteration or not bound.linear,
        )
        start = _start(request, loss, bound, objective)
        interrupted = False
        try:
            solved = _solve(request, chosen, objective, start, watcher)
        except KeyboardInterrupt:
            if watcher.last_params is None:
                raise
            interrupted, last = True, watcher.history[-1]
            solved = SolverResult(
                watcher.last_params, last.loss, last.iteration, "interrupted", converged=False
            )
        if watcher.best is not None and (watcher.keep_best or interrupted):
            solved = _at_best(solved, objective, loss, chosen, watcher)
        gap, gap_note = _gap(loss, bound, objective, solved, interrupted)
        if not solved.degenerate and _equal_scores(objective, bound, solved, request):
            warn(NOTHING_LEARNED)
        elif not bound.linear and not training.has_preferences():
            warn(NO_PREFERENCES)
        result = request.result(
            watcher,
            bound.scoring(solved.params),
            solved.iterations,
            solved.value + solved.missed,
            converged=solved.converged,
            interrupted=interrupted,
            gap=gap,
            gap_note=gap_note,
            memory=solved.warm_start,
        )
        if solved.degenerate:
            result.record["degenerate"] = True
        return result


def _solve(
    request: FitRequest, solver: AnySolver, objective: Objective, start: Floats, watcher: Watcher
) -> SolverResult:
    """Return the finite result of a solver, with warnings about what it could not do."""
    if request.checkpoint is None:
        solved = solver.minimize(objective, start, watcher, Resume(request.memory))
    else:
        solved = request.checkpoint.minimize(solver, objective, start, watcher, request.memory)
    if not np.isfinite(solved.params).all() or not np.isfinite(solved.value):
        rate = "lower the rate, or " if hasattr(solver, "rate") else ""
        advice = f"{rate}scale the features (normalize=..)."
        if watcher.best is None or not watcher.keep_best:
            raise Diverged(f"training diverged: {advice}")
        best = watcher.best
        warn(
            f"training diverged in iteration {solved.iterations}; the model is that of iteration "
            f"{best.iteration}, the best one before. To go on, {advice}"
        )
        solved = replace(solved, value=best.loss, gap=None)
    if solved.l2 is not None and solved.l2 > 1.001 * objective.l2:
        warn(C_REDUCED.format(1 / solved.l2))
    if solved.exhausted:
        warn(_unfinished(solver, solved))
    return solved


def _at_best(
    solved: SolverResult, objective: Objective, loss: Loss, solver: AnySolver, watcher: Watcher
) -> SolverResult:
    """Return the result at the parameters of the best iteration.

    A solver of mini-batches has the mean loss of an epoch in place of the value at its end, and an
    interrupted fit takes no more time.
    """
    assert watcher.best is not None
    if solved.gap is not None:  # known only for objectives of the scores
        scored = cast(ScoredObjective[ParameterPoint], objective)
        return result_at(solved, scored, watcher.best_params)
    value = watcher.best.loss
    exact = solver.batch is None and loss.traits.deterministic
    if exact and solved.reason != "interrupted":
        value = objective(watcher.best_params)[0]
    return replace(solved, params=watcher.best_params, value=value)


def _gap(
    loss: Loss, bound: BoundScorer, objective: Objective, solved: SolverResult, interrupted: bool
) -> tuple[float | None, str | None]:
    """Return the optimality gap, of the solver or from the gradient; or None, and why."""
    if solved.gap is not None:
        return solved.gap, None
    for unknown, reason in (
        (interrupted, "the fit was interrupted"),
        (not bound.linear, "scores are not linear in the parameters"),
        (not loss.traits.convex, "the loss is not convex"),
        (not loss.traits.deterministic, "the loss differs from pass to pass"),
        (not loss.traits.smooth, "for hinges only cutting planes bound the optimum"),
        (not loss.traits.bounded_hessian, "the Hessian of the loss has no known bound"),
        (objective.l2 == 0, "without a penalty (l2 = 0) the gradient does not bound the optimum"),
    ):
        if unknown:
            return None, f"gap_ is NaN: {reason}."
    gap = gradient_gap(objective, solved.params, solved.value)
    return gap, None if gap is not None else NOT_COMPUTABLE


def _equal_scores(
    objective: Objective, bound: BoundScorer, solved: SolverResult, request: FitRequest
) -> bool:
    """Return whether the documents of each query have equal scores: nothing was learned.

    The weights of uninformative features may be rounding errors instead of 0; a solver then stops
    within a few iterations.
    """
    if not solved.params.any() or not request.training.varies():
        return True
    if solved.iterations > 3 or not bound.linear:
        return False
    score_range, largest = objective.score_range(solved.params)
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
        if direction.any():
            return T.to_params(-_unit(direction))
        direction = np.random.default_rng(request.seed).normal(size=bound.size)
        moved = T.to_params(-_unit(direction))
        if (objective(moved)[1] != objective.l2 * moved).any():
            return moved
    return start  # where nothing can be learned, the weights stay 0


def _unit(direction: Floats) -> Floats:
    """Return a direction with length 1, also where the squares of its numbers underflow."""
    scaled = direction / np.abs(direction).max()
    unit: Floats = scaled / np.linalg.norm(scaled)
    return unit


def fit_least_squares(request: FitRequest, k: int | None, l2: float) -> FitResult:
    """Minimize half the mean squared error plus l2 / 2 * |w|^2; the intercept is free.

    Solves the normal equations of the standardized features; with linearly dependent features the
    solution of least norm is returned.
    """
    request.warn_if_constant()
    params, intercept, error = request.training.least_squares(k, l2)
    if not np.isfinite(params).all():
        raise Diverged("the squares of the features overflow; scale them (normalize=..).")
    value = 0.5 * error + l2 / 2 * float(params @ params)
    watcher = request.watcher(lambda p, X: BoundLinear(X).predict(p, X), path=False)
    watcher(1, value, params)
    model = LinearScoring(params, intercept)
    return request.result(watcher, model, 1, value, converged=True, gap_note=CLOSED_FORM)


# Threads of OpenMP wait for each other hundreds of times per tree, by spinning.  Where another
# process takes a core away, two of them took 28 s for 10,000 values, one thread 0.2 s.  On a quiet
# machine two threads save a third of half a second for 240,000 values, at a quarter more CPU.
VALUES_PER_THREAD = 250_000


def growth_options(request: FitRequest) -> GrowthOptions:
    """Return the options of growing trees; small data take fewer threads than there may be."""
    valid = None if request.valid is None else request.valid.X
    categorical = tuple(request.training.categories)
    values = request.training.n_docs * request.training.n_features
    threads = min(resolve(request.threads), max(1, values // VALUES_PER_THREAD))
    return GrowthOptions(valid, request.seed, threads, categorical)


TREE_PATIENCE = 35  # trees of a loss; more improve little (docs/choose.md)


class ForestWatcher:
    """Watches forests that grow side by side; each keeps its own best number of trees.

    The history has the measures of the average of the forests with these numbers of trees.  A
    single maximum of the average would be found early, by chance, and end all forests.
    """

    def __init__(self, request: FitRequest, forests: int) -> None:
        self._scores: Floats | None = None
        self.average = request.watcher(lambda params, X: self._scores, path=True)
        self._counts = np.zeros(forests, np.int64)  # the best number of trees; 0: not measured
        self._means: list[float | None] = [None] * forests  # the measure with that number
        self._stopped = np.zeros(forests, bool)
        self._best: Floats | None = None  # scores of the forests with their best numbers of trees

    def __call__(self, number: int, loss: float, valid: Floats | None) -> bool | Bools:
        """Record an iteration with the scores of the validation documents, a column per forest.

        Returns which forests stop.
        """
        if valid is None or valid.ndim == 1:
            self._scores = valid
            return self.average(number, loss, number)
        if self._best is None:
            self._best = valid.copy()
        improved = number == 1
        for forest in np.flatnonzero(~self._stopped).tolist():
            # LightGBM's scores are divided by the number of forests.
            mean = self.average.mean(valid[:, forest] * len(self._means))
            if mean is not None and self.average.improves(mean, self._means[forest]):
                self._means[forest], self._counts[forest] = mean, number
                self._best[:, forest], improved = valid[:, forest], True
        if improved:
            self._scores = self._best.sum(axis=1)
        measured = self._counts > 0
        self._stopped |= measured & (number - self._counts >= self.average.patience)
        return self.average(number, loss, number, improved) or self._stopped

    def windows(self, count: int, averaged: bool) -> list[Window]:
        """Return the numbers of trees of the forests, of at most `count` trees.

        If they are `averaged`, a forest has the mean of its scores from two thirds of its best
        number of trees to the last tree: the best number is a maximum that owes something to
        chance.
        """
        best = self.average.best
        if len(self._means) == 1:
            self._counts[0] = 0 if best is None else best.iteration
        bests = [int(each) or count for each in self._counts]
        if not averaged:
            return [(each, each) for each in bests]
        patience = self.average.patience
        return [(-(-2 * each // 3), min(count, each + patience)) for each in bests]


def fit_trees(request: FitRequest, growth: Growth) -> FitResult:
    """Grow trees, and keep the number of trees with the best validation measure."""
    if request.checkpoint is not None:
        raise DataError("trees do not support checkpoints; leave checkpoint out.")
    constant = request.warn_if_constant()
    boosters: list[Booster] = []
    trees = growth.trees
    forests = ForestWatcher(request, trees.members)
    watcher = forests.average
    of_loss = isinstance(growth, LossGrowth)
    watcher.patience = request.patience or (TREE_PATIENCE if of_loss else DEFAULT_PATIENCE)

    def grown(number: int, booster: Booster, valid: Floats | None) -> bool | Bools:
        boosters[:] = [booster]
        return forests(number, growth.loss(), valid)

    interrupted = False
    try:
        booster, count = growth.grow(grown)
    except KeyboardInterrupt:
        if not boosters:
            raise
        interrupted, booster, count = True, boosters[0], len(watcher.history)
    if not constant and not trees.splits(booster):
        warn(f"all scores are equal: {NO_SPLIT}")
    averaged = of_loss and watcher.best is not None and trees.library == "lightgbm"
    windows = forests.windows(count, averaged)
    model = trees.scoring(booster, windows, request.training.n_features)
    value = watcher.history[-1].loss
    result = request.result(
        watcher, model, count, value, converged=not interrupted, interrupted=interrupted
    )
    if averaged and request.valid is not None:
        scores = model.predict(request.valid.X, threads=request.threads)
        result.record["score"] = watcher.mean(scores)
    return result

"""Fit a loss through a scorer by a solver: the one place where the parts meet."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from firstpage.engine.threads import quiet_blas
from firstpage.errors import DataError, FirstpageWarning
from firstpage.losses.loss import Loss
from firstpage.rankers.fit.checkpoint import minimized
from firstpage.rankers.fit.request import (
    NOTHING,
    Composition,
    FitRequest,
    FitResult,
    fit_result,
    watcher_for,
)
from firstpage.rankers.sharded.data import Spread
from firstpage.rankers.sharded.lightgbm import fit_cluster_trees
from firstpage.rankers.trees.fit import fit_trees
from firstpage.scorers.mlp import MLP, torch_threads
from firstpage.scorers.registry import scorer as scorer_of
from firstpage.solvers.objective import Objective
from firstpage.solvers.preconditioner import Coordinates
from firstpage.solvers.registry import check_parts, suited
from firstpage.solvers.registry import solver as solver_of
from firstpage.solvers.score_space import found_at
from firstpage.solvers.watch import Found
from firstpage.types import Floats

FAINT = (
    "with features of this size so large a C leaves the penalty to rounding; C = {:.2g} was taken. "
    "Scale the features (normalize=..), or choose a smaller C."
)


class Diverged(DataError):
    """A descent went to infinity."""


def fit_parts(request: FitRequest, parts: Composition) -> FitResult:
    """By a solver, or tree by tree."""
    scorer = scorer_of(parts.scorer)
    if scorer.additive and isinstance(request.training, Spread):
        return fit_cluster_trees(request, scorer, parts.loss, {})
    if scorer.additive:
        return fit_trees(request, parts.loss, scorer)
    limit = torch_threads(request.threads) if isinstance(scorer, MLP) else nullcontext()
    with limit, quiet_blas(), np.errstate(over="ignore", invalid="ignore"):  # it may diverge
        return fit_solver(request, parts, scorer)


def fit_solver(request: FitRequest, parts: Composition, scorer: Any) -> FitResult:
    """Minimise the mean loss over the scorer's parameters."""
    fitting = request.training.fitting(scorer)
    solver = solver_of(parts.solver, suited(parts.loss, fitting, request.seed), request.seed)
    check_parts(solver, parts.loss, fitting)
    objective = request.training.objective(
        parts.loss, scorer, fitting, request.truth, parts.l2, request.threads, solver.batch
    )
    objective = _placed(objective, scorer, solver, request)
    watcher = watcher_for(request, fitting.predict, solver.path)
    start = _start(request, parts.loss, fitting, objective)
    interrupted, converged, degenerate, gap, memory = False, False, False, None, None
    try:
        found = minimized(request.checkpoint, request.memory, solver, objective, start, watcher)
        params, value, iterations, converged = (
            found.params, found.value, found.iterations, found.converged,
        )  # fmt: skip
        if not np.isfinite(params).all() or not np.isfinite(value):
            if watcher.best is None or not watcher.keep:
                raise Diverged(f"training {found.reason}, or scale the features (normalize=..).")
            value, iterations = watcher.best.loss, watcher.best.iteration
        gap, memory, degenerate = found.gap, found.memory, found.degenerate
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
            chosen = found_at(found, objective, params)
            value, gap = chosen.value, chosen.gap
    if not degenerate and _all_alike(objective, fitting, params, request, iterations):
        warnings.warn(NOTHING, FirstpageWarning, stacklevel=4)
    done = fit_result(
        request, watcher, fitting.scoring(params), iterations, value, converged, interrupted, gap
    )
    if degenerate:
        done.record["degenerate"] = True
    return replace(done, memory=memory)


def _placed(objective: Any, scorer: Any, solver: Any, request: FitRequest) -> Any:
    """The objective where the scorer wants it: here, or on a device."""
    if scorer.device == "cpu":
        return objective
    if not isinstance(objective, Objective):
        raise DataError("shards are worked through by CPUs; leave device= out, or fit in memory.")
    if getattr(solver, "linear", False) or (solver.batch and objective.scorer.parallel):
        raise DataError(
            f"on a device linear scores are fitted by 'lbfgs' or 'gd', not by "
            f"{type(solver).__name__}. Leave device= out, or choose another solver."
        )
    from firstpage.solvers.gpu.objective import device_objective

    return device_objective(objective, request.truth, scorer.device)


def _all_alike(
    objective: Any, fitting: Any, params: Floats, request: FitRequest, iterations: int
) -> bool:
    """Whether all documents of a query have the same score: nothing was learnt.

    Weights of features that tell nothing apart may be rounding instead of 0; a solver is done with
    such in no time.
    """
    if not params.any() or not request.training.varies():
        return True
    if iterations > 3 or not fitting.parallel:
        return False
    wide, greatest = request.training.spread(objective, fitting, params)
    return wide <= 1e-9 * greatest


def _unfinished(solver: Any, found: Found) -> str:
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


def _start(request: FitRequest, loss: Loss, fitting: Any, objective: Any) -> Floats:
    if request.start is not None:
        if len(request.start) != fitting.size:
            raise DataError(
                f"warm_start: the model so far has {len(request.start)} parameters, and now "
                f"{fitting.size} are needed."
            )
        return request.start
    start: Floats = fitting.start(request.seed)
    if not loss.traits.convex and not start.any():
        # Such losses (cosine) have no value at 0, but a direction to leave it by.
        T = Coordinates(objective.conditioner(), fitting.size)
        way = T.inward(objective(start)[1])
        if not way.any():
            way = np.random.default_rng(request.seed).normal(size=fitting.size)
        start = T.outward(-way / np.linalg.norm(way))
    return start

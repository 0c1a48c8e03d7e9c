"""Gradient descent, SGD and Adam: for the protocols of the papers, and for networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from firstpage.core import Floats, check_number
from firstpage.learning.solvers.lbfgs import Coordinates
from firstpage.learning.solvers.solver import (
    FRESH_START,
    BatchObjective,
    Objective,
    ProgressCallback,
    Resume,
    SolverResult,
    SolverState,
    never_stop,
)

RATES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)


@dataclass(frozen=True)
class GradientDescent:
    """Gradient descent with a constant rate: params -= rate * gradient, over all queries.

    Parameters
    ----------
    rate : float, default 0.1
        The learning rate, above 0.
    max_iter : int, default 500
        The number of iterations, at least 1.
    tol : float, default 0.0
        Stop when an iteration changes the objective by at most this fraction; 0: never.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    Examples
    --------
    >>> import firstpage as fp
    >>> ranker = fp.ListMLE(solver="gd(rate=0.01, max_iter=100)")
    """

    rate: float = 0.1
    max_iter: int = 500
    tol: float = 0.0
    required_traits: ClassVar[tuple[str, ...]] = ()
    linear: ClassVar[bool] = False
    selects_iteration: ClassVar[bool] = True
    batch: ClassVar[None] = None
    resumable: ClassVar[bool] = False
    rate_grid: ClassVar[tuple[float, ...]] = RATES

    def __post_init__(self) -> None:
        check_number(self, "rate", above=0)
        check_number(self, "max_iter", 1, integer=True)
        check_number(self, "tol", 0)

    def minimize(
        self,
        objective: Objective,
        start: Floats,
        progress: ProgressCallback = never_stop,
        resume: Resume = FRESH_START,
    ) -> SolverResult:
        """Minimize the objective from `start`; see `Solver.minimize`.

        `resume` says how many iterations are already done.
        """
        params = np.array(start, np.float64)
        objective.skip_draws(resume.iterations)
        before, gradient = objective(params)
        remaining = self.max_iter - resume.iterations
        for iteration in range(1, remaining + 1):
            params = params - self.rate * gradient
            value, gradient = objective(params)
            if not np.isfinite(value):
                return SolverResult(params, value, iteration, "diverged", False)
            if progress(iteration, value, params):
                return SolverResult(params, value, iteration, "stopped early", False)
            if self.tol > 0 and abs(before - value) <= self.tol * max(abs(before), 1.0):
                reason = "the objective no longer decreases"
                return SolverResult(params, value, iteration, reason, True)
            before = value
        return SolverResult(params, before, remaining, "all iterations done", False)


class StochasticDescent:
    """Base class of solvers that update the parameters after every batch of queries.

    An iteration is an epoch.  The batches are shuffled anew in every epoch.
    """

    rate: float
    max_iter: int
    batch: int
    seed: int
    required_traits: ClassVar[tuple[str, ...]] = ()
    linear: ClassVar[bool] = False
    selects_iteration: ClassVar[bool] = True
    whiten: bool = False  # whether it works in the coordinates of L-BFGS
    resumable: ClassVar[bool] = True
    tol: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        check_number(self, "rate", above=0)
        check_number(self, "max_iter", 1, integer=True)
        check_number(self, "batch", 1, integer=True)
        check_number(self, "seed", 0, integer=True)

    def _start(self, size: int) -> SolverState:
        """Return the state of the update rule for this number of parameters, before any update."""
        return {}

    def _update(self, state: SolverState, params: Floats, gradient: Floats, epoch: int) -> Floats:
        """Return the new parameters, and change the state."""
        raise NotImplementedError

    def minimize(
        self,
        objective: BatchObjective,
        start: Floats,
        progress: ProgressCallback = never_stop,
        resume: Resume = FRESH_START,
    ) -> SolverResult:
        """Minimize the objective from `start`; see `Solver.minimize`.

        The state is that after the last complete epoch.
        """
        T = Coordinates(objective.preconditioner() if self.whiten else None, len(start))
        rng = np.random.default_rng(self.seed)
        blocks = len(objective.bounds)
        fresh = {"epoch": 0, "value": np.inf, "u": np.array(T.from_params(start), np.float64)}
        state: SolverState = dict(resume.state or {**fresh, **self._start(len(start))})
        complete = [dict(state)]
        if resume.report_state is not None:
            resume.report_state(lambda: complete[0])
        for _ in range(int(state["epoch"])):
            rng.permutation(blocks)
        objective.skip_draws(int(state["epoch"]))
        while state["epoch"] < self.max_iter:
            epoch, value = int(state["epoch"]) + 1, 0.0
            for block in rng.permutation(blocks).tolist():
                loss, gradient = objective.block(block, T.to_params(state["u"]))
                gradient = T.gradient_from_params(gradient)
                state["u"] = self._update(state, state["u"], gradient, epoch)
                value += loss / blocks
            state.update(epoch=epoch, value=value)
            complete[0] = dict(state)
            params, done = T.to_params(state["u"]), epoch - resume.iterations
            if not np.isfinite(value):
                return SolverResult(params, value, done, "diverged", False)
            if progress(done, value, params):
                return SolverResult(params, value, done, "stopped early", False)
        params, done = T.to_params(state["u"]), int(state["epoch"]) - resume.iterations
        return SolverResult(params, float(state["value"]), done, "all epochs done", False)


@dataclass(frozen=True)
class SGD(StochasticDescent):
    """Stochastic gradient descent: params -= rate * gradient of a batch of queries.

    The rate in an epoch, counted from 0, is rate / (1 + decay * epoch).

    Parameters
    ----------
    rate : float, default 0.01
        The initial learning rate, above 0.
    max_iter : int, default 100
        The number of epochs, at least 1.
    batch : int, default 1
        The number of queries per batch, at least 1.
    decay : float, default 0.0
        The decay of the rate, at least 0.
    seed : int, default 0
        The seed of the order of the batches, at least 0.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    References
    ----------
    Robbins and Monro (1951), A stochastic approximation method.

    Examples
    --------
    >>> import firstpage as fp
    >>> ranker = fp.ListMLE(solver="sgd(rate=0.01, batch=8)")
    """

    rate: float = 0.01
    max_iter: int = 100
    batch: int = 1
    decay: float = 0.0
    seed: int = 0
    rate_grid: ClassVar[tuple[float, ...]] = RATES

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number(self, "decay", 0)

    def _update(self, state: SolverState, params: Floats, gradient: Floats, epoch: int) -> Floats:
        return params - self.rate / (1 + self.decay * (epoch - 1)) * gradient


@dataclass(frozen=True)
class Adam(StochasticDescent):
    """Stochastic gradient descent with a rate per parameter; the default for networks.

    Parameters
    ----------
    rate : float, default 0.001
        The learning rate, above 0.
    max_iter, batch, seed : int, default 100, 32, 0
        As in `SGD`.
    whiten : bool, default False
        Work in the coordinates of L-BFGS, in which the curvature is about the same in all
        directions: the rate then does not depend on the scale of the features.  Only for linear
        scores.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    References
    ----------
    Kingma and Ba (2015), Adam: a method for stochastic optimization, algorithm 1.

    Examples
    --------
    >>> import firstpage as fp
    >>> ranker = fp.ListMLE(scorer="mlp", solver="adam(rate=0.01)")
    """

    rate: float = 0.001
    max_iter: int = 100
    batch: int = 32
    seed: int = 0
    whiten: bool = False
    rate_grid: ClassVar[tuple[float, ...]] = ()

    def _start(self, size: int) -> SolverState:
        return {"steps": 0, "mean": np.zeros(size), "square": np.zeros(size)}

    def _update(self, state: SolverState, params: Floats, gradient: Floats, epoch: int) -> Floats:
        steps = int(state["steps"]) + 1
        mean = state["mean"] + 0.1 * (gradient - state["mean"])
        square = state["square"] + 0.001 * (gradient * gradient - state["square"])
        state.update(steps=steps, mean=mean, square=square)
        deviation = np.sqrt(square / (1 - 0.999**steps)) + 1e-8
        updated: Floats = params - self.rate * mean / (1 - 0.9**steps) / deviation
        return updated
